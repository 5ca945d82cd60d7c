"""A file of the store mapped in place, whose extents are verified when they are first touched.

The map is copy-on-write, so that torch gets ordinary tensors without a copy and nothing can write through them; it is made only
after the file's size was found right, because touching a map beyond the end of its file would end the process. Files of the store
are never truncated or written in place, only replaced by name or removed.
"""

from __future__ import annotations

import mmap
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import xxhash

from engine.errors import LongshelfError
from engine.store.frame import Extent, Sums

if TYPE_CHECKING:
    import torch

Stamp = tuple[int, int, int, int, int]  # device, inode, size, mtime, ctime: changes when the file does


def stamp_of(status: os.stat_result) -> Stamp:
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


@cache
def _allow_many_open_files() -> None:
    """Before Python 3.13 every map keeps a descriptor, and a shelf has thousands of segments: use what the system grants."""
    if sys.platform != "win32":
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def map_file(descriptor: int, size: int) -> mmap.mmap:
    """A private map of the first `size` bytes of an open file; the descriptor may be closed afterwards."""
    if sys.version_info >= (3, 13):
        return mmap.mmap(descriptor, size, access=mmap.ACCESS_COPY, trackfd=False)
    _allow_many_open_files()
    return mmap.mmap(descriptor, size, access=mmap.ACCESS_COPY)


def tensor(raw: npt.NDArray[np.uint8], dtype: str, shape: Sequence[int]) -> torch.Tensor:
    """The bytes of an extent as a tensor over them."""
    import torch

    if dtype == "bfloat16":
        return torch.from_numpy(raw.view(np.uint16)).view(torch.bfloat16).view(shape)
    return torch.from_numpy(raw.view(dtype)).view(shape)


class Mapped(ABC):
    """An open file. The first touch of each extent verifies its checksum and raises its `fault` if it fails, every time.

    May be used by several threads. The map lives as long as a tensor made from it does.
    """

    def __init__(self, path: Path, file: mmap.mmap, extents: Sequence[Extent], sums: Sums, verified: bytearray, stamp: Stamp) -> None:
        self.path = path
        self._file: mmap.mmap | None = file
        self._bytes: npt.NDArray[np.uint8] | None = np.frombuffer(file, dtype=np.uint8)
        self._extents = extents
        self._sums = sums
        self._verified = verified  # one flag an extent, shared with the store: a second thread at worst verifies again
        self._stamp = stamp

    @abstractmethod
    def fault(self, number: int) -> LongshelfError:
        """What is to be said of extent `number` when it fails its checksum."""

    def extent(self, number: int) -> npt.NDArray[np.uint8]:
        """The verified raw bytes of one extent, without their filling."""
        if not 0 <= number < len(self._extents):
            raise IndexError(f"extent {number} of a file that has {len(self._extents)}")
        if self._bytes is None:
            raise ValueError(f"{self.path.name} is closed")
        place = self._extents[number]
        if not self._verified[number]:
            if xxhash.xxh3_64_intdigest(self._bytes[place.at : place.at + place.filled].data) != int(self._sums[number]):
                raise self.fault(number)
            self._verified[number] = 1
        return self._bytes[place.at : place.at + place.bytes]

    def touch_all(self) -> None:
        """Verify every extent not yet verified. Raises what `fault` gives."""
        for number in range(len(self._extents)):
            self.extent(number)

    def will_need(self) -> None:
        """Ask the system to start reading the file: worthwhile before a chain is walked layer by layer."""
        if self._file is not None and hasattr(mmap, "MADV_WILLNEED"):
            self._file.madvise(mmap.MADV_WILLNEED)

    def unchanged(self) -> bool:
        """Whether the file on disk is still the one that was opened. Check it before using a file held for long."""
        try:
            return stamp_of(os.stat(self.path)) == self._stamp
        except OSError:
            return False

    def close(self) -> None:
        """Let go of the map; it ends when the last tensor made from it does."""
        self._bytes = self._file = None
