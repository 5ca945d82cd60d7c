"""The folder of sidecars: files that derive from segments and can be made again, so that each is always safe to delete."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from engine.errors import LongshelfError
from engine.store.files import Files
from engine.store.frame import PAGE, Sums, filled, framed, front_bytes, parse_table
from engine.store.mapped import map_file
from engine.store.sidecar import FORM, Sidecar, SidecarHeader, damaged, missing

if TYPE_CHECKING:
    import torch


class SidecarStore(Files[Sidecar]):
    """Sidecars under a folder."""

    ending = ".sidecar"

    def missing(self, digest: str) -> LongshelfError:
        return missing(digest)

    def commit(self, header: SidecarHeader, arrays: Sequence[torch.Tensor]) -> str:
        """Write a sidecar, in the place of one that is there; returns its digest once it is on the disk for good.

        arrays: contiguous CPU tensors, as the header tells of them. Raises LongshelfError("disk_full" or "store_unavailable"), and
        then nothing has changed; ValueError for arrays that do not fit the header.
        """
        for array, data in zip(header.arrays, arrays, strict=True):
            if array.of(array.name, data, array.split) != array or not data.is_contiguous():
                raise ValueError(f"{array.name} is {data.dtype} {list(data.shape)}, the header says {array.dtype} {list(array.shape)}")
        digest = header.recipe.digest
        self._write(digest, header.size, framed(FORM, header.front, _extents(header, arrays)))
        return digest

    def open(self, digest: str) -> Sidecar:
        """Map a sidecar. Everything but the extents is verified now, each extent when first touched.

        Raises LongshelfError: "sidecar_missing"; "sidecar_damaged" if any of it is not what `digest` promises; "store_unavailable"
        if the disk can't be read.
        """
        with self._reading(digest) as (descriptor, stamp):
            header, sums = _read_frame(descriptor, digest, stamp[2])
            mapped = map_file(descriptor, stamp[2])
        return Sidecar(self.path(digest), digest, header, mapped, sums, self._flags(digest, stamp, len(sums)), stamp)


def _extents(header: SidecarHeader, arrays: Sequence[torch.Tensor]) -> Iterator[tuple[memoryview, int]]:
    import torch

    for array, data in zip(header.arrays, arrays, strict=True):
        raw = data.detach().reshape(-1).view(torch.uint8).numpy().reshape(array.extents, array.extent_bytes)
        for extent in raw:
            yield extent.data, filled(array.extent_bytes) - array.extent_bytes


def _read_frame(descriptor: int, digest: str, size: int) -> tuple[SidecarHeader, Sums]:
    """Header and checksums of an open file of `size` bytes, verified against each other and the digest."""
    try:
        page = os.read(descriptor, PAGE)
        front = page + os.read(descriptor, max(0, min(front_bytes(page), size) - len(page)))
        header = SidecarHeader.parse(front)
        if size != header.size:
            raise ValueError(f"it has {size:,} bytes, not {header.size:,}")
        if header.recipe.digest != digest:
            raise ValueError("it holds another sidecar than its name says")
        os.lseek(descriptor, header.table_at, os.SEEK_SET)
        return header, parse_table(FORM, front, os.read(descriptor, size - header.table_at))
    except ValueError as error:
        raise damaged(digest, str(error)) from error
