"""Exact attention: every row reads the whole of its sequence, in a sliding layer of its window. The reference that every other way is
measured against."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch

from engine.attention.sequence import KV, Rows, Stretch
from engine.model.config import ModelConfig
from kernels import cpu
from kernels.lsh import Met
from kernels.sampling import Drawn

Part = TypeVar("Part", Drawn, Met)


class Exact:
    """Reads chains and tails in place, one native call a layer.

    Counts the KV bytes that rows read (`bytes_read`, each block once a call however many rows share it). What the rows of calls with
    one sequence attend to in `watch_layers` is added up for `watched` and `scores`.
    """

    def __init__(self, config: ModelConfig, watch_layers: Sequence[int] = ()) -> None:
        self.config = config
        self.watch_layers = frozenset(watch_layers)
        self.bytes_read = 0
        self._layout: tuple[object, ...] = ()
        self._stretches: list[Stretch] = []
        self._lists: dict[int, cpu.BlockList] = {}
        self._counted: Rows | None = None  # the rows of the last call, for which `_tokens` holds
        self._tokens: dict[int, int] = {}  # window -> tokens seen
        self.watch((0,))

    def watch(self, starts: Sequence[int]) -> None:
        """Watch from here on, rows at positions from starts[i] up to the next start as group i; earlier ones not at all."""
        self._starts = torch.tensor(starts, dtype=torch.int32)
        self._watched: dict[int, torch.Tensor] = {}  # by layer, [groups, Hkv, positions]
        self._watched_rows = torch.zeros(len(starts), dtype=torch.int64)
        self._grouped: Rows | None = None  # the rows of the last call, for which `_group_of` holds
        self._group_of = torch.empty(0, dtype=torch.int32)

    def attend(self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rows: Rows) -> torch.Tensor:
        """See `engine.attention.sequence.Attention`."""
        self.write(layer, k, v, rows)
        return self._read(layer, q, rows, self._counts(layer, k, rows))

    def lies_here(self, kv: KV) -> bool:
        """Whether a segment of a chain that was read lies in memory alone."""
        return True

    def arranged(self, rows: Rows) -> tuple[object, ...]:
        """Have what rows of one sequence read where it is to lie; what this gives changes when that does."""
        return (rows.takes[0][0].serial,)

    def here(self, rows: Rows) -> Sequence[Stretch]:
        """What of it lies in memory, once it is arranged, and can be drawn from."""
        return rows.stretches()

    def completed(self, layer: int, q: torch.Tensor, rows: Rows, read: Callable[[torch.Tensor], Part]) -> Part:
        """What `read` makes of what lies here, given q in memory; all else that the rows read is merged into its `out`, which lies where
        q does."""
        return read(q)

    def write(self, layer: int, k: torch.Tensor, v: torch.Tensor, rows: Rows) -> None:
        """K and V of the rows into their tails."""
        for sequence, begin, end in rows.spans():
            sequence.tail.write(layer, sequence.tail.length, k[begin:end], v[begin:end])

    def _counts(self, layer: int, k: torch.Tensor, rows: Rows) -> bool:
        """Count what the rows read; gives whether they are watched, and has their groups then."""
        self.bytes_read += self._seen_tokens(rows, self.config.window_of(layer)) * 2 * k.shape[1] * k.shape[2] * k.element_size()
        watching = layer in self.watch_layers and len(rows.takes) == 1
        if watching:
            self._group(rows)
        return watching

    def _read(self, layer: int, q: torch.Tensor, rows: Rows, watching: bool) -> torch.Tensor:
        """Everything as it lies here, in memory."""
        blocks = self._blocks(layer, rows)
        scale, softcap, window = self.config.scale, self.config.attention_softcap, self.config.window_of(layer)
        if watching:
            return cpu.attend(q, rows.positions, blocks, scale, softcap, window, self._room(layer, blocks.keys), self._group_of)
        return cpu.attend(q, rows.positions, blocks, scale, softcap, window)

    def watched(self, layers: Sequence[int]) -> torch.Tensor:
        """[groups, positions] float32: the probability that a row of each group gives to each position, summed over heads and these
        layers, mean over the group's rows; zeros beyond what they saw and where there were none.

        Of the layers only those that see the whole text count, where there are any: a sliding layer knows what is near.
        """
        seeing = [layer for layer in layers if not self.config.window_of(layer)] or layers
        found = [given.sum(1) for layer in seeing if (given := self._given(layer)) is not None]
        together = torch.stack(found).sum(0) if found else torch.zeros(len(self._starts), 0)
        return together / self._watched_rows.clamp_min(1)[:, None]

    def scores(self, layer: int, group: int) -> torch.Tensor:
        """[Hkv, positions] float32: the probabilities that the rows of a group gave in one layer, summed over query heads and rows."""
        given = self._given(layer)
        assert given is not None, f"rows were watched in layer {layer}"
        return given[group]

    def _given(self, layer: int) -> torch.Tensor | None:
        """[groups, Hkv, positions] of a layer; None where no row was watched."""
        return self._watched.get(layer)

    def _group(self, rows: Rows) -> None:
        """Have groups for these rows."""
        if rows is not self._grouped:
            self._grouped = rows
            self._group_of = torch.bucketize(rows.positions, self._starts, out_int32=True, right=True) - 1
            self._watched_rows += torch.bincount(self._group_of[self._group_of >= 0], minlength=len(self._starts))

    def _room(self, layer: int, keys: int) -> torch.Tensor:
        """Where what rows give to so many keys in a layer is added up; what is there stays."""
        there = self._watched.get(layer)
        if there is None or there.shape[2] != keys:
            grown = torch.zeros(len(self._starts), self.config.kv_heads, keys)
            if there is not None:
                kept = min(keys, there.shape[2])
                grown[:, :, :kept] = there[:, :, :kept]
            self._watched[layer] = there = grown
        return there

    def _seen_tokens(self, rows: Rows, window: int) -> int:
        """`_seen_tokens`, counted once for all layers with the same window."""
        if rows is not self._counted:
            self._counted, self._tokens = rows, {}
        if window not in self._tokens:
            self._tokens[window] = _seen_tokens(rows, window)
        return self._tokens[window]

    def _blocks(self, layer: int, rows: Rows) -> cpu.BlockList:
        """The list of one layer, made anew only when the sequences, their memory or the row counts change."""
        if rows.layout != self._layout:
            self._layout = rows.layout
            self._stretches = rows.stretches()
            self._lists.clear()
        if (made := self._lists.get(layer)) is None:
            made = self._lists[layer] = cpu.BlockList([stretch.block(layer) for stretch in self._stretches])
        return made


def _seen_tokens(rows: Rows, window: int) -> int:
    """Positions of the distinct chains and tails of this call that a row may see; window: see `reference.attend`."""
    first: dict[int, int] = {}  # id of a segment or tail -> its first position that is seen
    tokens: dict[int, int] = {}
    for sequence, count in rows.takes:
        unseen = sequence.length + 1 - window if window else 0  # by the first of its rows, so by all
        position = 0
        for part, length in [*((kv, kv.tokens) for kv in sequence.chain), (sequence.tail, sequence.tail.length + count)]:
            first[id(part)] = min(first.get(id(part), length), max(0, unseen - position))
            tokens[id(part)] = length
            position += length
    return sum(max(0, length - first[part]) for part, length in tokens.items())
