"""An installed model's folder: the names in it, and its card (model.json), which says where the model came from, what it is fit for, and
which token ids never change.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import blake3

from engine.model.config import FORMAT, check_format, damaged

CARD_FILE = "model.json"
CHECKSUM = "checksum"
CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"
TEMPLATE_FILE = "chat_template.jinja"
LICENSE_FILE = "LICENSE"
TEMPORARY = ".install-"
"""How hidden folders beside the models begin; the next install sweeps what a killed process left."""

PACKS = ("q8_0", "q5_1", "q5_0", "q4_1", "q4_0")
"""What plain matrices can be packed as at install."""


@dataclass(frozen=True)
class Piece:
    """A fixed run of template text and its token ids (special tokens recognised)."""

    text: str
    ids: tuple[int, ...]


@dataclass(frozen=True)
class Turns:
    """What continues a chat after an answer: assistant_close, user_open, question, user_close_assistant_open, next answer."""

    user_open: Piece
    user_close_assistant_open: Piece
    assistant_close: Piece


@dataclass(frozen=True)
class Card:
    """model.json. Digests are blake3 hex; `bytes` counts the whole folder but this card, `weights_bytes` the weights file.

    license: as the model's file states it, "" if it doesn't. trial: good enough to try the program with, not to rely on.
    languages: ISO codes, empty if unknown. system: the system message that the model's own template inserts, None if none;
    it is part of the preamble. preamble: everything before the document; after_document: what follows document and question
    up to the start of the answer. stop: ids that end an answer. usual_bits: bits a letter at which it reads our handbook (`loss`), None if
    it was installed where it can't run.
    """

    name: str
    source: str
    license: str
    languages: tuple[str, ...]
    trial: bool
    family: str
    window: int
    weights: str
    weights_digest: str
    weights_bytes: int
    tokenizer_digest: str
    template_digest: str
    bytes: int
    part_tokens: int
    stop: tuple[int, ...]
    system: str | None
    preamble: Piece
    after_document: Piece
    turns: Turns
    usual_bits: float | None = None

    def as_json(self) -> dict[str, Any]:
        return {"format": FORMAT, **asdict(self)}

    @staticmethod
    def from_json(stored: dict[str, Any]) -> Card:
        """Undo `as_json`. Raises LongshelfError("model_damaged") or, for a card of a later version, ("newer_home")."""
        values = dict(stored)
        check_format(values.pop("format", FORMAT))
        try:
            turns = Turns(**{name: _piece(value) for name, value in values.pop("turns").items()})
            for name in ("preamble", "after_document"):
                values[name] = _piece(values[name])
            for name in ("languages", "stop"):
                values[name] = tuple(values[name])
            return Card(**values, turns=turns)
        except (AttributeError, KeyError, TypeError) as error:
            raise damaged(f"The model's card is damaged: {error}.") from error


def _piece(stored: dict[str, Any]) -> Piece:
    return Piece(stored["text"], tuple(stored["ids"]))


def checksum(value: dict[str, Any]) -> str:
    """blake3 of an object, whatever the order of its names."""
    return blake3.blake3(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def read_json(path: Path) -> dict[str, Any]:
    """The object in one of a model's JSON files, which says nothing else than when it was written.

    Raises LongshelfError("model_damaged"). Files of version 0.1 have no checksum, and a later format may have another.
    """
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise damaged(f"{path} can't be read: {error}.") from error
    if not isinstance(stored, dict):
        raise damaged(f"{path} holds no object.")
    kept = stored.pop(CHECKSUM, None)
    if kept is not None and stored.get("format") == FORMAT and kept != checksum(stored):
        raise damaged(f"{path} is damaged: it fails its checksum.")
    return stored
