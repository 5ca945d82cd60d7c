"""The store: a folder of immutable segment files, named by their identity.

`segments/ab/abcdef….kv`. A file appears complete or not at all (temporary name → flush → rename → flush the folder), so that
a process killed at any instant leaves at most a temporary file, which `sweep_temporaries` removes. Nothing here knows documents:
which segments matter is for the catalog to say. One process at a time changes a store (the home's writer.lock); any number read.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import xxhash

from engine.errors import LongshelfError
from engine.store import durable, space
from engine.store.format import (
    END_MARK,
    ITEM_BYTES,
    PAGE,
    Ids,
    Layout,
    SegmentHeader,
    as_ids,
    pack_header,
    parse_header,
    table_checksum,
    unpack_tail,
)
from engine.store.segment import Segment, Stamp, damaged, map_file, missing, stamp_of

if TYPE_CHECKING:
    import torch

_NAME = re.compile(r"^[0-9a-f]{64}\.kv$")
_FOLDER = re.compile(r"^[0-9a-f]{2}$")


class Store:
    """Segments under `folder`. floor: bytes to keep free on its disk; None is the default rule of `space`."""

    def __init__(self, folder: Path, floor: int | None = None) -> None:
        self.folder = folder
        self.floor = floor
        self._verified: dict[str, tuple[Stamp, bytearray]] = {}
        self._lock = threading.Lock()

    def path(self, digest: str) -> Path:
        return self.folder / digest[:2] / f"{digest}.kv"

    def has(self, digest: str) -> bool:
        """Whether a file of that name exists; `open` tells whether it is good."""
        return self.path(digest).is_file()

    def size(self, digest: str) -> int:
        """Bytes of the file. Raises LongshelfError("segment_missing")."""
        try:
            return self.path(digest).stat().st_size
        except FileNotFoundError:
            raise missing(digest) from None

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
        with space.named_disk_errors(self.folder):
            space.require(self.folder, Layout.of(header).size, self.floor)
            self._write(self.path(digest), header, digest, stored_ids, extents)
        return digest

    def _write(self, target: Path, header: SegmentHeader, digest: str, ids: Ids, extents: npt.NDArray[np.uint8]) -> None:
        durable.make_folder(target.parent)
        temporary = durable.temporary_beside(target)
        try:
            descriptor = durable.create(temporary)
            try:
                _write_segment(descriptor, header, digest, ids, extents)
                durable.sync_file(descriptor)
            finally:
                os.close(descriptor)
            durable.replace(temporary, target)
        except BaseException:
            durable.discard(temporary)
            raise

    def open(self, digest: str, expect_ids: Sequence[int] | Ids | None = None, expect_parent: str | None = None) -> Segment:
        """Map a segment. Everything but the extents is verified now, each extent when first touched.

        Raises LongshelfError: "segment_missing"; "segment_damaged" if any of it is not what `digest` promises or what is
        expected; "store_unavailable" if the disk can't be read.
        """
        try:
            with open(self.path(digest), "rb", buffering=0) as file:
                stamp = stamp_of(os.fstat(file.fileno()))
                header, ids, sums = _read_frame(file.fileno(), digest, stamp[2])
                if expect_ids is not None and not np.array_equal(ids, as_ids(expect_ids)):
                    raise damaged(digest, "it holds other tokens than expected")
                if expect_parent is not None and header.parent != expect_parent:
                    raise damaged(digest, "it belongs to another chain than expected")
                mapped = map_file(file.fileno(), stamp[2])
        except FileNotFoundError:
            raise missing(digest) from None
        except OSError as error:
            raise space.unavailable(self.path(digest), error) from error
        return Segment(self.path(digest), digest, header, ids, mapped, sums, self._flags(digest, stamp, len(sums)), stamp)

    def _flags(self, digest: str, stamp: Stamp, extents: int) -> bytearray:
        """What this process has verified of the file, as long as the file stays the same."""
        with self._lock:
            known = self._verified.get(digest)
            if known is None or known[0] != stamp:
                known = self._verified[digest] = (stamp, bytearray(extents))
            return known[1]

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

    def verify(self, digest: str) -> None:
        """Read the whole file and check every byte. Raises LongshelfError as `open` does."""
        with self._lock:
            self._verified.pop(digest, None)
        segment = self.open(digest)
        try:
            segment.touch_all()
        finally:
            segment.close()

    def remove(self, digest: str) -> bool:
        """Remove the file; False if it wasn't there or (on Windows) is in use, and is then left for `gc`."""
        with self._lock:
            self._verified.pop(digest, None)
        with space.named_disk_errors(self.path(digest)):
            try:
                return durable.remove(self.path(digest))
            except PermissionError:
                if os.name == "nt":
                    return False
                raise

    def digests(self) -> Iterator[str]:
        """The digests of all files, sorted, whether they are good or not."""
        return (path.stem for path in self._files() if _NAME.match(path.name) and path.name.startswith(path.parent.name))

    def usage(self) -> int:
        """Bytes of all files in the store, temporary ones included."""
        total = 0
        for path in self._files():
            with suppress(FileNotFoundError):
                total += path.stat().st_size
        return total

    def temporaries(self) -> list[Path]:
        """What a killed process left behind: temporary files that nobody in this process is writing."""
        return [path for path in self._files() if durable.is_abandoned(path)]

    def sweep_temporaries(self) -> int:
        """Remove them; returns how many. Only for the holder of the writer lock: they may be another's work otherwise."""
        with space.named_disk_errors(self.folder):
            return sum(durable.remove(path) for path in self.temporaries())

    def scan(self) -> Iterator[tuple[str, SegmentHeader, Ids]]:
        """(digest, header, ids) of every file whose frame is good: enough to rebuild the catalog. Extents are not read."""
        for digest in self.digests():
            try:
                with open(self.path(digest), "rb", buffering=0) as file:
                    header, ids, _ = _read_frame(file.fileno(), digest, os.fstat(file.fileno()).st_size)
            except (LongshelfError, OSError):
                continue
            yield digest, header, ids

    def _files(self) -> Iterator[Path]:
        with space.named_disk_errors(self.folder):
            if not self.folder.is_dir():
                return
            for folder in sorted(self.folder.iterdir()):
                if _FOLDER.match(folder.name) and folder.is_dir():
                    yield from sorted(path for path in folder.iterdir() if path.is_file())


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


def _write_segment(descriptor: int, header: SegmentHeader, digest: str, ids: Ids, extents: npt.NDArray[np.uint8]) -> None:
    layout = Layout.of(header)
    page = pack_header(header, digest)
    filling = bytes(layout.stride - layout.extent_bytes)
    sums: list[int] = []
    durable.write_all(descriptor, page)
    for extent in extents:
        checksum = xxhash.xxh3_64(extent.data)
        checksum.update(filling)
        sums.append(checksum.intdigest())
        durable.write_all(descriptor, extent.data)
        durable.write_all(descriptor, filling)
    id_bytes = ids.tobytes().ljust(layout.table_at - layout.ids_at, b"\0")
    sums.append(xxhash.xxh3_64_intdigest(id_bytes))
    table = np.array(sums, dtype="<u8").tobytes()
    bound = table_checksum(page, table).to_bytes(8, "little")
    durable.write_all(descriptor, id_bytes + table + bound + END_MARK)


def _read_frame(descriptor: int, digest: str, size: int) -> tuple[SegmentHeader, Ids, npt.NDArray[np.uint64]]:
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
