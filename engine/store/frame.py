"""What every checked file of the store is made of, whatever it holds.

    0        front: magic, version, JSON length, file size, xxh3-64 of the rest of the front; JSON; zeros to a multiple of 4 KiB
    …        extents, each filled with zeros to a multiple of 4 KiB; behind them what the kind of file puts there
    table_at xxh3-64 of each extent (with its filling) and of what stands behind them; then xxh3-64 of the front's checksum and this table
    end_at   end mark

All numbers are little-endian. Every byte of a file is covered by a checksum or compared with a fixed value.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

PAGE = 4096
SUM = 8  # bytes of a checksum

_FIXED = struct.Struct("<8sIIQQ")  # magic, version, JSON bytes, file size, checksum
_UNCHECKED = slice(24, 32)  # the checksum itself

Sums = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Form:
    """One kind of file. name: what it is called in messages; magic, end: its first and last 8 bytes."""

    name: str
    magic: bytes
    end: bytes
    version: int


@dataclass(frozen=True)
class Extent:
    """Where one piece of an array lies. filled: its bytes with the zeros behind them."""

    at: int
    bytes: int
    filled: int


def filled(count: int, to: int = PAGE) -> int:
    """The next multiple of `to`."""
    return -(-count // to) * to


def table_bytes(sums: int) -> int:
    """Bytes from the table of so many checksums to the end of the file."""
    return SUM * (sums + 1) + SUM


def pack_front(form: Form, fields: Mapping[str, Any], behind: int) -> bytes:
    """The front of a file of which `behind` bytes follow."""
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    rest = text.ljust(filled(_FIXED.size + len(text)) - _FIXED.size, b"\0")
    start = struct.pack("<8sIIQ", form.magic, form.version, len(text), _FIXED.size + len(rest) + behind)
    return start + struct.pack("<Q", xxhash.xxh3_64_intdigest(start + rest)) + rest


def front_bytes(page: bytes) -> int:
    """How long a front is, by its first 4 KiB; it is told by `parse_front` whether that can be trusted."""
    return filled(_FIXED.size + int(_FIXED.unpack_from(page)[2])) if len(page) >= _FIXED.size else PAGE


def parse_front(form: Form, front: bytes) -> tuple[dict[str, Any], int]:
    """(fields, file size). Raises ValueError saying what is wrong with the front."""
    if len(front) < PAGE:
        raise ValueError("it is shorter than a header")
    magic, version, length, size, checksum = _FIXED.unpack_from(front)
    if magic != form.magic:
        raise ValueError(f"it is not a {form.name} file")
    if version > form.version:
        raise ValueError(f"its format, version {version}, is newer than this program")
    if version != form.version or xxhash.xxh3_64_intdigest(front[: _UNCHECKED.start] + front[_UNCHECKED.stop :]) != checksum:
        raise ValueError("its header fails the checksum")
    try:
        fields = json.loads(front[_FIXED.size : _FIXED.size + length])
        if not isinstance(fields, dict):
            raise TypeError("it is no object")
    except (TypeError, ValueError) as error:
        raise ValueError(f"its header can't be understood ({error})") from error
    return fields, size


def framed(form: Form, front: bytes, extents: Iterable[tuple[memoryview, int]], behind: bytes = b"") -> Iterator[bytes | memoryview]:
    """A whole file, piece by piece. extents: (bytes, how many zeros follow them)."""
    sums: list[int] = []
    yield front
    for data, zeros in extents:
        filling = bytes(zeros)
        checksum = xxhash.xxh3_64(data)
        checksum.update(filling)
        sums.append(checksum.intdigest())
        yield data
        yield filling
    if behind:
        sums.append(xxhash.xxh3_64_intdigest(behind))
    table = np.array(sums, dtype="<u8").tobytes()
    yield behind + table + _bound(front, table).to_bytes(SUM, "little") + form.end


def parse_table(form: Form, front: bytes, tail: bytes) -> Sums:
    """The checksums, from the bytes between table and end of file. Raises ValueError saying what is wrong with them."""
    table, bound, end = tail[: -2 * SUM], tail[-2 * SUM : -SUM], tail[-SUM:]
    if end != form.end:
        raise ValueError("its end mark is missing")
    if _bound(front, table) != int.from_bytes(bound, "little"):
        raise ValueError("its table of checksums is damaged")
    return np.frombuffer(table, dtype="<u8")


def _bound(front: bytes, table: bytes) -> int:
    """Binds the table of checksums to this front, so that parts of two files never pass as one."""
    return xxhash.xxh3_64_intdigest(front[_UNCHECKED] + table)
