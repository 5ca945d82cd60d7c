"""What sampled attention means, in plain torch: some blocks read whole, of others only keys that are drawn.

A key whose guessed logit lacks x to the threshold of a query head is used with probability p(x), about e^-x and 1 where x <= 0, and then
its logit gets -ln p(x) on top, which is 1 / that probability as a weight (Horvitz and Thompson 1952; threshold sampling as in
Duffield, Lund and Thorup 2007). One draw for each key and row is shared by the query heads of a KV head, so that they want the same
rows. The threshold makes the expected number of keys about the budget; it is found on a part of the groups that doesn't depend on
the draws, so sums over keys stay unbiased. Certain keys are always read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from kernels.reference import Block
from kernels.sketch import GROUP, Projection, groups, guess

CHUNK = 1024
"""Keys that a thread takes at a time: multiples of `GROUP`, counted from the start of a block."""

SAMPLE = 1024
"""Keys, about, on which a threshold is found."""

EVERYTHING = -1e30
"""The threshold at which every key is certain."""


@dataclass(frozen=True)
class SketchedBlock:
    """A block with its sketch [Hkv, groups, planes, 64] uint8; certain: [Hkv, groups] int16, a bit for each key that is always read.

    Every row sees all of it.
    """

    block: Block
    sketch: torch.Tensor
    certain: torch.Tensor | None = None

    @property
    def tokens(self) -> int:
        return self.block.k.shape[1]

    def is_certain(self) -> torch.Tensor:
        """[Hkv, T] bool."""
        return is_certain(self.certain, self.block.k.shape[0], self.tokens)


def is_certain(bits: torch.Tensor | None, kv_heads: int, tokens: int) -> torch.Tensor:
    """[Hkv, T] bool from bits [Hkv, groups of 16 keys] int16; none is certain where there are no bits."""
    if bits is None:
        return torch.zeros(kv_heads, tokens, dtype=torch.bool)
    return (bits[..., None] >> torch.arange(GROUP) & 1).flatten(1)[:, :tokens].bool()


@dataclass(frozen=True)
class Drawn:
    """out [N, Hq, D]; lse [N, Hq]; thresholds [N, Hq]; read [N, Hkv, 2] int32: rows of K and V read, and keys used summed over heads."""

    out: torch.Tensor
    lse: torch.Tensor
    thresholds: torch.Tensor
    read: torch.Tensor


def attend(
    q: torch.Tensor,
    positions: torch.Tensor,
    whole: Sequence[Block],
    sketched: Sequence[SketchedBlock],
    projection: Projection,
    budgets: torch.Tensor,
    seed: int,
    scale: float,
    softcap: float = 0.0,
    thresholds: torch.Tensor | None = None,
) -> Drawn:
    """q: [N, Hq, D] float; positions: [N] int; budgets: [N, Hq] keys to draw on the average; seed: 32 bits.

    whole: blocks that are read whole, by the rows at and behind their positions. thresholds: use these instead of finding them.
    """
    rows, heads, dim = q.shape
    kv_heads = projection.centres.shape[0]
    grouped = q.view(rows, kv_heads, heads // kv_heads, dim)
    limits, chosen = choose(grouped, positions, sketched, projection, budgets.view(grouped.shape[:3]), seed, scale, thresholds)
    logits, values, read = [], [], torch.zeros(rows, kv_heads, 2, dtype=torch.int32)
    for block in whole:
        hidden = torch.arange(block.position, block.position + block.k.shape[1]) > positions[:, None]
        logits.append(logits_of(grouped, block.k, scale, softcap).masked_fill(hidden[:, None, None], -torch.inf))
        values.append(block.v)
    for each, added in zip(sketched, chosen, strict=True):
        logits.append(logits_of(grouped, each.block.k, scale, softcap) + added.to(q.dtype))
        values.append(each.block.v)
        used = added > -torch.inf
        read[..., 0] += used.any(2).sum(-1)
        read[..., 1] += used.sum((2, 3))
    together = torch.cat(logits, -1)
    lse = together.logsumexp(-1)
    weights = torch.exp(together - lse[..., None]).nan_to_num(0.0)
    out = torch.einsum("nhgt,htd->nhgd", weights, torch.cat(values, 1).to(q.dtype))
    return Drawn(out.reshape(q.shape), lse.reshape(rows, heads), limits, read)


def choose(
    q: torch.Tensor,
    positions: torch.Tensor,
    sketched: Sequence[SketchedBlock],
    projection: Projection,
    budgets: torch.Tensor,
    seed: int,
    scale: float,
    thresholds: torch.Tensor | None = None,
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """What rows q [N, Hkv, G, D] draw, and what it weighs; budgets: [N, Hkv, G]; see `attend`.

    Gives thresholds [N, Hq], and for each block [N, Hkv, G, T] float64: what logits get on top, -inf where a key isn't drawn.
    """
    guesses = [guess(q, each.sketch, projection)[..., : each.tokens] * scale for each in sketched]
    if thresholds is None:
        thresholds = _thresholds(guesses, sketched, budgets)
    limits = thresholds.view(q.shape[:3])[..., None]
    chosen = []
    for each, guessed in zip(sketched, guesses, strict=True):
        lacking = limits - guessed
        at = torch.arange(each.block.position, each.block.position + each.tokens)
        drawn = margins(seed, positions, q.shape[1], at)[:, :, None] > lacking
        added = torch.where(drawn, -probability(lacking).log(), -torch.inf)
        chosen.append(added.masked_fill(each.is_certain()[None, :, None], 0.0))
    return thresholds, chosen


def probability(lacking: torch.Tensor) -> torch.Tensor:
    """p(x) of what lacks x to the threshold: e^-x with straight lines between powers of two, in float64."""
    steps = lacking.double().clamp(0, 200) / math.log(2)
    whole = steps.ceil()
    return torch.exp2(-whole) * (1 + whole - steps)


def margins(seed: int, positions: torch.Tensor, kv_heads: int, keys: torch.Tensor) -> torch.Tensor:
    """[N, Hkv, T]: how far below the threshold a key may be and still be drawn, by rows at `positions`; more than x with p(x).

    The bit pattern of a uniform number is its logarithm to base two, but for straight lines between powers of two.
    """
    u = uniforms(seed, positions, kv_heads, keys)
    return (0x3F800000 - u.view(torch.int32)).float() * (math.log(2) * 2.0**-23)


def seed_of(seed: int, layer: int) -> int:
    """The seed of a layer's draws, 32 bits: no layer draws at one position what another does at the next."""
    return int(_mix(torch.tensor((seed * 0x9E3779B1 + layer) & 0xFFFFFFFF)))


