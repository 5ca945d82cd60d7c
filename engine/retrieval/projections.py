"""A model's projections: fitted once on the handbook and kept with the model, so that sketches made today are read tomorrow."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from blake3 import blake3
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

import resources
from engine.model.config import damaged
from engine.retrieval.fitting import Moments, fit, layout_for
from engine.store import durable
from kernels.sketch import Layout, Projection

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.model.installed import InstalledModel
    from engine.model.loaded import LoadedModel

log = logging.getLogger("longshelf")

FILE = "projections.safetensors"
_FITTING = "2"
"""Raised when another fitting guesses better: what was fitted by an earlier one is fitted anew. To be raised with it:
BUILDERS[SKETCH], so that sketches made by earlier ones go."""
MOST_TOKENS = 2048
"""Tokens of the handbook that are read in each language."""


class Projections:
    """One a layer. digest: names their content, 16 hex digits of it as a number fit for a recipe's settings."""

    def __init__(self, layers: list[Projection]) -> None:
        self.layers = layers
        hasher = blake3()
        for layer in layers:
            for part in (layer.centres, layer.keys, layer.queries):
                hasher.update(part.numpy().tobytes())
        self.digest = int(hasher.hexdigest()[:15], 16)

    @property
    def layout(self) -> Layout:
        return self.layers[0].layout


def are_kept(installed: InstalledModel) -> bool:
    """Whether those of a model were fitted before, as today's code fits them. Raises as `load`."""
    path = installed.folder / FILE
    return path.exists() and load(path) is not None


def of(model: LoadedModel, before_layer: Callable[[], None]) -> Projections:
    """Those of a model: as they are kept with it, else fitted now, which takes seconds. On the model thread."""
    path = model.installed.folder / FILE
    if path.exists() and (kept := load(path)) is not None:
        return kept
    made = Projections(fit(_read_handbook(model, before_layer), layout_for(model.config.head_dim)))
    try:
        _save(path, made)
    except OSError as error:  # a full disk, say: they are fitted again by whoever needs them next
        log.info("projections aren't kept: %s", error.strerror)
    return made


def _read_handbook(model: LoadedModel, before_layer: Callable[[], None]) -> Moments:
    preamble = list(model.card.preamble.ids)
    moments = Moments(model.config, model.exact(), len(preamble))
    for language in ("en", "ko"):
        text = resources.handbook(language).read_text(encoding="utf-8")
        moments.read(model.decoder, [*preamble, *model.tokenizer.encode_ids(text)][: min(MOST_TOKENS, model.config.window)], before_layer)
    moments.spread(model.config, model.config.window - min(MOST_TOKENS, model.config.window))
    return moments


def _save(path: Path, made: Projections) -> None:
    tensors = {f"{layer}.{name}": getattr(each, name) for layer, each in enumerate(made.layers) for name in ("centres", "keys", "queries")}
    layout = {"fours": made.layout.fours, "twos": made.layout.twos, "ones": made.layout.ones, "digest": made.digest}
    layout["fitting"] = int(_FITTING)
    durable.write_file(path, save(tensors, {name: str(value) for name, value in layout.items()}))


def load(path: Path) -> Projections | None:
    """None where an earlier version fitted them. Raises LongshelfError("model_damaged") where the file isn't what was kept."""
    try:
        with safe_open(path, "pt") as file:
            if file.metadata().get("fitting") != _FITTING:
                return None
            said = {name: int(value) for name, value in file.metadata().items()}
            layout = Layout(said["fours"], said["twos"], said["ones"])
            count = len(file.keys()) // 3
            made = Projections(
                [
                    Projection(layout, *(file.get_tensor(f"{layer}.{name}") for name in ("centres", "keys", "queries")))
                    for layer in range(count)
                ]
            )
    except (OSError, SafetensorError, KeyError, ValueError, AttributeError) as error:
        raise damaged(f"{path} is damaged: {error}.") from error
    if made.digest != said["digest"]:
        raise damaged(f"{path} is damaged: its content isn't what was kept.")
    return made
