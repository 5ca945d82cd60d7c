"""What calibration found for a model: a file in its folder, written by `models calibrate`; without one, guesses from the model's size.

Found on texts of our own, never on what is measured or asked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from engine.model.card import read_json
from engine.model.config import FORMAT, ModelConfig, check_format, damaged
from engine.model.installed import InstalledModel
from engine.store import durable

CALIBRATION_FILE = "calibration.json"

_ROW_S, _CALIBRATING_S, _ROW_PRODUCTS = 1.7e-3, 46.0, 134.5e6
"""Seconds that a row and calibrating took the default model on two cores, and the products in a row: time grows about as they do."""


@dataclass(frozen=True)
class Calibration:
    """part_tokens: how large parts are. row_s: seconds for one row of a question behind a part.

    support: weights, bias and least of the rule that tells support, None for the rule that was found for the default model.
    found: the figures behind these choices, {} where nothing was measured.
    """

    part_tokens: int
    row_s: float
    support: Mapping[str, Any] | None = None
    found: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {"format": FORMAT, **asdict(self)}


def load(installed: InstalledModel) -> Calibration:
    """What is known of an installed model. Raises LongshelfError("model_damaged"), or ("newer_home") for a later version's file."""
    path = _path(installed)
    if not path.exists():
        return Calibration(installed.card.part_tokens, _ROW_S * _products(installed.config) / _ROW_PRODUCTS)
    stored = read_json(path)
    check_format(stored.pop("format", FORMAT))
    try:
        return Calibration(**stored)
    except TypeError as error:
        raise damaged(f"{path} is damaged: {error}.") from error


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
    durable.write_file(_path(installed), (json.dumps(calibration.as_json(), indent=1) + "\n").encode())
