"""Sampled attention by hash tables, as in MagicPIG (arXiv:2410.16179): rows read the keys of a part that meet them in two tables, and
everything else of their sequence. What lies on a device is read whole there, as by `Sampled`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

import torch

from engine.attention.estimated import AUDIT_EVERY, Estimated
from engine.attention.exact import Exact
from engine.attention.sequence import KV, Rows, Stretch
from kernels import cpu
from kernels.cpu import lsh
from kernels.lsh import Index, IndexedBlock
from kernels.reference import Block

_EVERY_ROW = 1 << 30


class Hashed(Estimated):
    """parts: runs of segments of the chain, each with the index of each layer. certain: by id of a segment, [layers, Hkv, groups of 16]
    int16, a bit for each key that is always read; of a part, all segments but the last hold a multiple of 16 keys. See `Estimated` for the
    rest."""

    def __init__(
        self,
        exact: Exact,
        directions: lsh.Directions,
        parts: Sequence[tuple[Sequence[KV], Sequence[Index]]],
        certain: Mapping[int, torch.Tensor] | None = None,
        dense: Collection[int] = (),
        audit_every: int = AUDIT_EVERY,
    ) -> None:
        super().__init__(exact, dense, audit_every)
        self._directions, self._parts = directions, parts
        self._part_of = {id(kv): number for number, (segments, _) in enumerate(parts) for kv in segments}
        self._certain = [_joined(segments, certain or {}) for segments, _ in parts]
        self._known: tuple[object, ...] = ()  # where the last sequence lay
        self._found = False  # whether all of a part of it lies in memory
        self._layout: tuple[object, ...] = ()
        self._lists: dict[int, tuple[cpu.BlockList, lsh.IndexedList]] = {}

    def _applies(self, rows: Rows) -> bool:
        if (lies := self.exact.arranged(rows)) != self._known:
            self._known = lies
            self._found = any(number is not None for number, _ in self._by_part(rows))
        return self._found

    def _drawn_from(self, layer: int) -> int:
        return self._lists[layer][1].tokens

    def _estimate(self, layer: int, q: torch.Tensor, rows: Rows) -> tuple[torch.Tensor, torch.Tensor, int | torch.Tensor]:
        whole, indexed = self._blocks(layer, rows)
        by = self._directions, self.config.scale, self.config.attention_softcap
        met = self.exact.completed(layer, q, rows, lambda q_here: lsh.attend(q_here, rows.positions, whole, indexed, *by))
        return met.out, met.read[..., :2], met.read[..., 2]

    def _blocks(self, layer: int, rows: Rows) -> tuple[cpu.BlockList, lsh.IndexedList]:
        """What is read whole and what is looked up, made anew only when the sequence or its memory changes."""
        if (layout := (self._known, rows.takes[0][0].tail.address)) != self._layout:
            self._layout = layout
            self._lists.clear()
        if (made := self._lists.get(layer)) is None:
            whole: list[Block] = []
            indexed: list[IndexedBlock] = []
            for number, stretches in self._by_part(rows):
                blocks = [replace(stretch.block(layer), row_begin=0, row_end=_EVERY_ROW) for stretch in stretches]
                if number is None:
                    whole += blocks
                else:
                    certain = self._certain[number]
                    indexed.append(IndexedBlock(blocks, self._parts[number][1][layer], None if certain is None else certain[layer]))
            made = self._lists[layer] = cpu.BlockList(whole), lsh.IndexedList(indexed)
        return made

    def _by_part(self, rows: Rows) -> list[tuple[int | None, list[Stretch]]]:
        """What lies in memory: parts with their numbers, and what belongs to none or to one of which some lies on the device."""
        runs = [(number, list(run)) for number, run in groupby(self.exact.here(rows), lambda each: self._part_of.get(id(each.kv)))]
        return [(number if number is not None and len(run) == len(self._parts[number][0]) else None, run) for number, run in runs]


def _joined(segments: Sequence[KV], certain: Mapping[int, torch.Tensor]) -> torch.Tensor | None:
    """[layers, Hkv, groups of 16] of a part, contiguous; None where nothing of it is certain."""
    if not any(id(kv) in certain for kv in segments):
        return None
    if any(kv.tokens % 16 for kv in segments[:-1]):
        raise ValueError("segments within a part hold a multiple of 16 keys")
    like = next(certain[id(kv)] for kv in segments if id(kv) in certain)
    empty = [like.new_zeros(*like.shape[:2], -(-kv.tokens // 16)) for kv in segments]
    return torch.cat([certain.get(id(kv), none) for kv, none in zip(segments, empty, strict=True)], 2).contiguous()
