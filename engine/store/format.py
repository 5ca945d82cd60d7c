"""The segment file: identity, header, and where everything lies in it.

    0        header, 4 KiB: magic, version, JSON length, file size, xxh3-64 of the rest of the header, JSON, zeros
    4096     extents in the order layer → K|V, each [KV head, token, dim] and filled with zeros to a multiple of 4 KiB
    ids_at   token ids, int32, filled with zeros to a multiple of 8 bytes
    table_at xxh3-64 of each extent (with its filling) and of the ids; then xxh3-64 of the header's checksum and this table
    end_at   end mark

All numbers are little-endian; K and V are the raw stored dtype, keys after RoPE. Every byte of the file is covered by a checksum
or compared with a fixed value, and the file says all that is needed to find its place in a chain.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import xxhash
from blake3 import blake3

MAGIC = b"LSHELFKV"
END_MARK = b"LSHELFND"
VERSION = 1
PAGE = 4096
LONGEST = 1024  # tokens of one segment
ITEM_BYTES = {"bfloat16": 2, "float32": 4}

_FIXED = struct.Struct("<8sIIQQ")  # magic, version, JSON bytes, file size, checksum
_CHECKED_FROM = _FIXED.size
_IDENTITY = b"longshelf segment 1\0"

Ids = npt.NDArray[np.int32]


def as_ids(ids: Sequence[int] | Ids) -> Ids:
    """Token ids in the stored form, int32 little-endian, contiguous."""
    return np.ascontiguousarray(ids, dtype="<i4")


def segment_digest(namespace: str, parent: str, start: int, ids: Sequence[int] | Ids) -> str:
    """The identity of a segment, 64 hex digits: blake3 over namespace, parent digest, first position and token ids.

    Equal identity means: the same model read the same tokens at the same positions after the same chain.
    """
    digest = blake3(_IDENTITY)
    digest.update(f"{namespace}\0{parent}\0{start}\0".encode("ascii"))
    digest.update(as_ids(ids).tobytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class SegmentHeader:
    """What a segment is. Raises ValueError for values that no segment can have.

    namespace: hex digest of all that makes KV comparable (weights, config with RoPE, KV dtype, layout); parent: digest of the
    segment before, "" for the first of a chain; start: position of the first token in the chain; provenance: how it was made,
    shown and kept, never part of the identity.
    """

    namespace: str
    parent: str
    start: int
    tokens: int
    layers: int
    kv_heads: int
    head_dim: int
    dtype: str
    provenance: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 1 <= self.tokens <= LONGEST:
            raise ValueError(f"a segment has 1 to {LONGEST} tokens, not {self.tokens}")
        if min(self.layers, self.kv_heads, self.head_dim) < 1 or self.start < 0:
            raise ValueError("a segment has at least one layer, KV head and dim, and starts at 0 or later")
        if self.dtype not in ITEM_BYTES:
            raise ValueError(f"dtype {self.dtype!r} is not one of {', '.join(ITEM_BYTES)}")
        if not self.namespace or not (self.namespace + self.parent).isascii() or "\0" in self.namespace + self.parent:
            raise ValueError("namespace and parent are digests in hex")
        if bool(self.parent) != bool(self.start):
            raise ValueError("the first segment of a chain starts at 0 and has no parent; every other has one")

    def digest(self, ids: Sequence[int] | Ids) -> str:
        """The identity of this segment holding these ids."""
        return segment_digest(self.namespace, self.parent, self.start, ids)

    @property
    def shape(self) -> tuple[int, int, int, int, int]:
        """[layers, K|V, KV heads, tokens, head dim]"""
        return (self.layers, 2, self.kv_heads, self.tokens, self.head_dim)


@dataclass(frozen=True)
class Layout:
    """Where things lie in the file of a header, in bytes."""

    extents: int
    extent_bytes: int
    stride: int
    ids_at: int
    table_at: int
    end_at: int
    size: int

    @staticmethod
    def of(header: SegmentHeader) -> Layout:
        extents = header.layers * 2
        extent_bytes = header.kv_heads * header.tokens * header.head_dim * ITEM_BYTES[header.dtype]
        stride = _filled(extent_bytes, PAGE)
        ids_at = PAGE + extents * stride
        table_at = ids_at + _filled(header.tokens * 4, 8)
        end_at = table_at + 8 * (extents + 2)
        return Layout(extents, extent_bytes, stride, ids_at, table_at, end_at, end_at + len(END_MARK))


def _filled(count: int, to: int) -> int:
    return -(-count // to) * to


def pack_header(header: SegmentHeader, digest: str) -> bytes:
    """The first 4 KiB of the file. Raises ValueError if the provenance is too long to fit."""
    layout = Layout.of(header)
    fields = {
        "digest": digest,
        "namespace": header.namespace,
        "parent": header.parent,
        "start": header.start,
        "tokens": header.tokens,
        "layers": header.layers,
        "kv_heads": header.kv_heads,
        "head_dim": header.head_dim,
        "dtype": header.dtype,
        "order": "layer, key|value, kv_head, token, dim",
        "extents": {"at": PAGE, "bytes": layout.extent_bytes, "stride": layout.stride, "count": layout.extents},
        "ids_at": layout.ids_at,
        "table_at": layout.table_at,
        "provenance": dict(header.provenance),
    }
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    if len(text) > PAGE - _FIXED.size:
        raise ValueError(f"the header takes {len(text)} bytes: the provenance is too long")
    rest = text.ljust(PAGE - _FIXED.size, b"\0")
    start = struct.pack("<8sIIQ", MAGIC, VERSION, len(text), layout.size)
    return start + struct.pack("<Q", xxhash.xxh3_64_intdigest(start + rest)) + rest


def parse_header(page: bytes) -> tuple[SegmentHeader, str]:
    """The header and the digest it names. Raises ValueError saying what is wrong with the 4 KiB."""
    if len(page) < PAGE:
        raise ValueError("it is shorter than a header")
    magic, version, length, size, checksum = _FIXED.unpack_from(page)
    if magic != MAGIC:
        raise ValueError("it is not a segment file")
    if version > VERSION:
        raise ValueError(f"its format, version {version}, is newer than this program")
    if version != VERSION or xxhash.xxh3_64_intdigest(page[:24] + page[_CHECKED_FROM:PAGE]) != checksum:
        raise ValueError("its header fails the checksum")
    try:
        fields = json.loads(page[_CHECKED_FROM : _CHECKED_FROM + length])
        names = ("namespace", "parent", "start", "tokens", "layers", "kv_heads", "head_dim", "dtype", "provenance")
        header = SegmentHeader(**{name: fields[name] for name in names})
        digest = str(fields["digest"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"its header can't be understood ({error})") from error
    if size != Layout.of(header).size:
        raise ValueError("its header contradicts itself")
    return header, digest


def table_checksum(header_page: bytes, table: bytes) -> int:
    """Binds the table of checksums to this header, so that parts of two files never pass as one."""
    return xxhash.xxh3_64_intdigest(header_page[24:32] + table)


def unpack_tail(header: SegmentHeader, header_page: bytes, tail: bytes) -> tuple[Ids, npt.NDArray[np.uint64]]:
    """Token ids and the checksums of the extents from the bytes behind the extents. Raises ValueError saying what is wrong."""
    layout = Layout.of(header)
    table_at, end_at = layout.table_at - layout.ids_at, layout.end_at - layout.ids_at
    if tail[end_at:] != END_MARK:
        raise ValueError("its end mark is missing")
    table = tail[table_at : end_at - 8]
    if table_checksum(header_page, table) != int.from_bytes(tail[end_at - 8 : end_at], "little"):
        raise ValueError("its table of checksums is damaged")
    sums = np.frombuffer(table, dtype="<u8")
    if xxhash.xxh3_64_intdigest(tail[:table_at]) != int(sums[-1]):
        raise ValueError("its token ids fail the checksum")
    return np.frombuffer(tail, dtype="<i4", count=header.tokens), sums[:-1]
