"""Segments that lie on a device too, so that rows read them there: as many as there is room for, the ones read last kept longest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch

from engine.attention.in_memory import InMemory
from engine.attention.sequence import KV


@dataclass(frozen=True)
class _Copy:
    kv: KV | None  # what it is a copy of, where that is known by nothing but its place in memory
    there: InMemory
    bytes: int


class Held:
    """Copies of segments on one device. room: bytes that all of them may take."""

    def __init__(self, device: torch.device, layers: int, room: int) -> None:
        self.device, self.layers, self.room = device, layers, room
        self.bytes = 0
        self.version = 0
        """Changes with what is held."""
        self._copies: dict[object, _Copy] = {}  # the one read last comes last

    def hold(self, chain: Iterable[KV]) -> None:
        """Have copies of these, as far as there is room beside one another; what others read goes first."""
        wanted = {_name(kv): kv for kv in chain}
        for name in wanted:
            if name in self._copies:
                self._copies[name] = self._copies.pop(name)
        for name, kv in wanted.items():
            if name in self._copies:
                continue
            size = self._bytes(kv)
            for old in [each for each in self._copies if each not in wanted]:
                if self.bytes + size <= self.room:
                    break
                self.bytes -= self._copies.pop(old).bytes
                self.version += 1
            if self.bytes + size <= self.room:
                self._copies[name] = _Copy(None if isinstance(name, str) else kv, self._copied(kv), size)
                self.bytes += size
                self.version += 1

    def of(self, kv: KV) -> InMemory | None:
        """The copy of a segment."""
        found = self._copies.get(_name(kv))
        return found.there if found is not None else None

    def _bytes(self, kv: KV) -> int:
        return 2 * self.layers * kv.key(0).numel() * kv.key(0).element_size()

    def _copied(self, kv: KV) -> InMemory:
        first = kv.key(0)
        made = torch.empty(self.layers, 2, *first.shape, dtype=first.dtype, device=self.device)
        for layer in range(self.layers):
            made[layer, 0].copy_(kv.key(layer))
            made[layer, 1].copy_(kv.value(layer))
        return InMemory(made)


def _name(kv: KV) -> object:
    """A stored segment is known by its digest, whoever opened it; anything else by itself."""
    return getattr(kv, "digest", None) or id(kv)
