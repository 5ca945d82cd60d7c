"""The tail of a sequence: KV of what comes after the chain, mutable, in memory and, where rows are read on a device, there as well."""

from __future__ import annotations

import torch

from engine.model.config import ModelConfig


class Tail:
    """Written in place, can be cut back.

    kv: [layers, 2, Hkv, capacity, D], the order of a segment file, so that a full tail is written to disk as it lies. On a device
    stands the same (`on`); what is written there comes back when somebody looks at it here.
    """

    def __init__(self, config: ModelConfig, dtype: torch.dtype, capacity: int = 256) -> None:
        self._here = torch.zeros(config.layers, 2, config.kv_heads, capacity, config.head_dim, dtype=dtype)
        self._there: torch.Tensor | None = None
        self._away = [(0, 0)] * config.layers  # positions of each layer that are written on the device alone
        self.length = 0

    @property
    def kv(self) -> torch.Tensor:
        for layer in range(len(self._away)):
            self.fetch(layer)
        return self._here

    @property
    def capacity(self) -> int:
        return self._here.shape[3]

    @property
    def address(self) -> int:
        """Changes when the tail moves to other memory, here and there."""
        return self._here.data_ptr()

    def key(self, layer: int) -> torch.Tensor:
        """[Hkv, capacity, D]."""
        self.fetch(layer)
        return self._here[layer, 0]

    def value(self, layer: int) -> torch.Tensor:
        """[Hkv, capacity, D]."""
        self.fetch(layer)
        return self._here[layer, 1]

    def on(self, device: torch.device) -> torch.Tensor:
        """kv on a device; from now on writes go there."""
        if self._there is None:
            self._there = torch.empty_like(self._here, device=device).copy_(self._here)
        return self._there

    def reserve(self, length: int) -> None:
        """Make room for `length` tokens; what is there stays."""
        if length <= self.capacity:
            return
        capacity = max(length, 2 * self.capacity)
        self._here = self._grown(self._here, capacity)
        if self._there is not None:
            self._there = self._grown(self._there, capacity)

    def _grown(self, kv: torch.Tensor, capacity: int) -> torch.Tensor:
        grown = torch.zeros((*kv.shape[:3], capacity, kv.shape[4]), dtype=kv.dtype, device=kv.device)
        grown[:, :, :, : self.length] = kv[:, :, :, : self.length]
        return grown

    def write(self, layer: int, start: int, k: torch.Tensor, v: torch.Tensor) -> None:
        """k, v [n, Hkv, D] at tail positions [start, start + n)."""
        end = start + k.shape[0]
        kv = self._here if self._there is None else self._there
        kv[layer, 0, :, start:end] = k.transpose(0, 1)
        kv[layer, 1, :, start:end] = v.transpose(0, 1)
        if self._there is not None:
            low, high = self._away[layer]
            self._away[layer] = (min(low, start), max(high, end)) if low < high else (start, end)

    def fetch(self, layer: int) -> None:
        """Bring here what is written on the device alone."""
        low, high = self._away[layer]
        if low < high and self._there is not None:
            self._here[layer, :, :, low:high] = self._there[layer, :, :, low:high].to(self._here.device)
            self._away[layer] = (0, 0)

    def cut(self, length: int) -> None:
        """Forget all but the first `length` tokens."""
        self.length = min(self.length, length)
