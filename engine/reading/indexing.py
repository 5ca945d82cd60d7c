"""From committed segments to their index: the sketches by which a sampled answer draws keys, made while a document is added.

Nothing depends on it: where there is no room, or something is wrong with the disk, the document is ready without, and a question
that wants a sketch makes it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from engine.errors import LongshelfError
from engine.library.sidecars import SKETCH
from engine.retrieval import kept_sketches, projections

if TYPE_CHECKING:
    from engine.model.loaded import LoadedModel
    from engine.shelf import Shelf

log = logging.getLogger("longshelf")


def index(model: LoadedModel, shelf: Shelf, segments: Sequence[str], before_layer: Callable[[], None]) -> None:
    """Make and keep the sketches that these segments lack, on the model thread. before_layer may raise Stopped; what is kept stays.

    The first of a model fits its projections, unless they were fitted when it was installed.
    """
    try:
        if not (lacking := shelf.library.sidecars.without(SKETCH, segments)):
            return
        made = projections.of(model, before_layer)
        if not all(kept_sketches.add(model, shelf, digest, made, before_layer) for digest in lacking):
            log.info("there is no room for more sketches")
    except LongshelfError as error:
        log.info("sketches are not made: %s", error.message)
