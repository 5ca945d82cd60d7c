"""The store: a folder of immutable segment files, named by their identity. Nothing here knows documents: which segments matter is for
the catalog to say.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from engine.errors import LongshelfError
from engine.store.files import Files
from engine.store.format import FORM, ITEM_BYTES, Ids, Layout, SegmentHeader, as_ids, pack_header, pack_ids, parse_header, unpack_tail
from engine.store.frame import PAGE, Sums, framed
from engine.store.mapped import map_file
from engine.store.segment import Segment, damaged, missing

if TYPE_CHECKING:
    import torch


class Store(Files[Segment]):
    """Segments under a folder."""

    ending = ".kv"

    def missing(self, digest: str) -> LongshelfError:
        return missing(digest)

    def commit(self, header: SegmentHeader, ids: Sequence[int] | Ids, kv: npt.NDArray[np.generic] | torch.Tensor) -> str:
        """Write a segment; returns its digest once it is on the disk for good.

        kv: contiguous [layers, 2 (K, V), KV heads, tokens, head dim] in the header's dtype: a CPU tensor, or numpy float32 /
        uint16 (bfloat16 bits) / uint8 (raw bytes). A segment that is already there and whole is kept; a damaged one is
        replaced. Raises LongshelfError("disk_full" or "store_unavailable"), and then nothing has changed; ValueError for a kv
        or ids that do not fit the header.
        """
        stored_ids = as_ids(ids)
        if stored_ids.shape != (header.tokens,):
            raise ValueError(f"{stored_ids.size} ids for a segment of {header.tokens} tokens")
        extents = _extents(header, kv)
        digest = header.digest(stored_ids)
        if self._whole(digest):
            return digest
        layout = Layout.of(header)
        filling = layout.stride - layout.extent_bytes
        pieces = framed(FORM, pack_header(header, digest), ((extent.data, filling) for extent in extents), pack_ids(header, stored_ids))
        self._write(digest, layout.size, pieces)
        return digest

    def open(self, digest: str, expect_ids: Sequence[int] | Ids | None = None, expect_parent: str | None = None) -> Segment:
        """Map a segment. Everything but the extents is verified now, each extent when first touched.

        Raises LongshelfError: "segment_missing"; "segment_damaged" if any of it is not what `digest` promises or what is
        expected; "store_unavailable" if the disk can't be read.
        """
        with self._reading(digest) as (descriptor, stamp):
            header, ids, sums = _read_frame(descriptor, digest, stamp[2])
            if expect_ids is not None and not np.array_equal(ids, as_ids(expect_ids)):
                raise damaged(digest, "it holds other tokens than expected")
            if expect_parent is not None and header.parent != expect_parent:
                raise damaged(digest, "it belongs to another chain than expected")
            mapped = map_file(descriptor, stamp[2])
        return Segment(self.path(digest), digest, header, ids, mapped, sums, self._flags(digest, stamp, len(sums)), stamp)

    def _whole(self, digest: str) -> bool:
        if not self.has(digest):
            return False
        try:
            self.verify(digest)
        except LongshelfError as error:
            if error.kind not in ("segment_damaged", "segment_missing"):
                raise
            return False
        return True

    def scan(self) -> Iterator[tuple[str, SegmentHeader, Ids]]:
        """(digest, header, ids) of every file whose frame is good: enough to rebuild the catalog. Extents are not read."""
        for digest in self.digests():
            try:
                with self._reading(digest) as (descriptor, stamp):
                    header, ids, _ = _read_frame(descriptor, digest, stamp[2])
            except LongshelfError:
                continue
            yield digest, header, ids


def _extents(header: SegmentHeader, kv: npt.NDArray[np.generic] | torch.Tensor) -> npt.NDArray[np.uint8]:
    """kv as bytes [2 x layers, extent bytes], without a copy."""
    if not isinstance(kv, np.ndarray):
        import torch

        if kv.dtype is not getattr(torch, header.dtype):
            raise ValueError(f"kv is {kv.dtype}, the header says {header.dtype}")
        kv = kv.detach().view(torch.int16 if header.dtype == "bfloat16" else torch.float32).numpy()
    elif kv.dtype != np.uint8 and kv.dtype.itemsize != ITEM_BYTES[header.dtype]:
        raise ValueError(f"kv is {kv.dtype}, the header says {header.dtype}")
    layout = Layout.of(header)
    if (kv.dtype != np.uint8 and kv.shape != header.shape) or kv.nbytes != layout.extents * layout.extent_bytes:
        raise ValueError(f"kv is {list(kv.shape)}, the header says {list(header.shape)}")
    if not kv.flags.c_contiguous:
        raise ValueError("kv must be contiguous")
    return kv.reshape(-1).view(np.uint8).reshape(layout.extents, layout.extent_bytes)


def _read_frame(descriptor: int, digest: str, size: int) -> tuple[SegmentHeader, Ids, Sums]:
    """Header, ids and checksums of an open file of `size` bytes, all verified against each other and the digest."""
    try:
        page = os.read(descriptor, PAGE)
        header, named = parse_header(page)
        layout = Layout.of(header)
        if size != layout.size:
            raise ValueError(f"it has {size:,} bytes, not {layout.size:,}")
        os.lseek(descriptor, layout.ids_at, os.SEEK_SET)
        ids, sums = unpack_tail(header, page, os.read(descriptor, layout.size - layout.ids_at))
        if named != digest or header.digest(ids) != digest:
            raise ValueError("it holds another segment than its name says")
    except ValueError as error:
        raise damaged(digest, str(error)) from error
    return header, ids, sums
