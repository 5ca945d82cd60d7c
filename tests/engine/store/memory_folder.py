"""A folder in memory: what is tested here flushes to the disk at every step, and a kill, unlike a power cut, asks nothing of it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")


def memory_folder() -> Iterator[Path]:
    """A fresh folder in shared memory where the system has that, else among its temporary files; removed afterwards."""
    room = SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="longshelf-test-", dir=room))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
