"""Sketches of segments: made when a segment is committed, kept as its sidecar, mapped when a question samples."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import torch

from engine.errors import LongshelfError
from engine.library.sidecars import BUILDERS, SKETCH
from engine.store.sidecar import Array, Recipe, Sidecar, SidecarHeader
from kernels import sketch

if TYPE_CHECKING:
    from engine.attention.sequence import KV
    from engine.library.library import Library
    from engine.model.loaded import LoadedModel
    from engine.retrieval.projections import Projections
    from engine.store.segment import Segment

_NAME = "codes"


class Sketch:
    """The sketch of one segment. layers: one [Hkv, groups, planes, 64] uint8 a layer."""

    def __init__(self, layers: list[torch.Tensor]) -> None:
        self.layers = layers


def make(kv: KV, projections: Projections) -> torch.Tensor:
    """[layers, Hkv, groups, planes, 64] uint8 of a segment's keys."""
    return torch.stack([sketch.build(kv.key(layer), projection) for layer, projection in enumerate(projections.layers)])


def keep(model: LoadedModel, library: Library, digest: str, kv: KV, projections: Projections) -> Sketch:
    """Make the sketch of a segment and keep it, where there is room: without it the next question makes it again."""
    made = make(kv, projections)
    header = SidecarHeader(_recipe(model, digest, projections), (Array.of(_NAME, made, 1),), model.provenance)
    with suppress(LongshelfError):
        library.sidecars.keep(header, [made])
    return Sketch(list(made))


def of(model: LoadedModel, library: Library, segment: Segment, projections: Projections) -> Sketch:
    """The sketch of a stored segment: as it was kept, else made now and kept."""
    found = library.sidecars.find(_recipe(model, segment.digest, projections).digest)
    if found is None:
        return keep(model, library, segment.digest, segment, projections)
    return Sketch(_layers(found))


def _layers(sidecar: Sidecar) -> list[torch.Tensor]:
    return [sidecar.tensor(_NAME, layer) for layer in range(sidecar.array(_NAME).extents)]


def _recipe(model: LoadedModel, digest: str, projections: Projections) -> Recipe:
    return Recipe(SKETCH, BUILDERS[SKETCH], model.namespace, (digest,), {"projections": projections.digest})
