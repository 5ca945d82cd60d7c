"""Files that are either whole or not there: what the platform needs so that written bytes survive a power cut.

A file is written under a temporary name, flushed to the disk, renamed, and the rename is flushed too. Only this module knows
where the platforms differ: macOS flushes the drive's own cache only when asked with F_FULLFSYNC, and Windows can't flush a
folder (NTFS journals the rename).
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

# The endings behind .tmp are the companions SQLite makes for a database of that name.
_TEMPORARY = re.compile(r"^(\..+\.\d+-[0-9a-f]{8}\.tmp)(-journal|-wal|-shm)?$")
_in_use: set[str] = set()  # names this process has given out and not yet done with


def temporary_beside(target: Path) -> Path:
    """A fresh name in the folder of `target`; no other process or thread picks the same one. End with `replace` or `discard`."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    _in_use.add(temporary.name)
    return temporary


def is_temporary(path: Path) -> bool:
    """Whether the name is one that `temporary_beside` gives."""
    return _TEMPORARY.match(path.name) is not None


def is_abandoned(path: Path) -> bool:
    """Whether it is a temporary file that nobody in this process is at work on: another process's, dead or alive."""
    match = _TEMPORARY.match(path.name)
    return match is not None and match[1] not in _in_use


def discard(temporary: Path) -> None:
    """Be done with a temporary name: remove its file, and SQLite's companions of it, as far as that can be done."""
    for name in (temporary.name, *(temporary.name + ending for ending in ("-journal", "-wal", "-shm"))):
        with suppress(OSError):
            temporary.with_name(name).unlink()
    _in_use.discard(temporary.name)


def create(path: Path) -> int:
    """A descriptor for a new private file (0600). Raises FileExistsError rather than touch an existing one."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write every byte; the system may take fewer than it is given in one go."""
    left = memoryview(data).cast("B")
    while left:
        left = left[os.write(descriptor, left) :]


def sync_file(descriptor: int) -> None:
    """Return once the file's bytes are on the disk itself."""
    if sys.platform == "darwin":
        import fcntl

        with suppress(OSError):  # a file system without it, such as a network one: fsync is all there is
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
    os.fsync(descriptor)


def sync_folder(folder: Path) -> None:
    """Return once the folder's names (created, renamed, removed) are on the disk."""
    if sys.platform == "win32":
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        sync_file(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Create a private folder (0700) whose parent exists, so that it survives a power cut; nothing if it is there."""
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        return
    sync_folder(folder.parent)


def replace(temporary: Path, target: Path) -> None:
    """Give a flushed file its name, taking the place of an older one in one step, and flush the folder."""
    os.replace(temporary, target)
    _in_use.discard(temporary.name)
    sync_folder(target.parent)


def write_file(target: Path, data: bytes) -> None:
    """Write a whole file so that at every instant either the old or the new one stands, complete."""
    write_pieces(target, [data])


def write_pieces(target: Path, pieces: Iterable[bytes | memoryview]) -> None:
    """The same for one that is too large to be put together first."""
    temporary = temporary_beside(target)
    try:
        descriptor = create(temporary)
        try:
            for piece in pieces:
                write_all(descriptor, piece)
            sync_file(descriptor)
        finally:
            os.close(descriptor)
        replace(temporary, target)
    except BaseException:
        discard(temporary)
        raise


def remove(path: Path) -> bool:
    """Remove a file for good; False if it was not there."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    sync_folder(path.parent)
    return True


def keep_aside(path: Path, copy: Path) -> None:
    """Make `copy` a second name of the file (or a copy, where the file system has no hard links)."""
    try:
        os.link(path, copy)
    except OSError:
        shutil.copyfile(path, copy)
        descriptor = os.open(copy, os.O_RDWR | getattr(os, "O_BINARY", 0))
        try:
            sync_file(descriptor)
        finally:
            os.close(descriptor)
    sync_folder(copy.parent)
