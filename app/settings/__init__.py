"""The settings window: few, and each says when it takes effect."""
