"""What calibration found for a model: a file in its folder, written by `models calibrate`; without one, guesses from the model's size.

Found on texts of our own, never on what is measured or asked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.model.card import CHECKSUM, checksum, read_json
from engine.model.config import FORMAT, ModelConfig, check_format, damaged
from engine.store import durable

if TYPE_CHECKING:
    from engine.model.installed import InstalledModel

CALIBRATION_FILE = "calibration.json"

_ROW_S, _CALIBRATING_S, _ROW_PRODUCTS = 1.7e-3, 46.0, 134.5e6
"""Seconds that a row and calibrating took the default model on two cores, and the products in a row: time grows about as they do."""


@dataclass(frozen=True)
class Calibration:
    """part_tokens: how large parts are. row_s: seconds for one row of a question behind a part.

    support: weights, bias and least of the rule that tells support, None for the rule that was found for the default model.
    dense_layers: those that a sampled answer reads whole. sampled_from: tokens from which it is faster than an exact one, and so
    sampled; None where that was not measured.
    found: the figures behind these choices, {} where nothing was measured.
    """

    part_tokens: int
    row_s: float
    support: Mapping[str, Any] | None = None
    found: Mapping[str, Any] = field(default_factory=dict)
    dense_layers: tuple[int, ...] = ()
    sampled_from: int | None = None

    def as_json(self) -> dict[str, Any]:
        return {"format": FORMAT, **asdict(self), "dense_layers": list(self.dense_layers)}


def load(installed: InstalledModel) -> Calibration:
    """What is known of an installed model. Raises LongshelfError("model_damaged"), or ("newer_home") for a later version's file."""
    path = _path(installed)
    if not path.exists():
        return Calibration(installed.card.part_tokens, _ROW_S * _products(installed.config) / _ROW_PRODUCTS)
    stored = read_json(path)
    check_format(stored.pop("format", FORMAT))
    try:
        return Calibration(**stored | {"dense_layers": tuple(stored.get("dense_layers", ()))})
    except TypeError as error:
        raise damaged(f"{path} is damaged: {error}.") from error


def shown(installed: InstalledModel) -> dict[str, Any] | None:
    """The entry of `models list`: {part_tokens, dense_layers, sampled_from}, None where nothing was measured. Raises as `load`."""
    if not _path(installed).exists():
        return None
    known = load(installed)
    return {"part_tokens": known.part_tokens, "dense_layers": list(known.dense_layers), "sampled_from": known.sampled_from}


def expected_s(config: ModelConfig) -> float:
    """About how many seconds calibrating a model takes."""
    return _CALIBRATING_S * _products(config) / _ROW_PRODUCTS


def _products(c: ModelConfig) -> int:
    """Weights that one row is multiplied with."""
    attention = c.hidden * c.head_dim * (2 * c.heads + 2 * c.kv_heads)
    return c.layers * (attention + 3 * c.hidden * c.intermediate) + c.vocab * c.hidden


def _path(installed: InstalledModel) -> Path:
    return installed.folder / CALIBRATION_FILE


def save(installed: InstalledModel, calibration: Calibration) -> None:
    """Keep it with the model, at once or not at all."""
    value = calibration.as_json()
    durable.write_file(_path(installed), (json.dumps(value | {CHECKSUM: checksum(value)}, indent=1) + "\n").encode())
