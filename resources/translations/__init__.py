"""Translations of the window, as Qt Linguist files. `python -m resources.translations` brings them up to date with the code."""
