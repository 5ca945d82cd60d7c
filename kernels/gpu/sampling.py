"""Drawing keys by their guessed logits, on the GPU; the meaning is that of `kernels.sampling`, for keys that stand in one block.

Draws are the reference's, bit for bit, where guesses and thresholds are: the same hash gives each row, KV head and key its number.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl

from kernels.gpu.language import inlined, largest, smallest, summed
from kernels.sampling import EVERYTHING, SAMPLE
from kernels.sketch import GROUP, groups

_HALVINGS: tl.constexpr = tl.constexpr(40)  # of the interval in which a threshold lies: float32 has 24 bits
_GROUP: tl.constexpr = tl.constexpr(GROUP)
_LN2: tl.constexpr = tl.constexpr(math.log(2))
_LOG_OF_BITS: tl.constexpr = tl.constexpr(math.log(2) * 2.0**-23)
_FARTHEST: tl.constexpr = tl.constexpr(200.0)
_EVERYTHING: tl.constexpr = tl.constexpr(EVERYTHING)
_KEYS = 1024


@inlined
def is_certain(bits, key, wanted):
    """Whether keys are always read; bits: of a KV head, 16 bits for each group of 16 keys."""
    return (tl.load(bits + key // _GROUP, mask=wanted, other=0).to(tl.int32) >> (key % _GROUP)) & 1 != 0


@triton.jit
def thresholds_kernel(
    guesses, certain, open_keys, budgets, thresholds, tokens, groups, step, scale,
    GROUPED: tl.constexpr, CERTAIN: tl.constexpr, LOOKED: tl.constexpr,
):  # fmt: skip
    query_head, row = tl.program_id(0), tl.program_id(1)
    head = query_head // GROUPED
    at = row.to(tl.int64) * tl.num_programs(0) + query_head
    slot = tl.arange(0, LOOKED)
    key = slot // _GROUP * step * _GROUP + slot % _GROUP
    seen = key < tokens
    if CERTAIN:
        seen = seen & ~is_certain(certain + head * groups, key, seen)
    guessed = tl.load(guesses + at * tokens + key, mask=seen, other=float("-inf")) * scale
    count = summed(seen.to(tl.float32), 0)
    wanted = tl.load(budgets + at) * (count / tl.maximum(tl.load(open_keys + head).to(tl.float32), 1.0))
    top = largest(guessed, 0)
    high = top + tl.log(summed(tl.where(seen, tl.exp(guessed - top), 0.0), 0)) - tl.log(wanted)
    low = tl.minimum(smallest(tl.where(seen, guessed, top), 0), high)
    for _ in range(_HALVINGS):
        middle = (low + high) * 0.5
        many = summed(tl.where(seen, tl.minimum(tl.exp(tl.minimum(guessed - middle, 0.0)), 1.0), 0.0), 0) > wanted
        low, high = tl.where(many, middle, low), tl.where(many, high, middle)
    tl.store(thresholds + at, tl.where(wanted >= count, _EVERYTHING, high))


@inlined
def mixed(x):
    """A hash of 32 bits: `kernels.sampling._mix`."""
    x = (x ^ (x >> 16)) * 0x7FEB352D
    x = (x ^ (x >> 15)) * 0x846CA68B
    return x ^ (x >> 16)


@triton.jit(do_not_specialize=["seed", "first"])
def draw_kernel(
    guesses, certain, thresholds, positions, log_weights, tokens, groups, seed, first, scale,
    GROUPED: tl.constexpr, CERTAIN: tl.constexpr, KEYS: tl.constexpr,
):  # fmt: skip
    key, query_head, row = tl.program_id(0) * KEYS + tl.arange(0, KEYS), tl.program_id(1), tl.program_id(2)
    head = query_head // GROUPED
    at = row.to(tl.int64) * tl.num_programs(1) + query_head
    there = key < tokens
    state = mixed(mixed((tl.load(positions + row) + seed).to(tl.uint32)) + head.to(tl.uint32))
    number = mixed((key + first).to(tl.uint32) * 0x9E3779B9 + state)
    uniform = (number >> 8).to(tl.float32) * 5.9604644775390625e-08 + 2.98023223876953125e-08  # 2^-24, 2^-25
    margin = (0x3F800000 - uniform.to(tl.int32, bitcast=True)).to(tl.float32) * _LOG_OF_BITS
    lacking = tl.load(thresholds + at) - tl.load(guesses + at * tokens + key, mask=there, other=0.0) * scale
    halvings = tl.minimum(tl.maximum(lacking, 0.0), _FARTHEST) / _LN2
    whole = tl.ceil(halvings)
    weight = tl.where(margin > lacking, whole * _LN2 - tl.log(1.0 + whole - halvings), float("-inf"))
    if CERTAIN:
        weight = tl.where(is_certain(certain + head * groups, key, there), 0.0, weight)
    tl.store(log_weights + at * tokens + key, weight, mask=there)


def thresholds(guesses: torch.Tensor, budgets: torch.Tensor, certain: torch.Tensor | None, scale: float, kv_heads: int) -> torch.Tensor:
    """[n, Hq] float32: where some groups of keys, looked at for all, would be drawn as often as their share of the budget."""
    n, heads, tokens = guesses.shape
    step = max(1, tokens // SAMPLE)
    looked = GROUP * triton.cdiv(groups(tokens), step)
    if certain is None:
        bits, open_keys = guesses, torch.full((kv_heads,), tokens, dtype=torch.int32, device=guesses.device)
    else:
        bits = certain
        shifts = torch.arange(GROUP, dtype=torch.int32, device=guesses.device)
        open_keys = (tokens - (certain.int()[..., None] >> shifts & 1).flatten(1)[:, :tokens].sum(1)).int()
    found = torch.empty(n, heads, dtype=torch.float32, device=guesses.device)
    thresholds_kernel[(heads, n)](
        guesses, bits, open_keys, budgets, found, tokens, groups(tokens), step, scale,
        GROUPED=heads // kv_heads, CERTAIN=certain is not None, LOOKED=triton.next_power_of_2(looked), num_warps=4,
    )  # fmt: skip
    return found


def draw(
    guesses: torch.Tensor,
    limits: torch.Tensor,
    certain: torch.Tensor | None,
    seed: int,
    positions: torch.Tensor,
    scale: float,
    kv_heads: int,
    first: int,
) -> torch.Tensor:
    """As `choose`, with the thresholds [n, Hq] given."""
    n, heads, tokens = guesses.shape
    log_weights = torch.empty_like(guesses)
    low = seed & 0xFFFFFFFF
    draw_kernel[(triton.cdiv(tokens, _KEYS), heads, n)](
        guesses, guesses if certain is None else certain, limits, positions, log_weights,
        tokens, groups(tokens), low - (low >> 31 << 32), first, scale,
        GROUPED=heads // kv_heads, CERTAIN=certain is not None, KEYS=_KEYS, num_warps=4,
    )  # fmt: skip
    return log_weights


def choose(
    guesses: torch.Tensor,
    budgets: torch.Tensor,
    certain: torch.Tensor | None,
    seed: int,
    positions: torch.Tensor,
    scale: float,
    kv_heads: int,
    first: int = 0,
) -> torch.Tensor:
    """[n, Hq, T] float32: what the logits of keys get on top, -ln of the probability of being drawn, -inf where a key isn't drawn.

    guesses: [n, Hq, T] float32 of query · key, up to what is the same for all keys of a head; budgets: [n, Hq] float32 keys to draw on
    the average; certain: [Hkv, groups of 16] int16, a bit for each key that is always read and gets 0, or None where none is; seed: 32
    bits; positions: [n] int32 of the rows; first: position of the first key. All contiguous.
    """
    if not guesses.numel():
        return torch.empty_like(guesses)
    return draw(guesses, thresholds(guesses, budgets, certain, scale, kv_heads), certain, seed, positions, scale, kv_heads, first)
