"""The left pane: documents with their honest states, and chats."""
