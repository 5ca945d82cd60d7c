"""Sketches of keys and what they guess of logits, on the GPU; meanings: `kernels.sketch.build` and `kernels.sketch.guess`.

A plane's 4 bytes of a key are one 32-bit word here. Guessing multiplies whole numbers that bf16 holds, so its sums are exact and don't
depend on their order. Coordinates of queries and keys are float32 sums: where one lies on the edge between two steps, it may come out as
the neighbouring step.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernels.gpu.language import dot, inlined, largest, operand, steps, summed
from kernels.sketch import GROUP, Projection, groups

_KEYS, _ROWS, _DIMS = 64, 16, 16  # that a program takes at a time
_SCANNED = 512  # keys of a sketch that a program reads
_GROUP: tl.constexpr = tl.constexpr(GROUP)
_RAISE: tl.constexpr = tl.constexpr(128.0)  # what codes are raised by while they are bf16 numbers
_TO_EVEN: tl.constexpr = tl.constexpr(12582912.0)  # 1.5 * 2^23: adding it leaves no room for a fraction


@triton.jit
def build_kernel(
    keys, centres, turned, words, tokens, groups, planes, coordinates, head_stride, token_stride, fours, twos,
    DIM: tl.constexpr, KEYS: tl.constexpr, DIMS: tl.constexpr,
):  # fmt: skip
    key, plane, head = tl.program_id(0) * KEYS + tl.arange(0, KEYS), tl.program_id(1), tl.program_id(2).to(tl.int64)
    bits = tl.where(plane < fours, 4, tl.where(plane < fours + twos, 2, 1))
    first = 8 * tl.minimum(plane, fours) + 16 * tl.minimum(tl.maximum(plane - fours, 0), twos) + 32 * tl.maximum(plane - fours - twos, 0)
    slot = tl.arange(0, 32)  # a plane has as many coordinates as fill a word
    wanted = slot * bits < 32
    acc = tl.full([KEYS, 32], 0.0, tl.float32)
    for start in range(0, DIM, DIMS):
        dim = start + tl.arange(0, DIMS)
        inside = (key < tokens)[:, None] & (dim < DIM)[None, :]
        part = tl.load(keys + head * head_stride + key.to(tl.int64)[:, None] * token_stride + dim[None, :], mask=inside, other=0.0)
        centre = tl.load(centres + head * DIM + dim, mask=dim < DIM, other=0.0)
        centred = tl.where(inside, part.to(tl.float32) - centre[None, :], 0.0)
        at = turned + (head * DIM + dim)[:, None] * coordinates + (first + slot)[None, :]
        acc = dot(centred, tl.load(at, mask=(dim < DIM)[:, None] & wanted[None, :], other=0.0), acc)
    most = (1 << bits) - 1
    code = tl.minimum(tl.maximum(tl.floor(acc + (1 << (bits - 1)).to(tl.float32)), 0.0), most.to(tl.float32)).to(tl.int32)
    shift = slot // 4 * bits + slot % 4 * 8  # four neighbours lie in the four bytes
    word = summed(tl.where(wanted[None, :], code << shift[None, :], 0), 1)
    group = head * groups + key // _GROUP
    tl.store(words + (group * planes + plane) * _GROUP + key % _GROUP, word, mask=key < groups * _GROUP)


def build_sketch(keys: torch.Tensor, projection: Projection) -> torch.Tensor:
    """The sketch [Hkv, groups, planes, 64] uint8 of keys [Hkv, T, D] bf16 or float32, rows of D contiguous."""
    heads, tokens, dim = keys.shape
    layout = projection.layout
    sketch = torch.empty(heads, groups(tokens), layout.planes, 4 * GROUP, dtype=torch.uint8, device=keys.device)
    if sketch.numel():
        build_kernel[(triton.cdiv(tokens, _KEYS), layout.planes, heads)](
            keys, projection.centres, projection.keys, sketch.view(torch.int32),
            tokens, groups(tokens), layout.planes, layout.coordinates, keys.stride(0), keys.stride(1), layout.fours, layout.twos,
            DIM=dim, KEYS=_KEYS, DIMS=_DIMS, num_warps=4, num_stages=2,
        )  # fmt: skip
    return sketch


@triton.jit
def coordinates_kernel(
    q, turned, wholes, units, offsets, excesses, n, coordinates, fours, twos,
    GROUP: tl.constexpr, DIM: tl.constexpr, ROWS: tl.constexpr, WIDE: tl.constexpr, DIMS: tl.constexpr,
):  # fmt: skip
    packed, head = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.program_id(1)
    place = (packed // GROUP * tl.num_programs(1) + head) * GROUP + packed % GROUP
    there, slot = packed < n * GROUP, tl.arange(0, WIDE)
    acc = tl.full([ROWS, WIDE], 0.0, tl.float32)
    for start in range(0, DIM, DIMS):
        dim = start + tl.arange(0, DIMS)
        part = tl.load(q + place[:, None] * DIM + dim[None, :], mask=there[:, None] & (dim < DIM)[None, :], other=0.0)
        at = turned + (head * DIM + dim)[:, None] * coordinates + slot[None, :]
        acc = dot(part, tl.load(at, mask=(dim < DIM)[:, None] & (slot < coordinates)[None, :], other=0.0), acc)
    unit = tl.div_rn(tl.maximum(largest(tl.abs(acc), 1), 1e-30), tl.full([ROWS], 127.0, tl.float32))
    whole = tl.div_rn(acc, tl.broadcast_to(unit[:, None], [ROWS, WIDE])) + _TO_EVEN - _TO_EVEN
    middle = tl.where(slot < 8 * fours, 7.5, tl.where(slot < 8 * fours + 16 * twos, 1.5, 0.5))
    padded = head * tl.num_programs(0) * ROWS + packed
    tl.store(wholes + padded[:, None] * WIDE + slot[None, :], whole)
    tl.store(units + padded, unit)
    tl.store(offsets + padded, -summed(whole * middle[None, :], 1) * unit)
    tl.store(excesses + padded, summed(whole, 1) * _RAISE)


@inlined
def raised_codes(word, shift, MASK: tl.constexpr):
    """128 + codes as bf16, whose bits they are the last of."""
    return (((word >> shift[None, :]) & MASK) | 0x4300).to(tl.int16).to(tl.bfloat16, bitcast=True)


@inlined
def add_planes(
    acc, words, there, wholes, FIRST: tl.constexpr, COUNT: tl.constexpr, BITS: tl.constexpr, COORDINATE: tl.constexpr, WIDE: tl.constexpr
):
    """acc + raised codes · whole numbers of COUNT planes with codes of BITS bits, from plane FIRST and coordinate COORDINATE on.

    words: [KEYS] addresses in plane 0. Tensor cores want 16 coordinates at least, which are two planes of 4 bits.
    """
    PLANES: tl.constexpr = 2 if BITS == 4 else 1
    SLOTS: tl.constexpr = PLANES * 32 // BITS
    slot, row = tl.arange(0, SLOTS), tl.arange(0, 16)
    within = slot % (32 // BITS)
    shift = within // 4 * BITS + within % 4 * 8  # four neighbours lie in the four bytes
    for step in tl.static_range((COUNT + PLANES - 1) // PLANES):
        plane = FIRST + step * PLANES
        word = tl.load(words + plane * _GROUP, mask=there, other=0)[:, None]
        if PLANES == 2 and step * 2 + 1 < COUNT:
            second = tl.load(words + (plane + 1) * _GROUP, mask=there, other=0)[:, None]
            word = tl.where((slot < SLOTS // 2)[None, :], word, second)
        coordinate = COORDINATE + step * SLOTS + slot
        known = coordinate < COORDINATE + COUNT * (32 // BITS)
        whole = tl.load(wholes + row[None, :] * WIDE + coordinate[:, None], mask=known[:, None], other=0.0)
        acc = dot(operand(raised_codes(word, shift, (1 << BITS) - 1)), operand(whole), acc)
    return acc


@triton.jit
def guess_kernel(
    sketch, wholes, units, offsets, excesses, guesses, n, tokens, groups,
    GROUP: tl.constexpr, FOURS: tl.constexpr, TWOS: tl.constexpr, ONES: tl.constexpr, WIDE: tl.constexpr,
    KEYS: tl.constexpr, ROWS: tl.constexpr, SCANNED: tl.constexpr,
):  # fmt: skip
    tile, head = tl.program_id(1), tl.program_id(2)
    packed = tile * ROWS + tl.arange(0, ROWS)
    place = (packed // GROUP * tl.num_programs(2) + head) * GROUP + packed % GROUP
    padded = (head * tl.num_programs(1) + tile) * ROWS + tl.arange(0, ROWS)
    unit, offset, excess = tl.load(units + padded), tl.load(offsets + padded), tl.load(excesses + padded)
    of_rows = wholes + (head * tl.num_programs(1) + tile) * ROWS * WIDE
    begin = tl.program_id(0) * SCANNED
    for start in steps(begin, tl.minimum(begin + SCANNED, tokens), KEYS):
        key = start + tl.arange(0, KEYS)
        group = head.to(tl.int64) * groups + key // _GROUP
        words, there = sketch + group * ((FOURS + TWOS + ONES) * _GROUP) + key % _GROUP, key < tokens
        acc = tl.full([KEYS, ROWS], 0.0, tl.float32)
        acc = add_planes(acc, words, there, of_rows, 0, FOURS, 4, 0, WIDE)
        acc = add_planes(acc, words, there, of_rows, FOURS, TWOS, 2, 8 * FOURS, WIDE)
        acc = add_planes(acc, words, there, of_rows, FOURS + TWOS, ONES, 1, 8 * FOURS + 16 * TWOS, WIDE)
        guessed = (acc - excess[None, :]) * unit[None, :] + offset[None, :]
        into = guesses + place.to(tl.int64)[None, :] * tokens + key[:, None]
        tl.store(into, guessed, mask=there[:, None] & (packed < n * GROUP)[None, :])


def guess(q: torch.Tensor, sketch: torch.Tensor, projection: Projection, tokens: int) -> torch.Tensor:
    """[n, Hq, tokens] float32: guesses of query · (key - centre) for q [n, Hq, D] float32 contiguous, from the first keys of a sketch
    [Hkv, groups, planes, 64] contiguous. Each byte of it is read once for 16 rows (token × query head of the group)."""
    n, heads, dim = q.shape
    kv_heads, kept = sketch.shape[:2]
    layout, group = projection.layout, heads // kv_heads
    guesses = q.new_empty(n, heads, tokens)
    if not guesses.numel():
        return guesses
    tiles, wide = triton.cdiv(n * group, _ROWS), triton.next_power_of_2(layout.coordinates)
    wholes = torch.empty(kv_heads, tiles * _ROWS, wide, dtype=torch.bfloat16, device=q.device)
    units, offsets, excesses = q.new_empty(3, kv_heads, tiles * _ROWS)
    coordinates_kernel[(tiles, kv_heads)](
        q, projection.queries, wholes, units, offsets, excesses, n, layout.coordinates, layout.fours, layout.twos,
        GROUP=group, DIM=dim, ROWS=_ROWS, WIDE=wide, DIMS=_DIMS, num_warps=4, num_stages=2,
    )  # fmt: skip
    guess_kernel[(triton.cdiv(tokens, _SCANNED), tiles, kv_heads)](
        sketch.view(torch.int32), wholes, units, offsets, excesses, guesses, n, tokens, kept,
        GROUP=group, FOURS=layout.fours, TWOS=layout.twos, ONES=layout.ones, WIDE=wide,
        KEYS=2 * _KEYS, ROWS=_ROWS, SCANNED=_SCANNED, num_warps=4, num_stages=2,
    )  # fmt: skip
    return guesses
