"""Sketches of stored segments: made while a document is added, kept as sidecars of its segments, mapped from then on.

One that is missing (there was no room, an earlier version read the document, it was given up) is made when a question first samples
its segment.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import torch

from engine.errors import LongshelfError
from engine.library.sidecars import BUILDERS, SKETCH
from engine.reading import room
from engine.retrieval.layout import PLANE_BYTES
from engine.retrieval.sketches import Sketch, make
from engine.store.sidecar import Array, Recipe, Sidecar, SidecarHeader
from kernels import sketch

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.model.loaded import LoadedModel
    from engine.retrieval.projections import Projections
    from engine.shelf import Shelf
    from engine.store.segment import Segment

log = logging.getLogger("longshelf")

_NAME = "codes"


def of(model: LoadedModel, shelf: Shelf, segment: Segment, projections: Projections) -> Sketch:
    """The sketch of a stored segment: as it was kept, else made now, and kept where there is room. On the model thread."""
    recipe = _recipe(model, segment.digest, projections)
    found = shelf.library.sidecars.find(recipe.digest)
    if found is not None:
        return Sketch(_layers(found))
    made = make(segment, projections.layers)
    header = _header(model, recipe, segment.tokens, projections)
    try:
        if room.spare(shelf, header.size):
            shelf.library.sidecars.keep(header, [made])
    except LongshelfError as error:
        log.info("a sketch isn't kept: %s", error.message)
    return Sketch(list(made))


def add(model: LoadedModel, shelf: Shelf, digest: str, projections: Projections, before_layer: Callable[[], None]) -> bool:
    """Make and keep the sketch of a stored segment that has none; False where there is no room for it. On the model thread.

    Nothing else is given up for it. Raises what opening the segment and keeping a sidecar raise, and what before_layer does.
    """
    segment = shelf.library.store.open(digest)
    header = _header(model, _recipe(model, digest, projections), segment.tokens, projections)
    if not room.fits(shelf, header.size):
        return False
    shelf.library.sidecars.keep(header, [make(segment, projections.layers, before_layer)])
    return True


def _layers(sidecar: Sidecar) -> list[torch.Tensor]:
    return [sidecar.tensor(_NAME, layer) for layer in range(sidecar.array(_NAME).extents)]


def _header(model: LoadedModel, recipe: Recipe, tokens: int, projections: Projections) -> SidecarHeader:
    c = model.config
    shape = (c.layers, c.kv_heads, sketch.groups(tokens), projections.layout.planes, PLANE_BYTES * sketch.GROUP)
    return SidecarHeader(recipe, (Array(_NAME, "uint8", shape, 1),), model.provenance)


def _recipe(model: LoadedModel, digest: str, projections: Projections) -> Recipe:
    return Recipe(SKETCH, BUILDERS[SKETCH], model.namespace, (digest,), {"projections": projections.digest})
