"""Priority sampling (Duffield, Lund and Thorup 2007): always so many keys, each weighed so that sums over all are right on the average.

Key i has a guessed logit g and takes a random number r in (0, 1); those with the highest g - ln r are used. With t the highest that
isn't, a key has been drawn with the probability min(1, e^(g - t)) where all other numbers stand, and its logit gets that much less
on top. Guesses only choose: what is weighed are true logits.
"""

from __future__ import annotations

import torch

from engine.retrieval.guesses import Guesses
from engine.retrieval.selection import Selection, from_dense
from kernels.sampling import seed_of, uniforms


class Priority:
    """budget: keys of each query head. The heads of a group share the random number of a key, so that they want partly the same rows."""

    def __init__(self, guesses: Guesses, budget: int, seed: int) -> None:
        self._guesses, self._budget, self._seed = guesses, budget, seed

    def select(self, layer: int, q: torch.Tensor, position: int) -> Selection:
        """See `Selector`."""
        guessed = self._guesses.of(layer, q).double()
        index_bytes = self._guesses.bytes(layer)
        if self._budget >= guessed.shape[-1]:
            return from_dense(torch.where(guessed > -torch.inf, 0.0, -torch.inf), index_bytes)
        r = uniforms(seed_of(self._seed, layer), torch.tensor([position]), q.shape[0], torch.arange(guessed.shape[-1]))[0]
        priorities = guessed - r.double().log()[:, None]
        top = priorities.topk(self._budget + 1, -1)
        threshold = top.values[..., -1:]  # -inf where no more than the budget are open: then each weighs 1
        drawn = torch.zeros_like(priorities, dtype=torch.bool).scatter_(-1, top.indices[..., :-1], True) & (guessed > -torch.inf)
        return from_dense(torch.where(drawn, (threshold - guessed).clamp_min(0), -torch.inf).float(), index_bytes)
