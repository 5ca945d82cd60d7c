"""Attention to the keys that any selector chooses: one that tells how good it is, or one that reads less."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import torch

from engine.attention.estimated import AUDIT_EVERY, Estimated
from engine.attention.exact import Exact
from engine.attention.sequence import Rows
from engine.retrieval.selection import Selector
from kernels import cpu
from kernels.cpu import gather

_EVERY_ROW = 1 << 30


class Selected(Estimated):
    """Reads of a chain the keys that `selector` chooses among the open ones, and all others; the tail is read whole.

    open: [layers, Hkv, T] bool, of every position of the chain that the selector was made for. See `Estimated` for what is counted.
    """

    def __init__(
        self, exact: Exact, selector: Selector, open: torch.Tensor, dense: Collection[int] = (), audit_every: int = AUDIT_EVERY
    ) -> None:
        super().__init__(exact, dense, audit_every)
        self._selector = selector
        self._closed = [[(~of_head).nonzero().flatten().int() for of_head in of_layer] for of_layer in open]
        self._length = open.shape[2]
        self._layout: tuple[object, ...] = ()
        self._lists: dict[int, tuple[cpu.BlockList, cpu.BlockList]] = {}

    def _applies(self, rows: Rows) -> bool:
        return rows.takes[0][0].chain_length == self._length

    def _drawn_from(self, layer: int) -> int:
        return self._length

    def _estimate(self, layer: int, q: torch.Tensor, rows: Rows) -> tuple[torch.Tensor, torch.Tensor, int | torch.Tensor]:
        kv_heads, (count, heads, dim) = self.config.kv_heads, q.shape
        group = heads // kv_heads
        ids, weights, read = [], [], torch.zeros(count, kv_heads, 2, dtype=torch.int64)
        choosing = torch.zeros(count, dtype=torch.int64)
        for row, position in enumerate(rows.positions.tolist()):
            chosen = self._selector.select(layer, q[row].view(kv_heads, group, dim), position)
            choosing[row] = chosen.index_bytes
            for head, (drawn, on_top, closed) in enumerate(zip(chosen.ids, chosen.log_weights, self._closed[layer], strict=True)):
                ids.append(torch.cat([closed, drawn.int()]))
                weights.append(torch.cat([torch.zeros(group, len(closed)), on_top], 1))
                read[row, head, 0] = len(ids[-1])
                read[row, head, 1] = (weights[-1] > -torch.inf).sum()
        tail, chain = self._blocks(layer, rows)
        by = ids, weights, self.config.scale, self.config.attention_softcap
        return gather.attend(q, rows.positions, tail, chain, *by)[0], read, choosing

    def _blocks(self, layer: int, rows: Rows) -> tuple[cpu.BlockList, cpu.BlockList]:
        """The tail and the chain, made anew only when the sequence or its memory changes."""
        sequence = rows.takes[0][0]
        layout = (sequence.serial, sequence.tail.address)
        if layout != self._layout:
            self._layout = layout
            self._lists.clear()
        if (made := self._lists.get(layer)) is None:
            *chain, tail = [replace(stretch.block(layer), row_begin=0, row_end=_EVERY_ROW) for stretch in rows.stretches()]
            made = self._lists[layer] = cpu.BlockList([tail]), cpu.BlockList(chain)
        return made
