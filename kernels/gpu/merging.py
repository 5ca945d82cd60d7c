"""Putting partial results of attention together by log-sum-exp: each part has its mean of values and the mass it saw."""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernels.gpu.language import largest, steps, summed

TOGETHER = 16
"""Parts that are summed at a time. Counted from the first, so that parts without mass behind the others change no bit."""


@triton.jit
def merge_kernel(outs, lses, out, lse, parts, rows, DIM: tl.constexpr, WIDE: tl.constexpr, TOGETHER: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    each, dims = tl.arange(0, TOGETHER), tl.arange(0, WIDE)
    top = tl.full([TOGETHER], float("-inf"), tl.float32)
    for start in steps(0, parts, TOGETHER):
        part = start + each
        top = tl.maximum(top, tl.load(lses + part.to(tl.int64) * rows + row, mask=part < parts, other=float("-inf")))
    most = largest(top, 0)
    most = tl.where(most == float("-inf"), 0.0, most)
    total, mean = 0.0, tl.full([WIDE], 0.0, tl.float32)
    for start in steps(0, parts, TOGETHER):
        part = start + each
        at = part.to(tl.int64) * rows + row
        weight = tl.exp(tl.load(lses + at, mask=part < parts, other=float("-inf")) - most)
        wanted = (weight > 0.0)[:, None] & (dims < DIM)[None, :]  # what has no mass may never have been written
        values = tl.load(outs + at[:, None] * DIM + dims[None, :], mask=wanted, other=0.0)
        mean += summed(weight[:, None] * values, 0)
        total += summed(weight, 0)
    some = total > 0.0
    tl.store(out + row * DIM + dims, tl.where(some, mean / tl.where(some, total, 1.0), 0.0), mask=dims < DIM)
    tl.store(lse + row, tl.where(some, most + tl.log(tl.where(some, total, 1.0)), float("-inf")))


def merge(outs: torch.Tensor, lses: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(out [n, Hq, D], lse [n, Hq]) of parts outs [p, n, Hq, D] and lses [p, n, Hq], float32 contiguous.

    A part whose lse is -inf is not looked at; where all are, out is 0 and lse -inf.
    """
    parts, rows, heads, dim = outs.shape
    out, lse = outs.new_empty(rows, heads, dim), lses.new_empty(rows, heads)
    if rows:
        merge_kernel[(rows * heads,)](
            outs, lses, out, lse, parts, rows * heads, DIM=dim, WIDE=triton.next_power_of_2(dim), TOGETHER=TOGETHER, num_warps=2
        )
    return out, lse
