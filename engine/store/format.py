"""The segment file: identity, header, and where everything lies in it.

    0        header, 4 KiB: see `frame`
    4096     extents in the order layer → K|V, each [KV head, token, dim] and filled with zeros to a multiple of 4 KiB
    ids_at   token ids, int32, filled with zeros to a multiple of 8 bytes
    table_at checksums of each extent and of the ids
    end_at   end mark

All numbers are little-endian; K and V are the raw stored dtype, keys after RoPE. The file says all that is needed to find its place
in a chain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import xxhash
from blake3 import blake3

from engine.store.frame import PAGE, Extent, Form, Sums, filled, pack_front, parse_front, parse_table, table_bytes

VERSION = 1
FORM = Form("segment", magic=b"LSHELFKV", end=b"LSHELFND", version=VERSION)
LONGEST = 1024  # tokens of one segment
ITEM_BYTES = {"bfloat16": 2, "float32": 4}

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
    size: int

    @staticmethod
    def of(header: SegmentHeader) -> Layout:
        extents = header.layers * 2
        extent_bytes = header.kv_heads * header.tokens * header.head_dim * ITEM_BYTES[header.dtype]
        stride = filled(extent_bytes)
        ids_at = PAGE + extents * stride
        table_at = ids_at + filled(header.tokens * 4, 8)
        return Layout(extents, extent_bytes, stride, ids_at, table_at, table_at + table_bytes(extents + 1))

    def places(self) -> list[Extent]:
        """Extent 2 x layer + (0 for K, 1 for V)."""
        return [Extent(PAGE + number * self.stride, self.extent_bytes, self.stride) for number in range(self.extents)]


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
    page = pack_front(FORM, fields, layout.size - PAGE)
    if len(page) > PAGE:
        raise ValueError(f"the header takes {len(page)} bytes: the provenance is too long")
    return page


def parse_header(page: bytes) -> tuple[SegmentHeader, str]:
    """The header and the digest it names. Raises ValueError saying what is wrong with the 4 KiB."""
    fields, size = parse_front(FORM, page)
    try:
        names = ("namespace", "parent", "start", "tokens", "layers", "kv_heads", "head_dim", "dtype", "provenance")
        header = SegmentHeader(**{name: fields[name] for name in names})
        digest = str(fields["digest"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"its header can't be understood ({error})") from error
    if size != Layout.of(header).size:
        raise ValueError("its header contradicts itself")
    return header, digest


def pack_ids(header: SegmentHeader, ids: Ids) -> bytes:
    """The token ids as they stand behind the extents."""
    return ids.tobytes().ljust(filled(header.tokens * 4, 8), b"\0")


def unpack_tail(header: SegmentHeader, page: bytes, tail: bytes) -> tuple[Ids, Sums]:
    """Token ids and the checksums of the extents from the bytes behind the extents. Raises ValueError saying what is wrong."""
    layout = Layout.of(header)
    ids = tail[: layout.table_at - layout.ids_at]
    sums = parse_table(FORM, page, tail[len(ids) :])
    if xxhash.xxh3_64_intdigest(ids) != int(sums[-1]):
        raise ValueError("its token ids fail the checksum")
    return np.frombuffer(tail, dtype="<i4", count=header.tokens), sums[:-1]
