"""Hash tables of stored parts: made when a question first asks for them, kept as a part's sidecar, mapped from then on."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from blake3 import blake3

from engine.errors import LongshelfError
from engine.library.sidecars import BUILDERS, TABLES
from engine.reading import room
from engine.retrieval.lsh import make
from engine.store.sidecar import Array, Recipe, Sidecar, SidecarHeader
from kernels.lsh import Hashing, Index

if TYPE_CHECKING:
    from engine.model.loaded import LoadedModel
    from engine.shelf import Shelf
    from engine.store.segment import Segment
    from kernels.cpu.lsh import Directions

log = logging.getLogger(__name__)

_NAMES = ("centres", "norms", "starts", "ids")


def of(
    model: LoadedModel,
    shelf: Shelf,
    segments: Sequence[Segment],
    directions: Directions,
    before_layer: Callable[[], None],
    say_size: Callable[[int], None],
) -> list[Index]:
    """The index of each layer of a part: as it was kept, else made now, and kept where there is room. On the model thread.

    say_size: is told the bytes of what is about to be made.
    """
    recipe = _recipe(model, segments, directions.hashing)
    found = shelf.library.sidecars.find(recipe.digest)
    if found is not None:
        return _layers(found)
    header = SidecarHeader(recipe, _arrays(model, sum(kv.tokens for kv in segments), directions.hashing), model.provenance)
    say_size(header.size)
    made = [torch.empty(each.shape, dtype=getattr(torch, each.dtype)) for each in header.arrays]
    for layer in range(model.config.layers):
        before_layer()
        index = make(segments, directions, layer)
        for array, name in zip(made, _NAMES, strict=True):
            array[layer] = getattr(index, name)
    try:
        if room.spare(shelf, header.size):
            shelf.library.sidecars.keep(header, made)
        else:
            log.info("hash tables of %d bytes aren't kept: there is no room to spare", header.size)
    except LongshelfError as error:
        log.info("hash tables aren't kept: %s", error.message)
    return [Index(*of_layer) for of_layer in zip(*made, strict=True)]


def _arrays(model: LoadedModel, tokens: int, hashing: Hashing) -> tuple[Array, ...]:
    config = model.config
    lead, tables = (config.layers, config.kv_heads), hashing.tables
    return (
        Array("centres", "float32", (*lead, config.head_dim), 1),
        Array("norms", "float32", (*lead, tokens), 1),
        Array("starts", "uint16", (*lead, tables, (1 << hashing.bits) + 1), 1),
        Array("ids", "uint16", (*lead, tables, tokens), 1),
    )


def _layers(sidecar: Sidecar) -> list[Index]:
    return [Index(*(sidecar.tensor(name, layer) for name in _NAMES)) for layer in range(sidecar.array("ids").extents)]


def _recipe(model: LoadedModel, segments: Sequence[Segment], hashing: Hashing) -> Recipe:
    drawn = int(blake3(hashing.directions.numpy().tobytes()).hexdigest()[:15], 16)
    settings = {"bits": hashing.bits, "tables": hashing.tables, "directions": drawn}
    return Recipe(TABLES, BUILDERS[TABLES], model.namespace, tuple(segment.digest for segment in segments), settings)
