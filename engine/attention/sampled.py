"""Sampled attention: rows read a few keys of a chain, drawn by what sketches guess of them, and everything else of their sequence: tails,
and segments without a sketch.

What lies on a device is read whole, which its memory allows at many times the speed: only what lies in memory alone is drawn from, by
the processor, and both partial results are merged by log-sum-exp.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import torch

from engine.attention.estimated import AUDIT_EVERY, Estimated
from engine.attention.exact import Exact
from engine.attention.sequence import Rows
from kernels import cpu
from kernels.budgets import Promise
from kernels.cpu import sampled
from kernels.sampling import SAMPLE, Drawn, SketchedBlock, seed_of
from kernels.sketch import GROUP, Projection

LOCAL = 64
"""Last keys of a chain that are always read."""

_EVERY_ROW = 1 << 30


class Sketched(Protocol):
    """A sketch of a segment."""

    @property
    def layers(self) -> Sequence[torch.Tensor]:
        """One [Hkv, groups, planes, 64] uint8 a layer."""
        ...


class Sampled(Estimated):
    """Draws about `keys` keys of the sketched segments for each row and query head; with a promise, to tell how many keep it.

    sketches: of segments, by id of the segment. certain: by id of the segment, [layers, Hkv, groups of 16] int16, a bit for each key
    that is always read. What is promised is promised of what memory gives. stages: where it is set, what each stage of a draw without a
    promise takes is added to it, see `kernels.cpu.sampled.attend`. See `Estimated` for the rest.
    """

    def __init__(
        self,
        exact: Exact,
        projections: Sequence[Projection],
        sketches: Mapping[int, Sketched],
        keys: float,
        seed: int,
        certain: Mapping[int, torch.Tensor] | None = None,
        dense: Collection[int] = (),
        audit_every: int = AUDIT_EVERY,
        promise: Promise | None = None,
    ) -> None:
        super().__init__(exact, dense, audit_every, promise.epsilon if promise else None)
        self._promise = promise
        self._projections, self._sketches, self._keys = projections, sketches, float(keys)
        self._seeds = [seed_of(seed, layer) for layer in range(exact.config.layers)]
        self._certain = certain or {}
        self.stages: torch.Tensor | None = None
        self._budgets = torch.empty(0, 0)
        self._known: tuple[object, ...] = ()  # where the last sequence lay
        self._sketched = False  # whether anything of it can be sampled
        self._layout: tuple[object, ...] = ()
        self._lists: dict[int, tuple[cpu.BlockList, sampled.SketchedList]] = {}

    def _estimate(self, layer: int, q: torch.Tensor, rows: Rows) -> tuple[torch.Tensor, torch.Tensor, int | torch.Tensor]:
        drawn = self.exact.completed(layer, q, rows, lambda q_here: self._draw(layer, q_here, rows))
        there = self._drawn_from(layer)
        looked_at = there + there // max(1, there // SAMPLE)  # some for the threshold, all for the draws
        return drawn.out, drawn.read, looked_at * self._projections[layer].layout.bytes_per_key

    def _draw(self, layer: int, q: torch.Tensor, rows: Rows) -> Drawn:
        whole, drawn_from = self._blocks(layer, rows)
        if self._budgets.shape != q.shape[:2]:
            self._budgets = torch.full(q.shape[:2], self._keys)
        by = self._projections[layer], self._budgets, self._seeds[layer], self.config.scale, self.config.attention_softcap
        if self._promise:
            return sampled.attend_within(self._promise, q, rows.positions, whole, drawn_from, *by)
        return sampled.attend(q, rows.positions, whole, drawn_from, *by, self.stages)

    def _drawn_from(self, layer: int) -> int:
        return self._lists[layer][1].tokens

    def _applies(self, rows: Rows) -> bool:
        if (lies := self.exact.arranged(rows)) != self._known:
            self._known = lies
            self._sketched = any(id(stretch.kv) in self._sketches for stretch in self.exact.here(rows))
        return self._sketched

    def _blocks(self, layer: int, rows: Rows) -> tuple[cpu.BlockList, sampled.SketchedList]:
        """What is read whole and what is drawn from, made anew only when the sequence or its memory changes."""
        if (layout := (self._known, rows.takes[0][0].tail.address)) != self._layout:
            self._layout = layout
            self._lists.clear()
        if (made := self._lists.get(layer)) is None:
            whole, drawn_from = [], []
            for stretch in self.exact.here(rows):
                block = replace(stretch.block(layer), row_begin=0, row_end=_EVERY_ROW)
                if (known := self._sketches.get(id(stretch.kv))) is None:
                    whole.append(block)
                else:
                    certain = self._certain.get(id(stretch.kv))
                    drawn_from.append(SketchedBlock(block, known.layers[layer], None if certain is None else certain[layer]))
            made = self._lists[layer] = cpu.BlockList(whole), sampled.SketchedList(drawn_from)
        return made


def certain_bits(chosen: torch.Tensor) -> torch.Tensor:
    """[..., groups of 16] int16 from chosen keys [..., T] bool."""
    *lead, tokens = chosen.shape
    padded = torch.nn.functional.pad(chosen, (0, -tokens % GROUP)).view(*lead, -1, GROUP)
    return (padded.int() << torch.arange(GROUP, dtype=torch.int32)).sum(-1).to(torch.int16)
