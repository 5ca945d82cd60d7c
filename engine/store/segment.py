"""One open segment: a file mapped in place, whose extents are verified when they are first touched.

The map is copy-on-write, so that torch gets ordinary tensors without a copy and nothing can write through them; it is made only
after the file's size was found right, because touching a map beyond the end of its file would end the process. Segment files are
never truncated or written in place, only replaced by name or removed.
"""

from __future__ import annotations

import mmap
import os
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import xxhash

from engine.errors import LongshelfError
from engine.store.format import PAGE, Ids, Layout, SegmentHeader

if TYPE_CHECKING:
    import torch

Stamp = tuple[int, int, int, int, int]  # device, inode, size, mtime, ctime: changes when the file does


def damaged(digest: str, reason: str) -> LongshelfError:
    """The error for a segment file that is not what it should be; `reason` is a clause about the file."""
    return LongshelfError(
        "segment_damaged",
        f"A piece of what was remembered, segment {digest[:12]}, is damaged: {reason}. It is not used.",
        "Run `longshelf doctor --repair`: the text is kept, and the piece is read again.",
    )


def missing(digest: str) -> LongshelfError:
    return LongshelfError(
        "segment_missing",
        f"A piece of what was remembered, segment {digest[:12]}, is missing.",
        "Run `longshelf doctor --repair`: the text is kept, and the piece is read again.",
    )


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


class Segment:
    """K and V of up to 1024 tokens, as tensors over the mapped file. Made by `Store.open`.

    key(layer), value(layer): [KV heads, tokens, head dim], zero-copy, in the stored dtype. The first touch of each verifies its
    checksum and raises LongshelfError("segment_damaged") if it fails, every time. May be used by several threads. The map lives
    as long as a tensor made from it does.
    """

    def __init__(
        self,
        path: Path,
        digest: str,
        header: SegmentHeader,
        ids: Ids,
        file: mmap.mmap,
        sums: npt.NDArray[np.uint64],
        verified: bytearray,
        stamp: Stamp,
    ) -> None:
        self.path = path
        self.digest = digest
        self.header = header
        self.ids = ids  # [tokens]
        self._layout = Layout.of(header)
        self._file: mmap.mmap | None = file
        self._bytes: npt.NDArray[np.uint8] | None = np.frombuffer(file, dtype=np.uint8)
        self._sums = sums
        self._verified = verified  # one flag an extent, shared with the store: a second thread at worst verifies again
        self._stamp = stamp

    @property
    def tokens(self) -> int:
        return self.header.tokens

    def key(self, layer: int) -> torch.Tensor:
        """Keys of one layer after RoPE, [KV heads, tokens, head dim]."""
        return self._tensor(2 * layer)

    def value(self, layer: int) -> torch.Tensor:
        """Values of one layer, [KV heads, tokens, head dim]."""
        return self._tensor(2 * layer + 1)

    def extent(self, number: int) -> npt.NDArray[np.uint8]:
        """The verified raw bytes of extent `number` = 2 x layer + (0 for K, 1 for V), without their filling."""
        if not 0 <= number < self._layout.extents:
            raise IndexError(f"extent {number} of a segment that has {self._layout.extents}")
        if self._bytes is None:
            raise ValueError("the segment is closed")
        at = PAGE + number * self._layout.stride
        if not self._verified[number]:
            if xxhash.xxh3_64_intdigest(self._bytes[at : at + self._layout.stride].data) != int(self._sums[number]):
                what = "values" if number % 2 else "keys"
                raise damaged(self.digest, f"the {what} of layer {number // 2} fail their checksum")
            self._verified[number] = 1
        return self._bytes[at : at + self._layout.extent_bytes]

    def touch_all(self) -> None:
        """Verify every extent not yet verified. Raises LongshelfError("segment_damaged")."""
        for number in range(self._layout.extents):
            self.extent(number)

    def will_need(self) -> None:
        """Ask the system to start reading the file: worthwhile before a chain is walked layer by layer."""
        if self._file is not None and hasattr(mmap, "MADV_WILLNEED"):
            self._file.madvise(mmap.MADV_WILLNEED)

    def unchanged(self) -> bool:
        """Whether the file on disk is still the one that was opened. Check it before using a segment held for long."""
        try:
            return stamp_of(os.stat(self.path)) == self._stamp
        except OSError:
            return False

    def close(self) -> None:
        """Let go of the map; it ends when the last tensor made from it does."""
        self._bytes = self._file = None

    def _tensor(self, number: int) -> torch.Tensor:
        import torch

        raw = self.extent(number)
        shape = self.header.shape[2:]
        if self.header.dtype == "bfloat16":
            return torch.from_numpy(raw.view(np.uint16)).view(torch.bfloat16).view(shape)
        return torch.from_numpy(raw.view(np.float32)).view(shape)
