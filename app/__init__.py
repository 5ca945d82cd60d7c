"""What the person sees: the window, in PySide6. It knows no tensor; everything it shows comes from the engine process."""
