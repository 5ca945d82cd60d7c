"""Products of few rows with plain and packed matrices, on the GPU; their meaning is `kernels.reference.linear`.

Packed numbers are unpacked in registers, to the very bf16 numbers of `kernels.packings.unpack`. Rows are filled up to 16, which is what
tensor cores multiply at a time. A matrix is cut into bands of rows and, where that gives too few programs for a GPU, its columns into
parts that are summed in order; its shape alone says how, so a row's result doesn't depend on the rows beside it.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernels import packings
from kernels.gpu.language import inlined, product, rounded, steps
from kernels.packings import PACKINGS, Band, plain

FEW = 16
"""The most rows of a product."""
_BLOCK: tl.constexpr = tl.constexpr(32)  # numbers that share a scale
_PROGRAMS = 528  # that keep a large GPU busy: four for each of its processors
_ROWS, _COLUMNS = 64, 128  # of the matrix that a program takes at a time
_PLAIN: tl.constexpr = tl.constexpr("plain")
_BYTES: tl.constexpr = tl.constexpr("bytes")
_NIBBLES: tl.constexpr = tl.constexpr("nibbles")


@inlined
def number(code, scale, offset, ZERO: tl.constexpr):
    """(code - ZERO) * scale + offset, rounded to bf16, for codes 0 to 255: their bits below those of 2^23 are a float32's."""
    whole = (code.to(tl.int32) | 0x4B000000).to(tl.float32, bitcast=True) - (8388608.0 + ZERO)
    return rounded(whole * scale.to(tl.float32)[:, :, None] + offset.to(tl.float32)[:, :, None])


@inlined
def x_tile(x, row, column, n, columns):
    return tl.load(x + row[:, None] * columns + column[None, :], mask=(row < n)[:, None] & (column < columns)[None, :], other=0.0)


