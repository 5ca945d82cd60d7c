"""Sketches: a few bits for each coordinate of a key, from which its logits are guessed without reading it.

A key is centred, mapped to coordinates that matter most for the queries of its KV head come first, and each coordinate is cut
into equal steps: the first ones into 16, the next into 4, the last into 2. The inner product of a query with what the codes stand for
guesses query · (key - centre); what is left out is the same for all keys of the head, so it moves no softmax. The idea of few-bit codes
after a rotation is that of RaBitQ (Gao and Long 2024, arXiv:2405.12497) and KIVI-like caches; here the rotation is fitted to queries.

Sixteen keys stand together, as a processor takes them: a plane has 4 bytes of each of the 16, which hold 8 coordinates of 4 bits, 16 of
2 bits or 32 of one bit.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

GROUP = 16
"""Keys that stand together."""
_BYTES = 4
"""Bytes of a key in a plane."""


@dataclass(frozen=True)
class Layout:
    """How many planes have codes of 4, 2 and 1 bits; coordinates are taken in this order."""

    fours: int
    twos: int
    ones: int

    @property
    def planes(self) -> int:
        return self.fours + self.twos + self.ones

    @property
    def coordinates(self) -> int:
        return 8 * self.fours + 16 * self.twos + 32 * self.ones

    @property
    def bytes_per_key(self) -> int:
        return _BYTES * self.planes

    def bits(self) -> list[int]:
        """Of each plane."""
        return [4] * self.fours + [2] * self.twos + [1] * self.ones

    def middles(self) -> torch.Tensor:
        """[C]: the code that stands for 0, between two codes."""
        return torch.cat([torch.full((_BYTES * 8 // bits,), 2.0 ** (bits - 1) - 0.5) for bits in self.bits()])


@dataclass(frozen=True)
class Projection:
    """What sketches of one layer are made and read with.

    centres: [Hkv, D]; keys: [Hkv, D, C] gives coordinates in steps; queries: [Hkv, D, C] gives what a step of each coordinate adds to
    the inner product. All float32, contiguous.
    """

    layout: Layout
    centres: torch.Tensor
    keys: torch.Tensor
    queries: torch.Tensor

    def to(self, device: torch.device) -> Projection:
        """The same on a device."""
        return Projection(self.layout, self.centres.to(device), self.keys.to(device), self.queries.to(device))


def groups(tokens: int) -> int:
    """Groups of 16 that so many keys take; the last one is filled up."""
    return -(-tokens // GROUP)


def build(keys: torch.Tensor, projection: Projection) -> torch.Tensor:
    """The sketch [Hkv, groups, planes, 64] uint8 of keys [Hkv, T, D]; keys beyond the last are sketched as the centre."""
    layout, (heads, tokens, dim) = projection.layout, keys.shape
    centred = torch.zeros(heads, groups(tokens) * GROUP, dim)
    centred[:, :tokens] = keys.float() - projection.centres[:, None]
    steps = torch.bmm(centred, projection.keys)
    middles = layout.middles()
    codes = torch.floor(steps + (middles + 0.5)).clamp_(min=torch.zeros(()), max=2 * middles).to(torch.uint8)
    return _packed(codes.view(heads, -1, GROUP, layout.coordinates), layout)


def _packed(codes: torch.Tensor, layout: Layout) -> torch.Tensor:
    """[Hkv, groups, 16, C] codes → [Hkv, groups, planes, 64]."""
    planes, at = [], 0
    for bits in layout.bits():
        of_plane = codes[..., at : at + _BYTES * 8 // bits].reshape(*codes.shape[:-1], 8 // bits, _BYTES)
        shifts = torch.arange(0, 8, bits, dtype=torch.uint8)[:, None]
        planes.append((of_plane << shifts).sum(-2, dtype=torch.uint8).flatten(-2))
        at += _BYTES * 8 // bits
    return torch.stack(planes, -2)


def codes(sketch: torch.Tensor, layout: Layout) -> torch.Tensor:
    """[Hkv, groups * 16, C] uint8 from a sketch."""
    unpacked = []
    for plane, bits in enumerate(layout.bits()):
        shifts = torch.arange(0, 8, bits, dtype=torch.uint8)[:, None]
        of_plane = sketch[..., plane, :].reshape(*sketch.shape[:2], GROUP, 1, _BYTES) >> shifts & (2**bits - 1)
        unpacked.append(of_plane.flatten(-2))
    return torch.cat(unpacked, -1).flatten(1, 2)


def coordinates(q: torch.Tensor, projection: Projection) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Of queries q [n, Hkv, G, D]: (whole numbers -127..127 [n, Hkv, G, C], their unit [n, Hkv, G], offset [n, Hkv, G]), float32.

    unit * (whole · code) + offset guesses query · (key - centre).
    """
    exact = torch.einsum("nhgd,hdc->nhgc", q.float(), projection.queries)
    unit = exact.abs().amax(-1).clamp_min(1e-30) / 127
    whole = torch.round(exact / unit[..., None])
    return whole, unit, -(whole @ projection.layout.middles()) * unit


def guess(q: torch.Tensor, sketch: torch.Tensor, projection: Projection) -> torch.Tensor:
    """[n, Hkv, G, groups * 16]: guesses of query · (key - centre) for q [n, Hkv, G, D]."""
    whole, unit, offset = coordinates(q, projection)
    products = torch.einsum("nhgc,htc->nhgt", whole, codes(sketch, projection.layout).float())
    return products * unit[..., None] + offset[..., None]
