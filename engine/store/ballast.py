"""A little room held back on the disk, so that on one full to the last byte documents can still be listed and removed.

SQLite writes before it can free anything. When the disk is full the held file is let go, what frees room is done, and the file is
made again when an engine next opens the home with room to spare.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from engine.store import durable

MOST = 4 * 1024 * 1024
SHARE = 16  # no more than 1/16 of the disk


def hold(path: Path, total: int, spare: int) -> bool:
    """Make the file if it isn't there and leaves room beside it. total, spare: bytes of the disk. Says whether it is there."""
    if path.exists():
        return True
    size = min(MOST, total // SHARE)
    if spare < 2 * size:
        return False
    try:
        durable.write_file(path, os.urandom(size))  # what can't be compressed takes the room it says
    except OSError:
        return False
    return True


def let_go(path: Path) -> bool:
    """Give the room back; False if there was none."""
    with suppress(OSError):
        return durable.remove(path)
    return False
