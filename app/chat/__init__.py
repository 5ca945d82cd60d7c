"""The middle pane: which documents are asked, the conversation, and the place to type."""
