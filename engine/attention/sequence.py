"""What rows read: a sequence is a chain of immutable segments plus a tail that grows; `Rows` says which row is where.

How rows read is the business of an `Attention`.

Positions count from the start of the chain. Several sequences may share the segments of a chain.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence as Run
from typing import Protocol

import torch

from engine.model.config import ModelConfig


class KV(Protocol):
    """Keys and values of consecutive positions for every layer: a mapped segment, or one still in memory."""

    @property
    def tokens(self) -> int: ...

    def key(self, layer: int) -> torch.Tensor:
        """[Hkv, T, D] after RoPE."""
        ...

    def value(self, layer: int) -> torch.Tensor:
        """[Hkv, T, D]."""
        ...


class Tail:
    """KV of what comes after the chain: in memory, written in place, can be cut back.

    kv: [layers, 2, Hkv, capacity, D], the order of a segment file, so that a full tail is written to disk as it lies.
    """

    def __init__(self, config: ModelConfig, dtype: torch.dtype, capacity: int = 256) -> None:
        self._shape = (config.layers, 2, config.kv_heads, capacity, config.head_dim)
        self.kv = torch.zeros(self._shape, dtype=dtype)
        self.length = 0

    @property
    def capacity(self) -> int:
        return self.kv.shape[3]

    def reserve(self, length: int) -> None:
        """Make room for `length` tokens; what is there stays."""
        if length <= self.capacity:
            return
        capacity = max(length, 2 * self.capacity)
        grown = torch.zeros((*self.kv.shape[:3], capacity, self.kv.shape[4]), dtype=self.kv.dtype)
        grown[:, :, :, : self.length] = self.kv[:, :, :, : self.length]
        self.kv = grown

    def write(self, layer: int, start: int, k: torch.Tensor, v: torch.Tensor) -> None:
        """k, v [n, Hkv, D] at tail positions [start, start + n)."""
        into = self.kv[layer, :, :, start : start + k.shape[0]]
        into[0] = k.transpose(0, 1)
        into[1] = v.transpose(0, 1)

    def cut(self, length: int) -> None:
        """Forget all but the first `length` tokens."""
        self.length = min(self.length, length)


class Sequence:
    """A chain and its tail."""

    _serials = itertools.count()

    def __init__(self, chain: Run[KV], tail: Tail) -> None:
        self.chain = tuple(chain)
        self.tail = tail
        self.chain_length = sum(kv.tokens for kv in self.chain)
        self.serial = next(Sequence._serials)

    @property
    def length(self) -> int:
        """Tokens read so far, which is the position of the next one."""
        return self.chain_length + self.tail.length


class Rows:
    """Packed rows of one call: the next `count` tokens of each sequence, in the order given.

    positions: [N] int32. `advance()` makes them part of their sequences once the call has succeeded.
    """

    def __init__(self, takes: Run[tuple[Sequence, int]]) -> None:
        self.takes = tuple(takes)
        self.positions = torch.cat([torch.arange(s.length, s.length + n, dtype=torch.int32) for s, n in self.takes])
        self.last_position = max(s.length + n for s, n in self.takes) - 1
        for sequence, count in self.takes:
            sequence.tail.reserve(sequence.tail.length + count)
        self.layout = tuple((s.serial, s.tail.kv.data_ptr(), n) for s, n in self.takes)
        ends = itertools.accumulate(n for _, n in self.takes)
        self._spans = [(s, end - n, end) for (s, n), end in zip(self.takes, ends, strict=True)]

    def spans(self) -> list[tuple[Sequence, int, int]]:
        """(sequence, first row, end row) for each sequence."""
        return self._spans

    def advance(self) -> None:
        for sequence, count in self.takes:
            sequence.tail.length += count


class Attention(Protocol):
    """How rows read sequences."""

    def attend(self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rows: Rows) -> torch.Tensor:
        """Write k, v [N, Hkv, D] (after RoPE) at the rows' positions, then read. q [N, Hq, D] float32; gives [N, Hq, D] float32."""
        ...
