"""Quick join: parts that were read apart, put behind one another as one chain without reading them again. An approximation.

Keys of a later part are turned from the positions where they were read to those that they have now (RoPE angles add up), in float32
from the stored originals, and rounded once. Its first tokens are computed anew behind what now stands before them: read at the
start of a chain they took on the weight that a start gets, and they are what later tokens looked back to. Everything else still
knows nothing of the other parts, as in Prompt Cache (Gim et al. 2024, arXiv:2311.04934) and CacheBlend (Yao et al. 2025,
arXiv:2405.16444). What is made here is kept as a sidecar of the segments it was made of, one for each later part, so that the same
parts in the same order, and whatever else begins with them, are joined without computing anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from engine.attention.in_memory import InMemory, moved
from engine.attention.sequence import KV, Rows, Tail
from engine.attention.sequence import Sequence as Read
from engine.library.sidecars import BUILDERS, QUICK_JOIN
from engine.model.loaded import LoadedModel
from engine.reading.memory import Chain
from engine.store.segment import Segment
from engine.store.sidecar import Array, Recipe, Sidecar, SidecarHeader

ANEW = 32
"""Tokens of each later part that are computed again."""


@dataclass(frozen=True)
class Link:
    """A later part as it stands behind others. runs: its tokens in order; computed: how many of them were computed for it."""

    recipe: Recipe
    runs: tuple[InMemory, ...]
    computed: int

    def header(self, model: LoadedModel) -> SidecarHeader:
        """As what it is kept: one array a run, [layers, 2, Hkv, T, D], of which each layer's K and V are verified by themselves."""
        return SidecarHeader(self.recipe, tuple(Array.of(str(n), run.kv, 2) for n, run in enumerate(self.runs)), model.provenance)


def link_recipe(model: LoadedModel, preamble: Chain, chains: Sequence[Chain]) -> Recipe:
    """What the last of these parts is made of when it is put behind the others."""
    segments = [*chains[0].segments, *(segment for chain in chains[1:] for segment in _behind(chain, preamble))]
    shift = sum(chain.length - preamble.length for chain in chains[:-1])
    digests = tuple(segment.digest for segment in segments)
    return Recipe(QUICK_JOIN, BUILDERS[QUICK_JOIN], model.namespace, digests, {"shift": shift, "anew": ANEW})


def make_link(
    model: LoadedModel, preamble: Chain, recipe: Recipe, chain: Chain, before: Sequence[KV], between_layers: Callable[[], None]
) -> Link:
    """The part of a chain put behind others, which `before` holds as they were joined. On the model thread."""
    behind = _behind(chain, preamble)
    ids = [int(i) for segment in behind for i in segment.ids[:ANEW]][:ANEW]
    runs = [_read(model, before, ids, between_layers)]
    skipped = len(ids)
    for segment in behind:
        if skipped < segment.tokens:
            runs.append(moved(model.config, segment, recipe.settings["shift"], skipped))
        skipped = max(0, skipped - segment.tokens)
    return Link(recipe, tuple(runs), len(ids))


@dataclass(frozen=True)
class Kept:
    """One run of a link that is mapped from the disk."""

    sidecar: Sidecar
    run: str

    @property
    def tokens(self) -> int:
        return self.sidecar.array(self.run).shape[3]

    def key(self, layer: int) -> torch.Tensor:
        return self.sidecar.tensor(self.run, 2 * layer)

    def value(self, layer: int) -> torch.Tensor:
        return self.sidecar.tensor(self.run, 2 * layer + 1)


def kept_runs(sidecar: Sidecar) -> tuple[Kept, ...]:
    """The runs of a link that was kept."""
    return tuple(Kept(sidecar, array.name) for array in sidecar.header.arrays)


def _behind(chain: Chain, preamble: Chain) -> tuple[Segment, ...]:
    return chain.segments[len(preamble.segments) :]


def _read(model: LoadedModel, behind: Sequence[KV], ids: list[int], between_layers: Callable[[], None]) -> InMemory:
    tail = Tail(model.config, model.decoder.dtype, len(ids))
    rows = Rows([(Read(behind, tail), len(ids))])
    model.decoder.forward(torch.tensor(ids), rows, model.exact(), None, between_layers)
    return InMemory(tail.kv)
