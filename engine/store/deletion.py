"""Deleting a home with everything in it, and nothing that isn't ours: a person may have chosen a folder that holds other files."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from engine.home import Home
from engine.store import durable, space
from engine.store.lock import FileLock

_RECORD = r"[0-9a-f]{8}\.json(\.damaged)?"
_STAGES = (
    rf"(texts|chats)/{_RECORD}",
    r"catalog\.(backup|before-\w+)\.db",
    r"catalog\.db([-.](wal|shm|journal|lost-wal|damaged-[-\w]+))?",  # before the memory: nothing ever points to what is gone
    r"sidecars/[0-9a-f]{2}/[0-9a-f]{64}\.sidecar",
    r"segments/[0-9a-f]{2}/[0-9a-f]{64}\.kv",
    r"models/(current|\.lock)",
    r"settings\.json|ballast|CACHEDIR\.TAG|writer\.lock|engine\.sock|(engine|window)\.log(\.\d)?|window\.(ini|ini\.lock|sock)",
)
"""Names of our files, in the order in which they go."""

_FOLDERS = ("texts", "chats", "segments", "sidecars", "models", "cache")
_CARD = "model.json"


def delete(home: Home) -> list[Path]:
    """Delete what Longshelf keeps, and the folder if nothing else is in it; gives what is left in it.

    Raises LongshelfError("locked") while an engine runs, ("store_unavailable").
    """
    with FileLock(home.engine_lock), space.named_disk_errors(home.root):
        for pattern in _STAGES:
            for path in list(_files(home.root)):
                if re.fullmatch(pattern, path.relative_to(home.root).as_posix()):
                    path.unlink()
        for path in list(_files(home.root)):
            if durable.is_temporary(path):
                path.unlink()
        for folder in _models(home):
            shutil.rmtree(folder)
        shutil.rmtree(home.cache, ignore_errors=True)  # whatever is in it is safe to delete
        for name in _FOLDERS:
            _prune(home.root / name)
    home.engine_lock.unlink(missing_ok=True)
    _prune(home.root)
    return sorted(home.root.iterdir()) if home.root.is_dir() else []


def _files(root: Path) -> Iterator[Path]:
    """What lies in the folder itself, and up to two folders below in those that are ours."""
    for path in root.iterdir():
        if path.name in _FOLDERS and path.is_dir():
            yield from (below for pattern in ("*", "*/*") for below in path.glob(pattern) if not below.is_dir())
        elif not path.is_dir():
            yield path


def _models(home: Home) -> list[Path]:
    """Folders of installed models, and of installs that never ended."""
    if not home.models.is_dir():
        return []
    return [folder for folder in home.models.iterdir() if (folder / _CARD).is_file() or folder.name.startswith(".install-")]


def _prune(folder: Path) -> None:
    """Remove a folder and those in it, as far as they are empty."""
    if folder.is_dir():
        for below in [*folder.iterdir()] if folder.name in _FOLDERS else []:
            if below.is_dir() and not below.is_symlink():
                with suppress(OSError):
                    below.rmdir()
        with suppress(OSError):
            folder.rmdir()
