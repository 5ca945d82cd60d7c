"""The keys of one chain among which selectors choose, and what reading them exactly says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Candidates:
    """keys: one [Hkv, T, D] a layer, bfloat16 or float32, of the whole chain; open: [layers, Hkv, T] bool, those that may be drawn.

    scale, softcap: of logits, as in `kernels.reference.attend`.
    """

    keys: Sequence[torch.Tensor]
    open: torch.Tensor
    scale: float
    softcap: float = 0.0

    def logits(self, layer: int, q: torch.Tensor) -> torch.Tensor:
        """[Hkv, G, T] float32 for q [Hkv, G, D], -inf where a key isn't open."""
        logits = torch.bmm(q.float(), self.keys[layer].float().transpose(1, 2)) * self.scale
        if self.softcap:
            logits = self.softcap * torch.tanh(logits / self.softcap)
        return logits.masked_fill(~self.open[layer, :, None], -torch.inf)

    def count(self, layer: int) -> int:
        """Keys that are open, summed over KV heads."""
        return int(self.open[layer].sum())

    def key_bytes(self, layer: int) -> int:
        """Of all open keys as they are stored."""
        return self.count(layer) * self.keys[layer].shape[2] * self.keys[layer].element_size()

    def centre(self, layer: int) -> torch.Tensor:
        """[Hkv, D] float32: the mean of the open keys, 0 where there are none."""
        shown = self.open[layer, :, :, None]
        return torch.where(shown, self.keys[layer].float(), 0.0).sum(1) / shown.sum(1).clamp_min(1)
