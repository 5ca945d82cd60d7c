"""One open segment: a file mapped in place, whose extents are verified when they are first touched."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import LongshelfError
from engine.store.format import Ids, Layout, SegmentHeader
from engine.store.frame import Sums
from engine.store.mapped import Mapped, Stamp, tensor

if TYPE_CHECKING:
    import torch


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


class Segment(Mapped):
    """K and V of up to 1024 tokens, as tensors over the mapped file. Made by `Store.open`.

    key(layer), value(layer): [KV heads, tokens, head dim], zero-copy, in the stored dtype. extent(number): the raw bytes, number =
    2 x layer + (0 for K, 1 for V). What fails its checksum raises LongshelfError("segment_damaged") at every touch.
    """

    def __init__(
        self, path: Path, digest: str, header: SegmentHeader, ids: Ids, file: mmap.mmap, sums: Sums, verified: bytearray, stamp: Stamp
    ) -> None:
        super().__init__(path, file, Layout.of(header).places(), sums, verified, stamp)
        self.digest = digest
        self.header = header
        self.ids = ids  # [tokens]

    @property
    def tokens(self) -> int:
        return self.header.tokens

    def key(self, layer: int) -> torch.Tensor:
        """Keys of one layer after RoPE, [KV heads, tokens, head dim]."""
        return self._tensor(2 * layer)

    def value(self, layer: int) -> torch.Tensor:
        """Values of one layer, [KV heads, tokens, head dim]."""
        return self._tensor(2 * layer + 1)

    def fault(self, number: int) -> LongshelfError:
        what = "values" if number % 2 else "keys"
        return damaged(self.digest, f"the {what} of layer {number // 2} fail their checksum")

    def _tensor(self, number: int) -> torch.Tensor:
        return tensor(self.extent(number), self.header.dtype, self.header.shape[2:])
