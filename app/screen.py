"""Whether a window can be opened here at all: asked before Qt is, because Qt ends the process where it can't."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Mapping

from engine.errors import LongshelfError

APT_LINE = (
    "sudo apt install libegl1 libgl1 libdbus-1-3 libfontconfig1 libglib2.0-0 libxkbcommon-x11-0 libxcb-cursor0 libxcb-icccm4 "
    "libxcb-keysyms1 libxcb-shape0 libwayland-cursor0 libwayland-egl1"
)
"""What Qt needs of Debian 12 and Ubuntu 22.04 or newer to open a window under X11 or Wayland."""

_X11_LIBRARIES = ("libxcb-cursor.so.0", "libxcb-icccm.so.4", "libxcb-keysyms.so.1", "libxkbcommon-x11.so.0")


def check(environment: Mapping[str, str] = os.environ) -> None:
    """Raises LongshelfError("no_screen") without a display, ("qt_libraries") where an X11 window lacks what Qt loads for it."""
    if not sys.platform.startswith("linux") or environment.get("QT_QPA_PLATFORM") or environment.get("WAYLAND_DISPLAY"):
        return
    if not environment.get("DISPLAY"):
        raise LongshelfError(
            "no_screen", "There is no screen here to open a window on.", "`longshelf --help` tells what the terminal can do."
        )
    missing = [name for name in _X11_LIBRARIES if not _loads(name)]
    if missing:
        raise LongshelfError(
            "qt_libraries", f"This system lacks {', '.join(missing)}, which windows need.", f"On Debian and Ubuntu: {APT_LINE}"
        )


def _loads(name: str) -> bool:
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True
