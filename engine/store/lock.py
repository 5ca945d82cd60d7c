"""One holder at a time: a file lock that ends with its process, however that ends, and tells who holds it.

Used for the home's `engine.lock` (the one engine process) and `writer.lock` (whoever changes the store). The file stays; only
the lock on it counts. It holds the owner's process id as text. flock on Unix; on Windows one byte far behind the text is locked,
so that others can still read the id.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from engine.errors import LongshelfError

_RETRY_S = 0.05

if sys.platform == "win32":
    import msvcrt

    _LOCKED_BYTE = 1 << 30

    def _try_lock(descriptor: int) -> bool:
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


class FileLock:
    """`with FileLock(path):` holds the lock; two instances exclude each other, in one process too.

    acquire(wait_s) raises LongshelfError("locked") naming the owner's process if the lock isn't free within `wait_s` seconds, and
    LongshelfError("home") if the file can't be made.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    @property
    def held(self) -> bool:
        return self._descriptor is not None

    def acquire(self, wait_s: float = 0.0) -> FileLock:
        if self.held:
            raise RuntimeError(f"{self.path} is already held by this object")
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
        except OSError as error:
            raise LongshelfError(
                "home", f"The lock {self.path} can't be made: {error.strerror or error}.", "Choose another home with --home DIR."
            ) from error
        try:
            self._wait(descriptor, time.monotonic() + wait_s)
            with suppress(OSError):  # a full disk: the lock holds all the same, only without its owner's name
                os.ftruncate(descriptor, 0)
                os.lseek(descriptor, 0, os.SEEK_SET)
                os.write(descriptor, f"{os.getpid()}\n".encode("ascii"))
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        return self

    def _wait(self, descriptor: int, until: float) -> None:
        while not _try_lock(descriptor):
            if time.monotonic() >= until:
                owner = owner_of(self.path)
                who = f" (process {owner})" if owner else ""
                raise LongshelfError(
                    "locked",
                    f"Another Longshelf{who} is working in {self.path.parent}.",
                    "Wait until it has ended, or close it, and try again.",
                )
            time.sleep(_RETRY_S)

    def release(self) -> None:
        """Free the lock; nothing if it isn't held. The file stays: removing it would let two holders in."""
        if self._descriptor is None:
            return
        descriptor, self._descriptor = self._descriptor, None
        try:
            os.ftruncate(descriptor, 0)
            _unlock(descriptor)
        finally:
            os.close(descriptor)

    def __enter__(self) -> FileLock:
        return self if self.held else self.acquire()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.release()


def owner_of(path: Path) -> int | None:
    """The process id written in a lock file. It tells whom to name, not whether the lock is held now."""
    try:
        text = path.read_bytes()[:32].split(b"\n")[0]
    except OSError:
        return None
    return int(text) if text.isdigit() else None