@triton.jit
def linear_kernel(
    x, codes, scales, offsets, parts, n, rows, all_rows, columns, first_row, part_columns,
    KIND: tl.constexpr, ZERO: tl.constexpr, OFFSETS: tl.constexpr, FEW: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    part, few = tl.program_id(1), tl.arange(0, FEW)
    there = row < rows
    wide = row.to(tl.int64)
    blocks = columns // _BLOCK
    acc = tl.full([FEW, ROWS], 0.0, tl.float32)
    for start in steps(part * part_columns, tl.minimum((part + 1) * part_columns, columns), COLUMNS):
        column = start + tl.arange(0, COLUMNS)
        if KIND == _PLAIN:
            numbers = tl.load(
                codes + wide[:, None] * columns + column[None, :], mask=there[:, None] & (column < columns)[None, :], other=0.0
            )
            acc = product(x_tile(x, few, column, n, columns), tl.trans(numbers), acc)
        else:
            block = start // _BLOCK + tl.arange(0, COLUMNS // _BLOCK)
            known = there[:, None] & (block < blocks)[None, :]
            at = wide[:, None] * blocks + block[None, :]
            scale = tl.load(scales + at, mask=known, other=0.0)
            offset = tl.load(offsets + at, mask=known, other=0.0) if OFFSETS else scale * 0.0
            if KIND == _BYTES:
                each = tl.arange(0, _BLOCK)
                code = tl.load(codes + at[:, :, None] * _BLOCK + each[None, None, :], mask=known[:, :, None], other=0)
                numbers = tl.reshape(number(code, scale, offset, ZERO), [ROWS, COLUMNS])
                acc = product(x_tile(x, few, column, n, columns), tl.trans(numbers), acc)
            else:  # the low halves of a block's bytes are its first 16 numbers, the high ones the others
                each = tl.arange(0, _BLOCK // 2)
                code = tl.load(codes + at[:, :, None] * (_BLOCK // 2) + each[None, None, :], mask=known[:, :, None], other=0)
                half = tl.arange(0, COLUMNS // 2)
                low = start + half // (_BLOCK // 2) * _BLOCK + half % (_BLOCK // 2)
                numbers = tl.reshape(number(code & 15, scale, offset, ZERO), [ROWS, COLUMNS // 2])
                acc = product(x_tile(x, few, low, n, columns), tl.trans(numbers), acc)
                numbers = tl.reshape(number(code >> 4, scale, offset, ZERO), [ROWS, COLUMNS // 2])
                acc = product(x_tile(x, few, low + _BLOCK // 2, n, columns), tl.trans(numbers), acc)
    into = parts + (part * n + few).to(tl.int64)[:, None] * all_rows + (first_row + wide)[None, :]
    tl.store(into, acc, mask=(few < n)[:, None] & there[None, :])


@triton.jit
def sum_parts_kernel(parts, bias, out, n, rows, count, BIAS: tl.constexpr, ROWS: tl.constexpr):
    row, one = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.program_id(1)
    total = tl.full([ROWS], 0.0, tl.float32)
    for part in steps(0, count, 1):
        total += tl.load(parts + (part * n + one).to(tl.int64) * rows + row, mask=row < rows, other=0.0)
    if BIAS:
        total += tl.load(bias + row, mask=row < rows, other=0.0)
    tl.store(out + one.to(tl.int64) * rows + row, total, mask=row < rows)


@dataclass(frozen=True)
class _Stored:
    """A band as kernels read it: codes and what they mean in arrays of their own, so that each is aligned."""

    kind: str
    codes: torch.Tensor
    scales: torch.Tensor
    offsets: torch.Tensor | None = None
    zero: int = 0

    @property
    def rows(self) -> int:
        return self.codes.shape[0]


class Matrix:
    """W [rows, columns] as bands from top to bottom and a bias [rows] float32 or None, on a device and ready for `linear`.

    q8_0, q4_0 and q4_1 stay packed, with as many bytes; other packed layouts are unpacked to bf16 here.
    """

    def __init__(self, bands: Sequence[Band], columns: int, bias: torch.Tensor | None = None, device: torch.device | None = None) -> None:
        where = bands[0].data.device if device is None else device
        self.bands = tuple(_stored(band, where) for band in bands)
        self.columns = columns
        self.rows = sum(band.rows for band in bands)
        self.bias = None if bias is None else bias.float().to(where)
        tiles = sum(triton.cdiv(band.rows, _ROWS) for band in bands)
        pieces = triton.cdiv(columns, _COLUMNS)
        parts = max(1, min(triton.cdiv(_PROGRAMS, tiles), pieces // 2))
        self.part_columns = triton.cdiv(pieces, parts) * _COLUMNS
        self.parts = triton.cdiv(columns, self.part_columns)


def _stored(band: Band, device: torch.device) -> _Stored:
    name, data = band.packing.name, band.data
    if name not in ("q8_0", "q4_0", "q4_1"):
        numbers = packings.unpack(band.packing, data.cpu()) if name in PACKINGS else plain(data).data
        return _Stored(_PLAIN.value, numbers.to(device), numbers.new_empty(0).to(device))
    blocks = data.to(device).view(band.rows, -1, band.packing.bytes)
    halves = 2 if name == "q4_1" else 1
    scales = blocks[..., : 2 * halves].contiguous().view(torch.float16)
    codes = blocks[..., 2 * halves :].contiguous()
    scale, offset = scales[..., 0].contiguous(), scales[..., 1].contiguous() if halves == 2 else None
    if name == "q8_0":
        return _Stored(_BYTES.value, codes ^ 0x80, scale, zero=128)
    return _Stored(_NIBBLES.value, codes, scale, offset, zero=0 if halves == 2 else 8)


def unpack(matrix: Matrix) -> torch.Tensor:
    """[rows, columns] bf16 or float32, on the device: the numbers that `linear` multiplies by. Plain ones are not copied."""
    unpacked = [_numbers(band, matrix.columns) for band in matrix.bands]
    return unpacked[0] if len(unpacked) == 1 else torch.cat(unpacked)


def _numbers(band: _Stored, columns: int) -> torch.Tensor:
    if band.kind == _PLAIN.value:
        return band.codes
    halves = (band.codes & 15, band.codes >> 4) if band.kind == _NIBBLES.value else (band.codes,)
    values = (torch.cat(halves, -1).float() - band.zero) * band.scales.float()[..., None]
    if band.offsets is not None:
        values += band.offsets.float()[..., None]
    return values.to(torch.bfloat16).view(band.rows, columns)


def linear(x: torch.Tensor, matrix: Matrix) -> torch.Tensor:
    """x Wᵀ + bias, [n, rows] float32, for x [n, columns] float32 or bf16, contiguous, at most 16 rows. Raises ValueError for more."""
    n = len(x)
    if n > FEW:
        raise ValueError(f"{n} rows are more than the {FEW} of a product with few rows")
    parts = torch.empty(matrix.parts, n, matrix.rows, dtype=torch.float32, device=x.device)
    if not n:
        return parts[0]
    at = 0
    for band in matrix.bands:
        linear_kernel[(triton.cdiv(band.rows, _ROWS), matrix.parts)](
            x, band.codes, band.scales, band.scales if band.offsets is None else band.offsets, parts,
            n, band.rows, matrix.rows, matrix.columns, at, matrix.part_columns,
            KIND=band.kind, ZERO=band.zero, OFFSETS=band.offsets is not None, FEW=FEW, ROWS=_ROWS, COLUMNS=_COLUMNS,
            num_warps=4, num_stages=3,
        )  # fmt: skip
        at += band.rows
    if matrix.parts == 1 and matrix.bias is None:
        return parts[0]
    out = torch.empty_like(parts[0])
    bias = out if matrix.bias is None else matrix.bias
    sum_parts_kernel[(triton.cdiv(matrix.rows, 256), n)](
        parts, bias, out, n, matrix.rows, matrix.parts, BIAS=matrix.bias is not None, ROWS=256, num_warps=2
    )
    return out
