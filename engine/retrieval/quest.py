"""Quest's pages (Tang et al. 2024, arXiv:2406.10774): keys are chosen by whole pages, by the highest logit a page could hold.

The bound of a page is taken from the least and the greatest number in each coordinate of its keys. A yardstick: no key stands for the
rest, as with top-k.
"""

from __future__ import annotations

import torch

from engine.retrieval.candidates import Candidates
from engine.retrieval.selection import Selection, from_dense

PAGE = 16
"""Keys of a page, as published; counted from the start of the chain."""


class Quest:
    """budget: keys of each query head, filled up to the end of a page."""

    def __init__(self, candidates: Candidates, budget: int) -> None:
        self._candidates, self._budget = candidates, budget
        self._bounds = [self._bounds_of(layer) for layer in range(len(candidates.keys))]

    def _bounds_of(self, layer: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """(least, greatest) [Hkv, pages, D] as keys are stored, and the number of open keys [Hkv, pages]."""
        keys, shown = self._candidates.keys[layer], self._candidates.open[layer, :, :, None]
        fill = -keys.shape[1] % PAGE
        least, greatest = (
            torch.nn.functional.pad(torch.where(shown, keys, outside), (0, 0, 0, fill), value=outside).view(
                len(keys), -1, PAGE, keys.shape[2]
            )
            for outside in (torch.inf, -torch.inf)
        )
        counts = torch.nn.functional.pad(shown[..., 0].int(), (0, fill)).view(len(keys), -1, PAGE).sum(-1)
        empty = counts[..., None] == 0
        return least.amin(2).masked_fill(empty, 0), greatest.amax(2).masked_fill(empty, 0), counts

    def select(self, layer: int, q: torch.Tensor, position: int) -> Selection:
        """See `Selector`; the same at every position."""
        least, greatest, counts = self._bounds[layer]
        bound = torch.bmm(q.clamp_min(0), greatest.float().mT) + torch.bmm(q.clamp_max(0), least.float().mT)  # [Hkv, G, pages]
        order = bound.masked_fill(counts[:, None] == 0, -torch.inf).argsort(dim=-1, descending=True, stable=True)
        sizes = counts[:, None].expand_as(order).gather(-1, order)
        before = sizes.cumsum(-1) - sizes
        chosen = torch.zeros_like(order, dtype=torch.bool).scatter_(-1, order, (before < self._budget) & (sizes > 0))
        open_ = self._candidates.open[layer, :, None]
        keys = chosen.repeat_interleave(PAGE, -1)[..., : open_.shape[-1]] & open_
        pages = int((counts > 0).sum())
        return from_dense(torch.where(keys, 0.0, -torch.inf), 2 * pages * least.shape[-1] * least.element_size())
