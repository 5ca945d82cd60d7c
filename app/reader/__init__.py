"""The right pane: the text of a document with the cited passage marked."""
