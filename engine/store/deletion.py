"""Deleting a home with everything in it, and nothing that isn't ours: a person may have chosen a folder that held other files."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

from engine.home import Home
from engine.store import durable, space
from engine.store.lock import FileLock

WINDOW = "window."  # its settings and its log, whose names only it knows


def delete(home: Home) -> list[Path]:
    """Delete what Longshelf keeps, and the folder if nothing else is in it; gives what is left.

    The catalog goes before the memory that it is about: after a crash in between, nothing points to what is gone.
    Raises LongshelfError("locked") while an engine runs, ("store_unavailable").
    """
    with FileLock(home.engine_lock), space.named_disk_errors(home.root):
        for folder in (home.texts, home.chats):
            _remove_folder(folder)
        for path in sorted(home.root.glob(f"{home.catalog.stem}.*"), reverse=True):  # catalog.db last but its backup
            path.unlink()
        for folder in (home.segments, home.cache, home.models):
            _remove_folder(folder)
        for path in home.root.iterdir():
            if durable.is_temporary(path) or path.name.startswith((home.log.name, WINDOW)):
                path.unlink()
        for path in (home.settings, home.ballast, home.socket, home.writer_lock, home.tag):
            path.unlink(missing_ok=True)
    home.engine_lock.unlink(missing_ok=True)
    with suppress(OSError):
        home.root.rmdir()
    return sorted(home.root.iterdir()) if home.root.is_dir() else []


def _remove_folder(folder: Path) -> None:
    if folder.is_symlink():
        folder.unlink()
    elif folder.exists():
        shutil.rmtree(folder)