def uniforms(seed: int, positions: torch.Tensor, kv_heads: int, keys: torch.Tensor) -> torch.Tensor:
    """[N, Hkv, T] float32 in (0, 1): one for each row, KV head and key, by position; the same whenever asked for."""
    state = _mix(_mix(seed + positions.long())[:, None] + torch.arange(kv_heads))
    return (_mix(keys.long() * 0x9E3779B9 + state[..., None]) >> 8).float() * 2.0**-24 + 2.0**-25


def _mix(x: torch.Tensor) -> torch.Tensor:
    """A hash of 32 bits (Wellons' lowbias32) of int64 numbers."""
    low = 0xFFFFFFFF
    x = x & low
    x = (x ^ (x >> 16)) * 0x7FEB352D & low
    x = (x ^ (x >> 15)) * 0x846CA68B & low
    return x ^ (x >> 16)


def logits_of(q: torch.Tensor, k: torch.Tensor, scale: float, softcap: float) -> torch.Tensor:
    logits = torch.einsum("nhgd,htd->nhgt", q, k.to(q.dtype)) * scale
    return softcap * torch.tanh(logits / softcap) if softcap else logits


def _thresholds(guesses: Sequence[torch.Tensor], sketched: Sequence[SketchedBlock], budgets: torch.Tensor) -> torch.Tensor:
    """[N, Hq] float32: where the groups looked at would be drawn as often as their share of the budget."""
    step = max(1, sum(each.tokens for each in sketched) // SAMPLE)
    looked, following = [], 0
    for each in sketched:
        for chunk in range(0, each.tokens, CHUNK):
            count = groups(min(CHUNK, each.tokens - chunk))
            looked.append(torch.zeros(each.tokens, dtype=torch.bool))
            while following < count:
                looked[-1][chunk + following * GROUP : min(each.tokens, chunk + CHUNK, chunk + (following + 1) * GROUP)] = True
                following += step
            following -= count
    return _solved(guesses, sketched, _merged(looked, sketched), budgets)


def _merged(looked: Sequence[torch.Tensor], sketched: Sequence[SketchedBlock]) -> list[torch.Tensor]:
    """One mask a block of those of its chunks."""
    merged, at = [], 0
    for each in sketched:
        chunks = -(-each.tokens // CHUNK)
        merged.append(torch.stack(list(looked[at : at + chunks])).any(0))
        at += chunks
    return merged


def _solved(
    guesses: Sequence[torch.Tensor], sketched: Sequence[SketchedBlock], looked: Sequence[torch.Tensor], budgets: torch.Tensor
) -> torch.Tensor:
    open_ = torch.cat([~each.is_certain() for each in sketched], 1)  # [Hkv, T]
    seen = open_ & torch.cat(list(looked))
    share = seen.sum(1) / open_.sum(1).clamp_min(1)
    wanted = (budgets * share[None, :, None]).double()
    together = torch.cat(list(guesses), -1).double().masked_fill(~seen[None, :, None], -torch.inf)
    low, high = together.amin(-1).nan_to_num(neginf=-1e4) - 1e4, together.logsumexp(-1) - wanted.log()
    for _ in range(100):
        middle = (low + high) / 2
        many = torch.exp(together - middle[..., None]).clamp_max(1).sum(-1) > wanted
        low, high = torch.where(many, middle, low), torch.where(many, high, middle)
    found = torch.where(wanted >= seen.sum(1)[None, :, None], EVERYTHING, high)
    return found.float().flatten(1)
