"""Oracle sampling: keys are drawn, with repeats, from the very softmax that is estimated. A yardstick: it reads every key to choose.

Over what was drawn the estimate is the mean of the values drawn, and the mass it stands for is exact (MagicPIG,
arXiv:2410.16179, section 3.2).
"""

from __future__ import annotations

import math

import torch

from engine.retrieval.candidates import Candidates
from engine.retrieval.selection import Selection, from_dense
from kernels.sampling import seed_of, uniforms


class Oracle:
    """budget: draws of each query head, of which some may meet the same key."""

    def __init__(self, candidates: Candidates, budget: int, seed: int) -> None:
        self._candidates, self._budget, self._seed = candidates, budget, seed

    def select(self, layer: int, q: torch.Tensor, position: int) -> Selection:
        """See `Selector`. The heads of a group look up the same random numbers, so that they meet partly the same keys."""
        logits = self._candidates.logits(layer, q).double()
        probabilities = torch.where(logits > -torch.inf, torch.softmax(logits, -1), 0.0)
        rising = probabilities.cumsum(-1)
        r = uniforms(seed_of(self._seed, layer), torch.tensor([position]), q.shape[0], torch.arange(self._budget))[0]
        targets = r[:, None].expand(*q.shape[:2], -1).double() * rising[..., -1:]
        met = torch.searchsorted(rising, targets.contiguous(), right=True).clamp_max(logits.shape[-1] - 1)
        times = torch.zeros_like(logits).scatter_add_(-1, met, torch.ones_like(targets))
        weights = times.log() - math.log(self._budget) - probabilities.log()
        drawn = (times > 0) & (probabilities > 0)
        return from_dense(torch.where(drawn, weights, -torch.inf).float(), self._candidates.key_bytes(layer))
