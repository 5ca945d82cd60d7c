"""Codes of keys and queries for tables of locality-sensitive hashing, on the GPU; their meaning is `kernels.lsh.codes`.

A code is made of the signs of products with random directions (SimHash, Charikar 2002). Products are float32; where one is so near zero
that the order of its sum decides, a bit may differ from what another device says.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernels.gpu.language import dot, summed

MOST_BITS = 16
"""Of a code."""
_TABLES, _DIMS = 8, 16  # that a program takes at a time


@triton.jit
def hash_kernel(
    x, directions, codes, n, tables, bits, directions_stride,
    DIM: tl.constexpr, VECTORS: tl.constexpr, TABLES: tl.constexpr, BITS: tl.constexpr, DIMS: tl.constexpr,
):  # fmt: skip
    vector, head = tl.program_id(0) * VECTORS + tl.arange(0, VECTORS), tl.program_id(2).to(tl.int64)
    slot = tl.arange(0, TABLES * BITS)
    table, bit = tl.program_id(1) * TABLES + slot // BITS, slot % BITS
    wanted = (table < tables) & (bit < bits)
    column = table * bits + bit
    acc = tl.full([VECTORS, TABLES * BITS], 0.0, tl.float32)
    for start in range(0, DIM, DIMS):
        dim = start + tl.arange(0, DIMS)
        at = (head * n + vector)[:, None] * DIM + dim[None, :]
        part = tl.load(x + at, mask=(vector < n)[:, None] & (dim < DIM)[None, :], other=0.0).to(tl.float32)
        turned = directions + head * directions_stride + dim[:, None] * (tables * bits) + column[None, :]
        acc = dot(part, tl.load(turned, mask=(dim < DIM)[:, None] & wanted[None, :], other=0.0), acc)
    values = tl.where((acc < 0.0) & wanted[None, :], 1 << bit[None, :], 0)
    code = summed(tl.reshape(values, [VECTORS, TABLES, BITS]), 2)
    table = tl.program_id(1) * TABLES + tl.arange(0, TABLES)
    into = codes + (head * n + vector)[:, None] * tables + table[None, :]
    tl.store(into, code.to(tl.int16), mask=(vector < n)[:, None] & (table < tables)[None, :])


def hash_codes(x: torch.Tensor, directions: torch.Tensor, tables: int, bits: int) -> torch.Tensor:
    """[H, n, tables] int16 of x [H, n, D] bf16 or float32: bit i of a code says whether the product with the i-th direction of its table
    is negative; read it as uint16.

    directions: [H or 1, D, tables * bits] float32, those of a table beside one another. Both contiguous. Keys come centred, queries as
    they are. Up to 16 vectors a head, a code doesn't depend on the vectors beside it in any bit.
    """
    heads, n, dim = x.shape
    if not 1 <= bits <= MOST_BITS:
        raise ValueError(f"a code has 1 to {MOST_BITS} bits, not {bits}")
    if directions.shape[1:] != (dim, tables * bits) or directions.shape[0] not in (1, heads):
        raise ValueError(f"{tables} tables of {bits} bits need directions [{heads} or 1, {dim}, {tables * bits}]")
    codes = torch.empty(heads, n, tables, dtype=torch.int16, device=x.device)
    if codes.numel():
        vectors, stride = 16 if n <= 16 else 64, 0 if directions.shape[0] == 1 else dim * tables * bits
        grid = triton.cdiv(n, vectors), triton.cdiv(tables, _TABLES), heads
        hash_kernel[grid](
            x, directions, codes, n, tables, bits, stride,
            DIM=dim, VECTORS=vectors, TABLES=_TABLES, BITS=triton.next_power_of_2(bits), DIMS=_DIMS, num_warps=4, num_stages=2,
        )  # fmt: skip
    return codes
