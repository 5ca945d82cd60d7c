"""The sidecar file: arrays that were made of stored segments, and that can be made of them again.

    0        header: see `frame`; as many pages as it takes
    …        the arrays in order, each cut along its first dims into extents, which are filled with zeros to a multiple of 4 KiB
    table_at checksums of each extent
    end_at   end mark

A sidecar is found by its recipe: what it was made of, and how. It never stands for what was read: an identity, a folder and a first
word of its own keep it apart from segments.
"""

from __future__ import annotations

import json
import math
import mmap
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from blake3 import blake3

from engine.errors import LongshelfError
from engine.store.frame import Extent, Form, Sums, filled, pack_front, parse_front, table_bytes
from engine.store.mapped import Mapped, Stamp, tensor

if TYPE_CHECKING:
    import torch

FORM = Form("sidecar", magic=b"LSHELFSC", end=b"LSHELFSE", version=1)
ITEM_BYTES = {"bfloat16": 2, "float32": 4, "int32": 4, "uint16": 2, "uint8": 1}

_IDENTITY = b"longshelf sidecar 1\0"


@dataclass(frozen=True)
class Recipe:
    """What a sidecar is made of, and how: equal recipes, equal sidecars up to rounding.

    kind: what it is for; builder: version of the code that makes this kind; namespace: as of the segments; sources: digests of the
    segments it derives from, in order; settings: whatever else decides what is made.
    """

    kind: str
    builder: int
    namespace: str
    sources: tuple[str, ...]
    settings: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def digest(self) -> str:
        """64 hex digits: the name of the file."""
        said = json.dumps([self.kind, self.builder, self.namespace, self.sources, sorted(self.settings.items())], separators=(",", ":"))
        return blake3(_IDENTITY + said.encode("utf-8")).hexdigest()


@dataclass(frozen=True)
class Array:
    """One array. split: how many of its first dims it is cut along. Each piece is an extent: verified by itself, on pages of its own.

    Raises ValueError for what no array can be.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    split: int

    def __post_init__(self) -> None:
        if self.dtype not in ITEM_BYTES:
            raise ValueError(f"dtype {self.dtype!r} is not one of {', '.join(ITEM_BYTES)}")
        if not 0 <= self.split < len(self.shape) or min(self.shape) < 1:
            raise ValueError(f"an array of shape {list(self.shape)} can't be cut along {self.split} dims")

    @staticmethod
    def of(name: str, data: torch.Tensor, split: int) -> Array:
        return Array(name, str(data.dtype).removeprefix("torch."), tuple(data.shape), split)

    @property
    def extents(self) -> int:
        return math.prod(self.shape[: self.split])

    @property
    def extent_bytes(self) -> int:
        return math.prod(self.shape[self.split :]) * ITEM_BYTES[self.dtype]


@dataclass(frozen=True)
class SidecarHeader:
    """A recipe and what came of it. provenance: as of a segment."""

    recipe: Recipe
    arrays: tuple[Array, ...]
    provenance: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def front(self) -> bytes:
        """The first pages of the file."""
        recipe = asdict(self.recipe) | {"settings": dict(self.recipe.settings)}
        arrays = [asdict(array) for array in self.arrays]
        behind = sum(array.extents * filled(array.extent_bytes) for array in self.arrays) + table_bytes(self.extents)
        return pack_front(FORM, {"recipe": recipe, "arrays": arrays, "provenance": dict(self.provenance)}, behind)

    @staticmethod
    def parse(front: bytes) -> SidecarHeader:
        """Raises ValueError saying what is wrong with the first pages."""
        fields, size = parse_front(FORM, front)
        try:
            recipe, arrays = fields["recipe"], fields["arrays"]
            header = SidecarHeader(
                Recipe(**recipe | {"sources": tuple(recipe["sources"])}),
                tuple(Array(**array | {"shape": tuple(array["shape"])}) for array in arrays),
                fields["provenance"],
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"its header can't be understood ({error})") from error
        if header.front != front or size != header.size:
            raise ValueError("its header contradicts itself")
        return header

    @property
    def extents(self) -> int:
        return sum(array.extents for array in self.arrays)

    @property
    def table_at(self) -> int:
        return self.size - table_bytes(self.extents)

    @property
    def size(self) -> int:
        """Bytes of the file."""
        places = self.places()
        return (places[-1].at + places[-1].filled if places else len(self.front)) + table_bytes(len(places))

    def places(self) -> list[Extent]:
        """Where the extents of all arrays lie, in order."""
        found: list[Extent] = []
        at = len(self.front)
        for array in self.arrays:
            for _ in range(array.extents):
                found.append(Extent(at, array.extent_bytes, filled(array.extent_bytes)))
                at += found[-1].filled
        return found


def damaged(digest: str, reason: str) -> LongshelfError:
    """The error for a sidecar that is not what it should be; `reason` is a clause about the file."""
    return LongshelfError(
        "sidecar_damaged",
        f"Something that was made of what is remembered, sidecar {digest[:12]}, is damaged: {reason}. It is not used.",
        "Run `longshelf doctor --repair`: it is removed, and made again when it is needed.",
    )


def missing(digest: str) -> LongshelfError:
    return LongshelfError(
        "sidecar_missing",
        f"Something that was made of what is remembered, sidecar {digest[:12]}, is missing.",
        "Run `longshelf doctor --repair`: it is made again when it is needed.",
    )


class Sidecar(Mapped):
    """An open sidecar. Made by `SidecarStore.open`. What fails its checksum raises LongshelfError("sidecar_damaged") at every touch."""

    def __init__(
        self, path: Path, digest: str, header: SidecarHeader, file: mmap.mmap, sums: Sums, verified: bytearray, stamp: Stamp
    ) -> None:
        super().__init__(path, file, header.places(), sums, verified, stamp)
        self.digest = digest
        self.header = header
        self._first: dict[str, tuple[int, Array]] = {}
        number = 0
        for array in header.arrays:
            self._first[array.name] = number, array
            number += array.extents

    def array(self, name: str) -> Array:
        """What there is of that name."""
        return self._first[name][1]

    def tensor(self, name: str, number: int = 0) -> torch.Tensor:
        """Piece `number` of an array, counted over the dims it was cut along; zero-copy."""
        first, array = self._first[name]
        if not 0 <= number < array.extents:
            raise IndexError(f"piece {number} of {name}, which has {array.extents}")
        return tensor(self.extent(first + number), array.dtype, array.shape[array.split :])

    def fault(self, number: int) -> LongshelfError:
        return damaged(self.digest, f"piece {number} fails its checksum")
