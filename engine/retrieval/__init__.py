"""Which keys a question needs, told without reading them."""
