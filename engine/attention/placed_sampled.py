"""Sampled attention where some of a sequence lies on a device: what lies in memory alone is sampled.

What lies on the device is read whole, which its memory allows at many times the speed. The processor draws from the sketched segments in
memory and reads what it drew; both partial results are merged by log-sum-exp.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import torch

from engine.attention.estimated import AUDIT_EVERY
from engine.attention.placed import Placed
from engine.attention.sampled import Sampled, Sketched
from engine.attention.sequence import Rows, Stretch
from kernels.budgets import Promise
from kernels.cpu import FEW
from kernels.sampling import Drawn
from kernels.sketch import Projection


class PlacedSampled(Sampled):
    """As `Sampled`; q, k, v and what it gives lie on the device of `placed`. What is promised is promised of what memory gives."""

    def __init__(
        self,
        placed: Placed,
        projections: Sequence[Projection],
        sketches: Mapping[int, Sketched],
        keys: float,
        seed: int,
        certain: Mapping[int, torch.Tensor] | None = None,
        dense: Collection[int] = (),
        audit_every: int = AUDIT_EVERY,
        promise: Promise | None = None,
    ) -> None:
        super().__init__(placed, projections, sketches, keys, seed, certain, dense, audit_every, promise)
        self._placed = placed

    def attend(self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rows: Rows) -> torch.Tensor:
        self._placed.arrange(rows)
        return super().attend(layer, q, k, v, rows)

    def _applies(self, rows: Rows) -> bool:
        return len(rows.positions) <= FEW and any(id(stretch.kv) in self._sketches for stretch in self._placed.here)

    def _layout_of(self, rows: Rows) -> tuple[object, ...]:
        return *super()._layout_of(rows), self._placed.held.version

    def _here(self, rows: Rows) -> Sequence[Stretch]:
        return self._placed.here

    def _draw(self, layer: int, q: torch.Tensor, rows: Rows) -> Drawn:
        there = self._placed.read_there(layer, q, rows)
        drawn = super()._draw(layer, self._placed.crossing.down(q), rows)
        return replace(drawn, out=self._placed.crossing.merged((drawn.out, drawn.lse), there))
