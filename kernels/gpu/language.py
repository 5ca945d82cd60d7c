"""What the kernels are written with where Triton's compiler and its interpreter differ, and float32 products on tensor cores.

The interpreter (Triton 3.6) prepares the whole language anew for each call of a jitted function, tl.sum included; can't count to a
number that a kernel found, since numpy 2.4; multiplies the bit patterns of bf16 operands and loses the carry when it rounds to bf16; and
hands products to a library whose sums differ with where a row stands. So in the interpreter functions inside of kernels are plain ones,
operands stay float32 that bf16 could hold, and products are written out. They are the same numbers.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import triton
import triton.language as tl

INTERPRETED: tl.constexpr = tl.constexpr(triton.knobs.runtime.interpret)
_UPPER_HALF: tl.constexpr = tl.constexpr(-65536)  # of a float32: the bits that bf16 has


def inlined(function: Any) -> Any:
    """Decorates what kernels call."""
    return function if INTERPRETED.value else triton.jit(function)


def _counted(begin: Any, end: Any, step: Any) -> Iterator[int]:
    return iter(range(*(int(each.handle.data.item()) if isinstance(each, tl.tensor) else int(each) for each in (begin, end, step))))


steps = _counted if INTERPRETED.value else tl.range
"""`range` in kernels, where begin or end is a number that the kernel found."""


def _reduced(combine: Any) -> Any:
    return lambda x, axis=None: tl.reduce(x, axis, combine)


summed = _reduced(tl.standard._sum_combine) if INTERPRETED.value else tl.sum
largest = _reduced(tl.standard._elementwise_max) if INTERPRETED.value else tl.max
smallest = _reduced(tl.standard._elementwise_min) if INTERPRETED.value else tl.min
"""`tl.sum`, `tl.max` and `tl.min`."""


@inlined
def operand(x):
    """Numbers that bf16 holds, of type bf16 or float32, as an operand of `dot`."""
    if INTERPRETED:
        return x.to(tl.float32)
    else:  # noqa: RET505  the compiler follows only the branch that is meant
        return x.to(tl.bfloat16)


@inlined
def rounded(x):
    """The bf16 numbers nearest to float32 ones, ties to even."""
    if INTERPRETED:
        bits = x.to(tl.int32, bitcast=True)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).to(tl.int16).to(tl.bfloat16, bitcast=True)
    else:  # noqa: RET505
        return x.to(tl.bfloat16)


@inlined
def upper(x):
    """float32 cut to the eight leading bits that bf16 holds."""
    return (x.to(tl.int32, bitcast=True) & _UPPER_HALF).to(tl.float32, bitcast=True)


@inlined
def dot(a, b, acc):
    """acc + a · b, each row of a for itself, summed in float32."""
    if INTERPRETED:
        return acc + summed(a[:, :, None] * b[None, :, :], 1)
    else:  # noqa: RET505
        return tl.dot(a, b, acc, input_precision="ieee")


@inlined
def product(a, b, acc):
    """acc + a · b for a [M, K] and b [K, N], each float32 or bf16, exact but for the rounding of sums in float32.

    Float32 next to bf16 goes in three pieces of eight bits each, smallest first: tensor cores then do what float32 products would.
    """
    if b.dtype == tl.bfloat16:
        if a.dtype == tl.bfloat16:
            acc = dot(operand(a), operand(b), acc)
        else:
            high = upper(a)
            rest = a - high
            middle = upper(rest)
            acc = dot(operand(rest - middle), operand(b), acc)
            acc = dot(operand(middle), operand(b), acc)
            acc = dot(operand(high), operand(b), acc)
    else:
        acc = dot(a.to(tl.float32), b, acc)
    return acc
