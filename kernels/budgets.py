"""What a promise about the error of sampled attention means: a pilot, a small draw of its own, tells how many keys the real one needs.

For one row and query head let o be what exact attention gives and ô the estimate from drawn keys (see `sampling`). Promised is that
|ô - o| <= epsilon |o| with probability 1 - delta. Keys are drawn independently, key i with probability u_i, so to first order

    ô - o = sum of w_i (drawn_i / u_i - 1) (v_i - o),    w: the softmax weights of exact attention,

a sum of independent terms of mean 0, about normal for want of a term that rules it; its covariance has the trace
V = sum of w_i^2 (1 / u_i - 1) |v_i - o|^2. Of all normal errors with that trace the one along a single direction exceeds z sqrt(V)
most often, where z^2 > 1.5364 (Székely and Bakirov 2003, Probability Theory and Related Fields 126: extremal probabilities for
Gaussian quadratic forms), so the two-sided quantile z of one normal variable does in any number of dimensions: z sqrt(V) <= epsilon |o|.

A threshold lower by -ln t, t <= 1, makes every probability 1 / t times as large until it is 1. A key of the pilot, which weighed
W_i = w_i / u_i there, stands for 1 / u_i keys like it, which makes V(t) = sum over the pilot's keys of W_i^2 max(0, t - u_i) |v_i - ô|^2
and the keys that are drawn N(t) = sum of min(1 / u_i, 1 / t): unbiased but for the pilot's own ô and normalisation. V(t) rises with t and
is convex, so the largest t that keeps the promise is found by Newton steps from 1, which is where the draw has the pilot's own budget:
fewer keys would be too few for a sum to be normal. The real draw has a seed of its own, so the threshold isn't fitted to its luck.

Guesses that are far off make a few keys weigh much more than others, and a pilot that missed them knows too little of V. `SAFETY`
stands for that: it was measured on real documents, not derived.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import torch

from kernels import sampling
from kernels.reference import Block
from kernels.sampling import EVERYTHING, Drawn, SketchedBlock
from kernels.sketch import Projection

SAFETY = 2.0
"""V is taken to be so many times what the pilot says.

Measured with pilots of 64 keys on a novel and a standard of 7,400 tokens each (default model, delta 0.1, epsilon 0.1): with 1 one error in
90 was above epsilon, with 2 one in 330, for 6 % more bytes. With sketches whose guesses were worse (projections fitted to other positions)
it was 17 % with 1, 12 % with 2 and 6 % with 4.
"""

PILOT = 0x5851F42D
"""What turns the seed of a draw into that of its pilot."""

_STEPS = 64
"""Newton steps at most."""


@dataclass(frozen=True)
class Promise:
    """most: keys that a query head draws at most; everything: where more than so many would be needed, all are read.

    Numbers of keys on the average, for each query head. One of the two may be infinite: with `most` below `everything` the promise
    isn't kept by heads that would need more.
    """

    epsilon: float
    delta: float
    most: float = math.inf
    everything: float = math.inf

    @property
    def tolerance(self) -> float:
        """The largest sqrt(V) / |o| that the pilot may find."""
        return self.epsilon / NormalDist().inv_cdf(1 - self.delta / 2) / math.sqrt(SAFETY)


def attend_within(
    promise: Promise,
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
    """As `sampling.attend`, at thresholds that a pilot tells. budgets, or thresholds: those of the pilot.

    What is read is counted for both draws, certain keys once.
    """
    parts = whole, sketched, projection
    pilot = sampling.attend(q, positions, *parts, budgets, seed ^ PILOT, scale, softcap, thresholds)
    lowered = _lowered(promise, q, positions, sketched, projection, seed ^ PILOT, scale, softcap, pilot)
    drawn = sampling.attend(q, positions, *parts, budgets, seed, scale, softcap, lowered)
    certain = torch.stack([each.is_certain().sum(1) for each in sketched]).sum(0)
    twice = torch.stack([certain, certain * (q.shape[1] // certain.numel())], -1)
    return replace(drawn, read=(pilot.read + drawn.read - twice).int())


def _lowered(
    promise: Promise,
    q: torch.Tensor,
    positions: torch.Tensor,
    sketched: Sequence[SketchedBlock],
    projection: Projection,
    seed: int,
    scale: float,
    softcap: float,
    pilot: Drawn,
) -> torch.Tensor:
    """[N, Hq] float32: the thresholds that keep the promise, by what a pilot with this seed drew."""
    rows, heads, dim = q.shape
    kv_heads = projection.centres.shape[0]
    grouped = q.view(rows, kv_heads, heads // kv_heads, dim)
    limits = pilot.thresholds.view(grouped.shape[:3])
    _, chosen = sampling.choose(grouped, positions, sketched, projection, limits, seed, scale, limits)
    out, lse = pilot.out.view(grouped.shape), pilot.lse.view(grouped.shape[:3])
    probabilities, shares = [], []
    for each, added in zip(sketched, chosen, strict=True):
        weights = torch.exp(sampling.logits_of(grouped, each.block.k, scale, softcap) + added - lse[..., None])
        drawn = (added > -torch.inf) & ~each.is_certain()[None, :, None]
        probabilities.append(torch.exp(-added).masked_fill(~drawn, torch.inf))
        shares.append((weights * _away(out, each.block.v)).square().masked_fill(~drawn, 0.0))
    target = (promise.tolerance * out.norm(dim=-1)).double().square()
    t = _lower(torch.cat(probabilities, -1), torch.cat(shares, -1), target, promise)
    lowered = torch.where(t > 0, limits + t.log(), EVERYTHING)
    return torch.where(limits == EVERYTHING, limits, lowered).float().view(rows, heads)


def _away(out: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """|v - ô| of values v [Hkv, T, D] and estimates [N, Hkv, G, D]: [N, Hkv, G, T]."""
    rows, kv_heads, group, _ = out.shape
    flat = torch.cdist(out.transpose(0, 1).flatten(1, 2), v.to(out.dtype), compute_mode="donot_use_mm_for_euclid_dist")
    return flat.view(kv_heads, rows, group, -1).transpose(0, 1)


def _lower(probabilities: torch.Tensor, shares: torch.Tensor, target: torch.Tensor, promise: Promise) -> torch.Tensor:
    """t [...] float64: what the weight at the threshold is to be multiplied by, at most 1; 0 where everything is to be read.

    probabilities: [..., n] of the pilot's keys, infinite where there is none; shares: [..., n] what each adds to V, its probability
    aside; target: [...] V as large as it may be.
    """
    u, b = probabilities.double(), shares.double()
    t = torch.ones_like(target)
    for _ in range(_STEPS):
        below = u < t[..., None]
        slope, fixed = (b * below).sum(-1), (b * u.masked_fill(~below, 0.0)).sum(-1)
        t = torch.where(t * slope - fixed > target, (target + fixed) / slope, t)
    t = torch.where(_counted(u, t) > promise.everything, 0.0, t)
    if not math.isfinite(promise.most):
        return t
    s = torch.ones_like(t)
    for _ in range(_STEPS):
        less = promise.most - _counted(u, 1 / s)
        s = torch.where(less > 0, s + less / (u < 1 / s[..., None]).sum(-1), s)
    return torch.where((t > 0) & (_counted(u, t) > promise.most), 1 / s, t)


def _counted(probabilities: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    """N(t)."""
    return torch.minimum(1 / probabilities, 1 / t[..., None]).sum(-1)
