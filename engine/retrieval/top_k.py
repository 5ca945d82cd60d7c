"""Exact top-k: each query head uses the keys of its highest logits, and nothing stands for the rest. A yardstick, not a way to save.

It reads every key to choose. What it leaves out it leaves out at every row, so its error doesn't average out (MagicPIG,
arXiv:2410.16179, section 3).
"""

from __future__ import annotations

import torch

from engine.retrieval.candidates import Candidates
from engine.retrieval.selection import Selection, from_dense


class TopK:
    """budget: keys of each query head."""

    def __init__(self, candidates: Candidates, budget: int) -> None:
        self._candidates, self._budget = candidates, budget

    def select(self, layer: int, q: torch.Tensor, position: int) -> Selection:
        """See `Selector`; the same at every position."""
        logits = self._candidates.logits(layer, q)
        top = logits.topk(min(self._budget, logits.shape[-1]), dim=-1)
        weights = torch.full_like(logits, -torch.inf).scatter_(-1, top.indices, torch.where(top.values > -torch.inf, 0.0, -torch.inf))
        return from_dense(weights, self._candidates.key_bytes(layer))
