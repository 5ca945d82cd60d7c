"""KV that lies in memory and in no file, and the same KV turned to other positions."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from engine.attention.sequence import KV
from engine.model.config import ModelConfig
from engine.model.rope import Rope
from kernels.reference import rotate


@dataclass(frozen=True)
class InMemory:
    """A segment that was never stored; kv: [layers, 2, Hkv, T, D]."""

    kv: torch.Tensor

    @property
    def tokens(self) -> int:
        return self.kv.shape[3]

    def key(self, layer: int) -> torch.Tensor:
        return self.kv[layer, 0]

    def value(self, layer: int) -> torch.Tensor:
        return self.kv[layer, 1]


def moved(config: ModelConfig, kv: KV, by: int, skip: int = 0) -> InMemory:
    """K and V of one run without its first `skip` tokens, its keys turned as if it had been read `by` positions later."""
    first = kv.key(0)
    kinds = {*map(config.kind, range(config.layers))} - {"nope"}
    turns = {kind: tuple(each.to(first.device) for each in turn(config, kind, by)) for kind in kinds}
    made = torch.empty(config.layers, 2, config.kv_heads, kv.tokens - skip, config.head_dim, dtype=first.dtype, device=first.device)
    for layer in range(config.layers):
        key, turned = kv.key(layer)[:, skip:], turns.get(config.kind(layer))
        made[layer, 0] = rotate(key, *turned) if turned else key
        made[layer, 1] = kv.value(layer)[:, skip:]
    return InMemory(made)


def turn(config: ModelConfig, kind: str, by: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(cos, sin) [1, 1, R] of a move by so many positions in a layer of this kind; without the factor that some rules put on both, which
    keys have already."""
    cos, sin = Rope(config, kind == "sliding").at(torch.tensor([by]))
    size = torch.hypot(cos, sin)
    return cos / size, sin / size
