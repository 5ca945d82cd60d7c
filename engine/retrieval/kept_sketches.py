"""Sketches of stored segments: made when a question first samples them, kept as their sidecars, mapped from then on."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import torch

from engine.errors import LongshelfError
from engine.library.sidecars import BUILDERS, SKETCH
from engine.reading import room
from engine.retrieval.sketches import Sketch, make
from engine.store.sidecar import Array, Recipe, Sidecar, SidecarHeader

if TYPE_CHECKING:
    from engine.model.loaded import LoadedModel
    from engine.retrieval.projections import Projections
    from engine.shelf import Shelf
    from engine.store.segment import Segment

log = logging.getLogger(__name__)

_NAME = "codes"


def of(model: LoadedModel, shelf: Shelf, segment: Segment, projections: Projections) -> Sketch:
    """The sketch of a stored segment: as it was kept, else made now, and kept where there is room. On the model thread."""
    recipe = _recipe(model, segment.digest, projections)
    found = shelf.library.sidecars.find(recipe.digest)
    if found is not None:
        return Sketch(_layers(found))
    made = make(segment, projections.layers)
    header = SidecarHeader(recipe, (Array.of(_NAME, made, 1),), model.provenance)
    try:
        if room.spare(shelf, header.size):
            shelf.library.sidecars.keep(header, [made])
    except LongshelfError as error:
        log.info("a sketch isn't kept: %s", error.message)
    return Sketch(list(made))


def _layers(sidecar: Sidecar) -> list[torch.Tensor]:
    return [sidecar.tensor(_NAME, layer) for layer in range(sidecar.array(_NAME).extents)]


def _recipe(model: LoadedModel, digest: str, projections: Projections) -> Recipe:
    return Recipe(SKETCH, BUILDERS[SKETCH], model.namespace, (digest,), {"projections": projections.digest})
