"""What rows read: a sequence is a chain of immutable segments plus a tail that grows; `Rows` says which row is where.

How rows read is the business of an `Attention`.

Positions count from the start of the chain. Several sequences may share the segments of a chain.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence as Run
from dataclasses import dataclass, replace
from typing import Protocol

import torch

from engine.attention.tail import Tail as Tail
from kernels.reference import Block


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


@dataclass(frozen=True)
class Stretch:
    """Consecutive positions, from `position` on, that packed rows [row_begin, row_end) read: a segment or a tail."""

    kv: KV | Tail
    position: int
    row_begin: int
    row_end: int

    @property
    def tokens(self) -> int:
        """Of a tail, its capacity."""
        return self.kv.capacity if isinstance(self.kv, Tail) else self.kv.tokens

    def block(self, layer: int) -> Block:
        """As it lies here, in memory."""
        return Block(self.kv.key(layer), self.kv.value(layer), self.position, self.row_begin, self.row_end)


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
        self.layout = tuple((s.serial, s.tail.address, n) for s, n in self.takes)
        ends = itertools.accumulate(n for _, n in self.takes)
        self._spans = [(s, end - n, end) for (s, n), end in zip(self.takes, ends, strict=True)]

    def spans(self) -> list[tuple[Sequence, int, int]]:
        """(sequence, first row, end row) for each sequence."""
        return self._spans

    def advance(self) -> None:
        for sequence, count in self.takes:
            sequence.tail.length += count

    def stretches(self) -> list[Stretch]:
        """All that the rows read, in order of position for each row; tails last. Neighbours that share a segment read it as one.

        A tail is listed with its whole capacity: its unwritten positions lie after every row's own, so no row sees them.
        """
        made: list[Stretch] = []
        reached: dict[int, int] = {}  # id of a segment -> index of its stretch, while the rows that read it are neighbours
        tails: list[Stretch] = []
        previous_end = 0
        for sequence, begin, end in self._spans:
            position = 0
            before, reached = reached, {}
            for kv in sequence.chain:
                index = before.get(id(kv), len(made))
                if index < len(made) and made[index].row_end == begin == previous_end and made[index].position == position:
                    made[index] = replace(made[index], row_end=end)
                else:
                    index = len(made)
                    made.append(Stretch(kv, position, begin, end))
                reached[id(kv)] = index
                position += kv.tokens
            tails.append(Stretch(sequence.tail, position, begin, end))
            previous_end = end
        return made + tails


class Attention(Protocol):
    """How rows read sequences."""

    def attend(self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rows: Rows) -> torch.Tensor:
        """Write k, v [N, Hkv, D] (after RoPE) at the rows' positions, then read. q [N, Hq, D] float32; gives [N, Hq, D] float32."""
        ...
