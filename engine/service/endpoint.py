"""Where the engine of a home listens, and how its clients find it.

Normally HOME/engine.sock is the socket itself. The system limits the length of a socket's path (104 bytes on macOS, 108 on Linux), so in a
deeply nested home the socket lies in a private folder under the temporary folder, and HOME/engine.sock is a small text file with its
path and a mark of the home. What differs on systems without Unix sockets belongs here and nowhere else.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from engine.errors import LongshelfError
from engine.home import Home

LONGEST_PATH = 100  # bytes
_PRIVATE_PREFIX = "longshelf-"


def prepare(home: Home) -> Path:
    """Path on which to bind this home's engine; what an earlier engine left there is gone.

    The caller holds the engine lock (so nobody listens there), binds, and makes the socket 0600. Raises LongshelfError("home") if the home
    can't be written.
    """
    clear(home)
    if len(os.fsencode(home.socket)) <= LONGEST_PATH:
        return home.socket
    try:
        path = Path(tempfile.mkdtemp(prefix=_PRIVATE_PREFIX)) / "engine.sock"  # mkdtemp makes it 0700
        home.socket.write_text(f"{path}\n{_mark(home)}\n", encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise LongshelfError("home", f"The engine can't make its socket for {home.root}: {error.strerror or error}.") from error
    return path


def find(home: Home) -> Path | None:
    """The socket of this home's engine, or None if none is there. A socket that exists may still have nobody behind it."""
    try:
        mode = home.socket.lstat().st_mode
        if stat.S_ISSOCK(mode):
            return home.socket
        if not stat.S_ISREG(mode):
            return None
        lines = home.socket.read_text(encoding="utf-8", errors="surrogateescape").split("\n")
        path = Path(lines[0])
        return path if path.is_absolute() and lines[1:2] == [_mark(home)] and _is_ours(path) else None
    except (OSError, ValueError):
        return None


def clear(home: Home) -> None:
    """Remove this home's socket, and the private folder if it had one. Missing ones are fine."""
    path = find(home)
    try:
        if path is not None and path != home.socket:
            path.unlink(missing_ok=True)
            path.parent.rmdir()
        home.socket.unlink(missing_ok=True)
    except OSError as error:
        raise LongshelfError("home", f"{home.socket} can't be replaced: {error.strerror or error}.") from error


def _mark(home: Home) -> str:
    """Tells this folder from a copy of it, whose file names the engine of the original."""
    status = home.root.stat()
    return f"{status.st_dev}-{status.st_ino}"


def _is_ours(path: Path) -> bool:
    """Only a socket in a private folder of this user is believed: the temporary folder is open to everybody."""
    folder = path.parent.lstat()
    private = stat.S_ISDIR(folder.st_mode) and stat.S_IMODE(folder.st_mode) & 0o077 == 0
    owned = not hasattr(os, "getuid") or folder.st_uid == os.getuid()
    return private and owned and path.parent.name.startswith(_PRIVATE_PREFIX) and stat.S_ISSOCK(path.lstat().st_mode)
