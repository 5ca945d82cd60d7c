"""Sampled attention: rows read a few keys of a chain, drawn by what sketches guess of them, and everything else of their sequence.

An estimate of what `Exact` gives. Tails and segments without a sketch are read whole, and so are layers whose window is short and
those that are kept dense.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import torch

from engine.attention.exact import Exact
from engine.attention.sequence import KV, Rows
from engine.attention.sequence import Sequence as Read
from engine.model.config import ModelConfig
from kernels import cpu
from kernels.cpu import sampled
from kernels.reference import Block
from kernels.sampling import SAMPLE, SketchedBlock
from kernels.sketch import Projection

_EVERY_ROW = 1 << 30


class Sketched(Protocol):
    """A sketch of a segment."""

    @property
    def layers(self) -> Sequence[torch.Tensor]:
        """One [Hkv, groups, planes, 64] uint8 a layer."""
        ...


class Sampled:
    """Draws about `keys` keys of the sketched segments for each row and query head.

    sketches: of segments, by id of the segment. dense: layers that are read whole. Counts `bytes_read` (keys, values and sketches),
    `keys_used` and `rows_read`, beside `keys_there` and `rows_there`, what exact reading would have.
    """

    def __init__(
        self,
        config: ModelConfig,
        projections: Sequence[Projection],
        sketches: Mapping[int, Sketched],
        keys: float,
        seed: int,
        dense: Collection[int] = (),
    ) -> None:
        self.config = config
        self.exact = Exact(config)
        self.keys_there = self.rows_there = 0
        self._projections, self._sketches, self._keys, self._seed = projections, sketches, float(keys), seed
        self._dense = {*dense, *(layer for layer in range(config.layers) if config.window_of(layer))}
        self._budgets = torch.empty(0, 0)
        self._bytes = 0
        self._row_bytes = 2 * config.head_dim
        self._read: list[torch.Tensor] = []  # of calls that are not counted yet
        self._counted = [0, 0]
        self._layout: tuple[object, ...] = ()
        self._lists: dict[int, tuple[cpu.BlockList, sampled.SketchedList]] = {}

    @property
    def rows_read(self) -> int:
        """Rows of K and V that were drawn, one for all query heads of a KV head."""
        return self._count_read()[0]

    @property
    def keys_used(self) -> int:
        """Keys that were drawn, summed over query heads."""
        return self._count_read()[1]

    @property
    def bytes_read(self) -> int:
        return self._bytes + self.rows_read * self._row_bytes + self.exact.bytes_read

    def _count_read(self) -> list[int]:
        if self._read:
            new = torch.cat([read.view(-1, 2) for read in self._read]).sum(0).tolist()
            self._counted = [a + b for a, b in zip(self._counted, new, strict=True)]
            self._read.clear()
        return self._counted

    def attend(self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rows: Rows) -> torch.Tensor:
        """See `engine.attention.sequence.Attention`."""
        if layer in self._dense or len(rows.takes) > 1 or not self._sampling(rows.takes[0][0]):
            return self.exact.attend(layer, q, k, v, rows)
        sequence, tail = rows.takes[0][0], rows.takes[0][0].tail
        tail.write(layer, tail.length, k, v)
        whole, drawn_from = self._blocks(layer, sequence)
        if self._budgets.shape != q.shape[:2]:
            self._budgets = torch.full(q.shape[:2], self._keys)
        seed = self._seed * 0x9E3779B1 + layer
        projection = self._projections[layer]
        scale, softcap = self.config.scale, self.config.attention_softcap
        drawn = sampled.attend(q, rows.positions, whole, drawn_from, projection, self._budgets, seed, scale, softcap)
        self._count(drawn.read, len(q), projection, drawn_from, sequence.length + len(q))
        return drawn.out

    def _sampling(self, sequence: Read) -> bool:
        return any(id(kv) in self._sketches for kv in sequence.chain)

    def _blocks(self, layer: int, sequence: Read) -> tuple[cpu.BlockList, sampled.SketchedList]:
        """What is read whole and what is drawn from, made anew only when the sequence or its memory changes."""
        layout = (sequence.serial, sequence.tail.kv.data_ptr())
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
                    drawn_from.append(SketchedBlock(block, known.layers[layer]))
                position += kv.tokens
            tail = sequence.tail.kv[layer]
            whole.append(Block(tail[0], tail[1], position, 0, _EVERY_ROW))
            made = self._lists[layer] = cpu.BlockList(whole), sampled.SketchedList(drawn_from)
        return made

    def _count(self, read: torch.Tensor, rows: int, projection: Projection, drawn_from: sampled.SketchedList, seen: int) -> None:
        kv_heads, there = self.config.kv_heads, drawn_from.tokens
        self._row_bytes = drawn_from.row_bytes
        self._read.append(read)
        self._bytes += rows * kv_heads * (there + there // max(1, there // SAMPLE)) * projection.layout.bytes_per_key
        self._bytes += rows * kv_heads * (seen - there) * self._row_bytes
        self.rows_there += rows * kv_heads * there
        self.keys_there += rows * self.config.heads * there


def sketched_only(chain: Sequence[KV], sketches: Sequence[Sketched | None]) -> dict[int, Sketched]:
    """Sketches by id of their segment, for `Sampled`."""
    return {id(kv): made for kv, made in zip(chain, sketches, strict=True) if made is not None}
