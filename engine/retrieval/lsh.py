"""Hash tables of the keys of a part (MagicPIG, arXiv:2410.16179): made of its segments, and a selector that draws by them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import torch

from engine.attention.sequence import KV
from engine.retrieval.candidates import Candidates
from engine.retrieval.selection import Selection, from_dense
from kernels import lsh
from kernels.cpu.lsh import Directions, build
from kernels.lsh import MOST_KEYS, Index
from kernels.reference import Block

BITS, TABLES = 10, 150
"""As published: about 2 % of the keys are drawn."""

SEED = 43
"""Of the directions, which are the same for all models, layers and heads."""

FULL = 1024
"""Tokens of a segment that another one of the same part may follow."""


def directions(dim: int, bits: int = BITS, tables: int = TABLES, seed: int = SEED) -> Directions:
    return Directions(lsh.hashing(dim, bits, tables, seed))


Some = TypeVar("Some", bound=KV)


def runs(segments: Sequence[Some]) -> list[list[Some]]:
    """Segments by parts: a part ends with a segment that isn't full, or where more keys have no number in an index."""
    found: list[list[Some]] = []
    ended = True
    for segment in segments:
        if ended or sum(kv.tokens for kv in found[-1]) + segment.tokens > MOST_KEYS:
            found.append([])
        found[-1].append(segment)
        ended = segment.tokens != FULL
    return found


def make(segments: Sequence[KV], made_with: Directions, layer: int) -> Index:
    """The index of the keys of a part in one layer."""
    blocks, position = [], 0
    for kv in segments:
        blocks.append(Block(kv.key(layer), kv.value(layer), position, 0, 1))
        position += kv.tokens
    return build(blocks, made_with)


class Lsh:
    """A `Selector`. lengths: tokens of the parts of the chain, each of which gets an index; the last one ends with the chain, and what
    comes before the first one isn't open."""

    def __init__(self, candidates: Candidates, lengths: Sequence[int], bits: int = BITS, tables: int = TABLES, seed: int = SEED) -> None:
        self._candidates, dim = candidates, candidates.keys[0].shape[2]
        self._made_with = directions(dim, bits, tables, seed)
        total = candidates.keys[0].shape[1]
        ends = [total - sum(lengths[at + 1 :]) for at in range(len(lengths))]
        self._parts = [slice(end - length, end) for length, end in zip(lengths, ends, strict=True)]
        if candidates.open[..., : self._parts[0].start].any():
            raise ValueError("keys before the first part are open")
        self._indexes = [[self._index(keys[:, part]) for part in self._parts] for keys in candidates.keys]

    def _index(self, keys: torch.Tensor) -> Index:
        return build([Block(keys, keys, 0, 0, 1)], self._made_with)

    @property
    def bytes(self) -> int:
        """Of all tables."""
        every = (index for of_layer in self._indexes for index in of_layer)
        return sum(each.numel() * each.element_size() for i in every for each in (i.centres, i.norms, i.starts, i.ids))

    def select(self, layer: int, q: torch.Tensor, position: int) -> Selection:
        """See `Selector`; the same at every position, since the directions stay."""
        keys, shown = self._candidates.keys[layer], self._candidates.open[layer]
        weights, index_bytes = torch.full((*q.shape[:2], keys.shape[1]), -torch.inf), 0
        for part, index in zip(self._parts, self._indexes[layer], strict=True):
            found, read = lsh.choose(q.float(), keys[:, part], index, self._made_with.hashing)
            found = found.masked_fill(~shown[:, None, part], -torch.inf)
            weights[..., part] = found.float()
            index_bytes += int(read.sum()) + 4 * int((found > -torch.inf).any(1).sum())
        return from_dense(weights, index_bytes)
