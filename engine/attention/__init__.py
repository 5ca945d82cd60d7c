"""How rows read sequences: what a row may see, and the estimators that read it."""
