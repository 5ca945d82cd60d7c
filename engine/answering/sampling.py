"""Choosing the next token from logits: greedy, or drawn after temperature, top-k, top-p and min-p.

Top-p is nucleus sampling (Holtzman et al. 2020, arXiv:1904.09751); min-p keeps what is at least that fraction as likely as the
likeliest (Nguyen et al. 2024, arXiv:2407.01082). Filters apply in the order top-k, top-p, min-p, to the tempered distribution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch

from engine.errors import LongshelfError


@dataclass(frozen=True)
class Sampling:
    """temperature 0 is greedy: the likeliest token, ties to the lowest id. top_k 0, top_p 1, min_p 0 filter nothing."""

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        limits = {
            "temperature": (0.0, 10.0, self.temperature),
            "top_p": (0.0, 1.0, self.top_p),
            "min_p": (0.0, 1.0, self.min_p),
            "top_k": (0, 1_000_000, self.top_k),
            "seed": (-(2**63), 2**64 - 1, self.seed),
        }
        for name, (low, high, value) in limits.items():
            if not low <= value <= high:
                raise LongshelfError("usage", f"--{name.replace('_', '-')} is {value}; it lies between {low} and {high}.")


class Chooser(Protocol):
    """Whoever says which token comes next."""

    def choose(self, logits: torch.Tensor) -> int:
        """Next token id from logits [V] float32."""
        ...


class Sampler:
    """Draws tokens; the same seed and logits give the same tokens."""

    def __init__(self, sampling: Sampling) -> None:
        self.sampling = sampling
        self._random = torch.Generator().manual_seed(sampling.seed)

    def choose(self, logits: torch.Tensor) -> int:
        """Next token id from logits [V] float32."""
        if self.sampling.temperature == 0:
            return int(logits.argmax())
        probabilities = self.distribution(logits)
        return int(torch.multinomial(probabilities, 1, generator=self._random))

    def distribution(self, logits: torch.Tensor) -> torch.Tensor:
        """[V] the distribution that is drawn from, summing to 1. Temperature must be above 0."""
        s = self.sampling
        p = torch.softmax((logits.double() - logits.max()) / s.temperature, -1)  # never above 0: no temperature is too low for it
        if s.top_k:
            smallest = p.topk(min(s.top_k, p.numel())).values[-1]
            p = torch.where(p >= smallest, p, 0)
        if s.top_p < 1:
            ordered, order = p.sort(descending=True, stable=True)
            before = ordered.cumsum(-1) - ordered  # mass of likelier tokens: the first that reaches top_p is still kept
            dropped = before >= s.top_p * ordered.sum()
            dropped[0] = False
            p[order[dropped]] = 0
        if s.min_p:
            p = torch.where(p >= s.min_p * p.max(), p, 0)
        return p / p.sum()
