"""How the numbers of a matrix lie in memory: plain, or packed in blocks of a row as GGUF files carry them.

A packed number means `scale * q + offset` in float32, rounded to bf16: decoding unpacks it in registers, reading in bulk unpacks
it into memory, and both see the same bf16 value. Block layouts: https://github.com/ggml-org/ggml/blob/master/src/ggml-common.h.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

_Unpack = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Packing:
    """One layout. code: its number in the native library; a block of `elements` numbers takes `bytes` bytes.

    values: blocks [n, bytes] uint8 to numbers [n, elements] float32; None for the plain layouts.
    """

    name: str
    code: int
    elements: int
    bytes: int
    values: _Unpack | None = None

    def row_bytes(self, columns: int) -> int:
        """Bytes of a row of `columns` numbers, which must fill whole blocks."""
        if columns % self.elements:
            raise ValueError(f"rows of {columns} numbers don't fill whole {self.name} blocks of {self.elements}")
        return columns // self.elements * self.bytes


def unpack(packing: Packing, packed: torch.Tensor) -> torch.Tensor:
    """[rows, columns] bf16 from packed rows [rows, bytes of a row] uint8."""
    assert packing.values is not None
    values = packing.values(packed.reshape(-1, packing.bytes)).to(torch.bfloat16)
    return values.view(packed.shape[0], -1)


def _half(blocks: torch.Tensor, at: int) -> torch.Tensor:
    """[n, 1] float32 from the float16 at byte `at` of each block."""
    return blocks[:, at : at + 2].contiguous().view(torch.float16).float()


def _nibbles(packed: torch.Tensor) -> torch.Tensor:
    """[n, 2 k] from bytes [n, k]: the low halves, then the high halves."""
    return torch.cat([packed & 15, packed >> 4], -1)


def _bits(packed: torch.Tensor) -> torch.Tensor:
    """[n, 8 k] from bytes [n, k], lowest bit first."""
    return ((packed[..., None] >> torch.arange(8, dtype=torch.uint8, device=packed.device)) & 1).flatten(-2)


def _q4_0(b: torch.Tensor) -> torch.Tensor:
    return (_nibbles(b[:, 2:]).float() - 8) * _half(b, 0)


def _q4_1(b: torch.Tensor) -> torch.Tensor:
    return _nibbles(b[:, 4:]) * _half(b, 0) + _half(b, 2)


def _q5_0(b: torch.Tensor) -> torch.Tensor:
    return ((_nibbles(b[:, 6:]) | _bits(b[:, 2:6]) << 4).float() - 16) * _half(b, 0)


def _q5_1(b: torch.Tensor) -> torch.Tensor:
    return (_nibbles(b[:, 8:]) | _bits(b[:, 4:8]) << 4) * _half(b, 0) + _half(b, 2)


def _q8_0(b: torch.Tensor) -> torch.Tensor:
    return b[:, 2:].contiguous().view(torch.int8) * _half(b, 0)


def _six_bits(s: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Scales and offsets [n, 8, 1] of eight sub-blocks, each six bits, from 12 bytes."""
    first, second, rest = s[:, :4], s[:, 4:8], s[:, 8:]
    scales = torch.cat([first & 63, (rest & 15) | (first >> 6 << 4)], -1)
    offsets = torch.cat([second & 63, (rest >> 4) | (second >> 6 << 4)], -1)
    return scales[..., None], offsets[..., None]


def _q4_k(b: torch.Tensor, high: torch.Tensor | None = None) -> torch.Tensor:
    scales, offsets = _six_bits(b[:, 4:16])
    q = _nibbles(b[:, -128:].reshape(-1, 4, 32)).reshape(-1, 8, 32)
    if high is not None:
        q = q | high << 4
    d, m = _half(b, 0)[..., None], _half(b, 2)[..., None]
    return (q * (d * scales) - m * offsets).flatten(1)


def _q5_k(b: torch.Tensor) -> torch.Tensor:
    places = torch.arange(8, dtype=torch.uint8, device=b.device)[:, None]
    high = (b[:, None, 16:48] >> places) & 1  # bit s of byte l: element l of sub-block s
    return _q4_k(b, high)


def _q6_k(b: torch.Tensor) -> torch.Tensor:
    low = b[:, :128].reshape(-1, 2, 2, 32)  # half, pair of quarters, element
    low = torch.cat([low & 15, low >> 4], 2)  # [n, half, quarter, element]
    high = (b[:, 128:192].reshape(-1, 2, 1, 32) >> torch.tensor([0, 2, 4, 6], dtype=torch.uint8, device=b.device)[:, None]) & 3
    scales = b[:, 192:208].contiguous().view(torch.int8).float()[..., None]  # of 16 numbers each
    q = (low | high << 4).reshape(-1, 16, 16).float() - 32
    return (q * (scales * _half(b, 208)[..., None])).flatten(1)


BF16 = Packing("bf16", 0, 1, 2)
F32 = Packing("f32", 1, 1, 4)
PACKINGS = {
    packing.name: packing
    for packing in (
        Packing("q8_0", 2, 32, 34, _q8_0),
        Packing("q4_0", 3, 32, 18, _q4_0),
        Packing("q4_1", 4, 32, 20, _q4_1),
        Packing("q5_0", 5, 32, 22, _q5_0),
        Packing("q5_1", 6, 32, 24, _q5_1),
        Packing("q4_k", 7, 256, 144, _q4_k),
        Packing("q5_k", 8, 256, 176, _q5_k),
        Packing("q6_k", 9, 256, 210, _q6_k),
    )
}
"""The packed layouts by name."""


@dataclass(frozen=True)
class Band:
    """Rows of a matrix in one layout. data: [rows, columns] bf16 or float32, or packed [rows, bytes of a row] uint8; contiguous."""

    packing: Packing
    data: torch.Tensor

    @property
    def rows(self) -> int:
        return self.data.shape[0]

    @property
    def row_bytes(self) -> int:
        return self.data.stride(0) * self.data.element_size()


def plain(weight: torch.Tensor) -> Band:
    """The band of a [rows, columns] bf16 or float32 tensor."""
    return Band(BF16 if weight.dtype == torch.bfloat16 else F32, weight.contiguous())
