"""Sampled attention: rows read a few keys of a chain, drawn by what sketches guess of them, and everything else of their sequence.

An estimate of what `Exact` gives. Tails and segments without a sketch are read whole, and so are layers whose window is short and
those that are kept dense. Every so many tokens a token is read exactly, and beside it once more as it would have been
sampled: that tells the error.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import torch

from engine.attention.exact import Exact
from engine.attention.sequence import Rows
from engine.attention.sequence import Sequence as Read
from kernels import cpu
from kernels.cpu import sampled
from kernels.reference import Block
from kernels.sampling import SAMPLE, Drawn, SketchedBlock, seed_of
from kernels.sketch import GROUP, Projection

AUDIT_EVERY = 32
"""Tokens from one that is read exactly to the next; the first is one."""

LOCAL = 64
"""Last keys of a chain that are always read."""

_EVERY_ROW = 1 << 30


class Sketched(Protocol):
    """A sketch of a segment."""

    @property
    def layers(self) -> Sequence[torch.Tensor]:
        """One [Hkv, groups, planes, 64] uint8 a layer."""
        ...


class Sampled:
    """Draws about `keys` keys of the sketched segments for each row and query head. exact: reads what is not sampled.

    sketches: of segments, by id of the segment. certain: by id of the segment, [layers, Hkv, groups of 16] int16, a bit for each key
    that is always read. dense: layers that are read whole. Counts `bytes_read` (keys, values and sketches); `keys_read_fraction` and
    `rows_read_fraction` are shares of what exact reading takes (keys of query heads; rows of KV heads); `error_measured` is the mean
    over audits, layers and heads of |sampled - exact| / |exact|, None before the first.
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
    ) -> None:
        self.config = config = exact.config
        self.exact = exact
        self._seen = self._whole = 0  # positions that rows saw, and those of them that were read whole, summed over layers
        self._projections, self._sketches, self._keys = projections, sketches, float(keys)
        self._seeds = [seed_of(seed, layer) for layer in range(config.layers)]
        self._certain = certain or {}
        self._dense = {*dense, *(layer for layer in range(config.layers) if config.window_of(layer))}
        self._audit_every, self._steps, self._errors = audit_every, 0, [0.0, 0]
        self._budgets = torch.empty(0, 0)
        self._bytes = 0
        self._row_bytes = 0  # of a key and its value, once something was sampled
        self._read: list[torch.Tensor] = []  # of calls that are not counted yet
        self._counted = [0, 0]  # rows drawn, and keys used summed over query heads
        self._known, self._sketched = -1, False  # the last sequence, and whether anything of it can be sampled
        self._layout: tuple[object, ...] = ()
        self._lists: dict[int, tuple[cpu.BlockList, sampled.SketchedList]] = {}

    @property
    def error_measured(self) -> float | None:
        return self._errors[0] / self._errors[1] if self._errors[1] else None

    @property
    def keys_read_fraction(self) -> float:
        return self._fraction(self._count_read()[1] / self.config.heads)

    @property
    def rows_read_fraction(self) -> float:
        return self._fraction(self._count_read()[0] / self.config.kv_heads)

    def _fraction(self, drawn: float) -> float:
        return (self._whole + drawn) / self._seen if self._seen else 1.0

    @property
    def bytes_read(self) -> int:
        return self._bytes + self._count_read()[0] * self._row_bytes + self.exact.bytes_read

    def _count_read(self) -> list[int]:
        if self._read:
            new = torch.cat([read.view(-1, 2) for read in self._read]).sum(0).tolist()
            self._counted = [a + b for a, b in zip(self._counted, new, strict=True)]
            self._read.clear()
        return self._counted

    def attend(self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rows: Rows) -> torch.Tensor:
        """See `engine.attention.sequence.Attention`."""
        self._steps += layer == 0
        if layer in self._dense or len(rows.takes) > 1 or not self._sampling(rows.takes[0][0]):
            self._count_whole(rows)
            return self.exact.attend(layer, q, k, v, rows)
        if self._audit_every and self._steps % self._audit_every == 1 % self._audit_every:
            self._count_whole(rows)
            exact = self.exact.attend(layer, q, k, v, rows)
            off = (self._draw(layer, q, rows).out - exact).norm(dim=-1) / exact.norm(dim=-1).clamp_min(1e-30)
            self._errors = [self._errors[0] + float(off.sum()), self._errors[1] + off.numel()]
            return exact
        tail = rows.takes[0][0].tail
        tail.write(layer, tail.length, k, v)
        drawn = self._draw(layer, q, rows)
        self._count(layer, drawn.read, rows)
        return drawn.out

    def _draw(self, layer: int, q: torch.Tensor, rows: Rows) -> Drawn:
        whole, drawn_from = self._blocks(layer, rows.takes[0][0])
        if self._budgets.shape != q.shape[:2]:
            self._budgets = torch.full(q.shape[:2], self._keys)
        by = self._projections[layer], self._budgets, self._seeds[layer]
        return sampled.attend(q, rows.positions, whole, drawn_from, *by, self.config.scale, self.config.attention_softcap)

    def _sampling(self, sequence: Read) -> bool:
        if sequence.serial != self._known:
            self._known = sequence.serial
            self._sketched = any(id(kv) in self._sketches for kv in sequence.chain)
        return self._sketched

    def _blocks(self, layer: int, sequence: Read) -> tuple[cpu.BlockList, sampled.SketchedList]:
        """What is read whole and what is drawn from, made anew only when the sequence or its memory changes."""
        layout = (sequence.serial, sequence.tail.address)
        if layout != self._layout:
            self._layout = layout
            self._lists.clear()
        if (made := self._lists.get(layer)) is None:
            whole, drawn_from, position = [], [], 0
            for kv in sequence.chain:
                block = Block(kv.key(layer), kv.value(layer), position, 0, _EVERY_ROW)
                if (known := self._sketches.get(id(kv))) is None:
                    whole.append(block)
                else:
                    certain = self._certain.get(id(kv))
                    drawn_from.append(SketchedBlock(block, known.layers[layer], None if certain is None else certain[layer]))
                position += kv.tokens
            whole.append(Block(sequence.tail.key(layer), sequence.tail.value(layer), position, 0, _EVERY_ROW))
            made = self._lists[layer] = cpu.BlockList(whole), sampled.SketchedList(drawn_from)
        return made

    def _count(self, layer: int, read: torch.Tensor, rows: Rows) -> None:
        sequence, count = rows.takes[0]
        drawn_from, kv_heads = self._lists[layer][1], self.config.kv_heads
        there, seen = drawn_from.tokens, sequence.length + count
        self._row_bytes = drawn_from.row_bytes
        self._read.append(read)
        looked_at = there + there // max(1, there // SAMPLE)
        self._bytes += count * kv_heads * looked_at * self._projections[layer].layout.bytes_per_key
        self._bytes += count * kv_heads * (seen - there) * self._row_bytes
        self._seen += count * seen
        self._whole += count * (seen - there)

    def _count_whole(self, rows: Rows) -> None:
        seen = sum(count * (sequence.length + count) for sequence, count in rows.takes)
        self._seen += seen
        self._whole += seen


def certain_bits(chosen: torch.Tensor) -> torch.Tensor:
    """[..., groups of 16] int16 from chosen keys [..., T] bool."""
    *lead, tokens = chosen.shape
    padded = torch.nn.functional.pad(chosen, (0, -tokens % GROUP)).view(*lead, -1, GROUP)
    return (padded.int() << torch.arange(GROUP, dtype=torch.int32)).sum(-1).to(torch.int16)
