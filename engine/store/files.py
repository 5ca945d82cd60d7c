"""A folder of immutable checked files: `ab/abcdef….ENDING`, named by a digest of what they hold.

A file appears complete or not at all (temporary name → flush → rename → flush the folder), so that a process killed at any instant
leaves at most a temporary file, which `sweep_temporaries` removes. One process at a time changes a folder (the home's writer.lock);
any number read.
"""

from __future__ import annotations

import os
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Generic, TypeVar

from engine.errors import LongshelfError
from engine.store import durable, space
from engine.store.mapped import Mapped, Stamp, stamp_of

M = TypeVar("M", bound=Mapped)

_FOLDER = re.compile(r"^[0-9a-f]{2}$")


class Files(ABC, Generic[M]):
    """Files under `folder`. floor: bytes to keep free on its disk; None is the default rule of `space`."""

    ending: str
    """Of the files' names, with its dot."""

    def __init__(self, folder: Path, floor: int | None = None) -> None:
        self.folder = folder
        self.floor = floor
        self._named = re.compile(rf"^[0-9a-f]{{64}}{re.escape(self.ending)}$")
        self._verified: dict[str, tuple[Stamp, bytearray]] = {}
        self._lock = threading.Lock()

    @abstractmethod
    def open(self, digest: str) -> M:
        """Map a file. Everything but the extents is verified now, each extent when first touched."""

    @abstractmethod
    def missing(self, digest: str) -> LongshelfError:
        """What is to be said of a file that isn't there."""

    def path(self, digest: str) -> Path:
        return self.folder / digest[:2] / f"{digest}{self.ending}"

    def has(self, digest: str) -> bool:
        """Whether a file of that name exists; `open` tells whether it is good."""
        return self.path(digest).is_file()

    def size(self, digest: str) -> int:
        """Bytes of the file. Raises what `missing` gives."""
        try:
            return self.path(digest).stat().st_size
        except FileNotFoundError:
            raise self.missing(digest) from None

    def digests(self) -> Iterator[str]:
        """The digests of all files, sorted, whether they are good or not."""
        return (path.stem for path in self._files() if self._named.match(path.name) and path.name.startswith(path.parent.name))

    def usage(self) -> int:
        """Bytes of all files in the folder, temporary ones included."""
        total = 0
        for path in self._files():
            with suppress(FileNotFoundError):
                total += path.stat().st_size
        return total

    def verify(self, digest: str) -> None:
        """Read the whole file and check every byte. Raises LongshelfError as `open` and touching do."""
        self._forget(digest)
        file = self.open(digest)
        try:
            file.touch_all()
        finally:
            file.close()

    def remove(self, digest: str) -> bool:
        """Remove the file; False if it wasn't there or (on Windows) is in use, and is then left for `gc`."""
        self._forget(digest)
        with space.named_disk_errors(self.path(digest)):
            try:
                return durable.remove(self.path(digest))
            except PermissionError:
                if os.name == "nt":
                    return False
                raise

    def temporaries(self) -> list[Path]:
        """What a killed process left behind: temporary files that nobody in this process is writing."""
        return [path for path in self._files() if durable.is_abandoned(path)]

    def sweep_temporaries(self) -> int:
        """Remove them; returns how many. Only for the holder of the writer lock: they may be another's work otherwise."""
        with space.named_disk_errors(self.folder):
            return sum(durable.remove(path) for path in self.temporaries())

    def _write(self, digest: str, size: int, pieces: Iterable[bytes | memoryview]) -> None:
        """Raises LongshelfError("disk_full" or "store_unavailable"), and then nothing has changed."""
        with space.named_disk_errors(self.folder):
            space.require(self.folder, size, self.floor)
            durable.make_folder(self.path(digest).parent)
            durable.write_pieces(self.path(digest), pieces)

    @contextmanager
    def _reading(self, digest: str) -> Iterator[tuple[int, Stamp]]:
        """(descriptor, stamp) of a file. Raises what `missing` gives; LongshelfError("store_unavailable") if the disk can't be read."""
        try:
            with open(self.path(digest), "rb", buffering=0) as file:
                yield file.fileno(), stamp_of(os.fstat(file.fileno()))
        except FileNotFoundError:
            raise self.missing(digest) from None
        except OSError as error:
            raise space.unavailable(self.path(digest), error) from error

    def _flags(self, digest: str, stamp: Stamp, extents: int) -> bytearray:
        """What this process has verified of the file, as long as the file stays the same."""
        with self._lock:
            known = self._verified.get(digest)
            if known is None or known[0] != stamp:
                known = self._verified[digest] = (stamp, bytearray(extents))
            return known[1]

    def _forget(self, digest: str) -> None:
        with self._lock:
            self._verified.pop(digest, None)

    def _files(self) -> Iterator[Path]:
        with space.named_disk_errors(self.folder):
            if not self.folder.is_dir():
                return
            for folder in sorted(self.folder.iterdir()):
                if _FOLDER.match(folder.name) and folder.is_dir():
                    yield from sorted(path for path in folder.iterdir() if path.is_file())
