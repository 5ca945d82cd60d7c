"""The models in a home: which there are, which one is used, opening one.

A model is a folder under HOME/models that holds a card; the choice of the current one is a line in HOME/models/current. Nothing here loads
torch or reads weights.
"""

from __future__ import annotations

import builtins
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import blake3

from engine.errors import LongshelfError
from engine.home import Home
from engine.model import calibration
from engine.model.card import CARD_FILE, CONFIG_FILE, TEMPLATE_FILE, TEMPORARY, WEIGHTS_FILE, Card, read_json
from engine.model.config import ModelConfig, damaged
from engine.model.fetch import DEFAULT
from engine.model.needs import costs, memory_needed
from engine.model.tokenizer import Tokenizer
from engine.retrieval.layout import index_bytes_per_token
from engine.store import durable

CURRENT_FILE = "current"
VERIFIED_FILE = "verified"
LARGE = 1_000_000_000
"""Bytes of weights above which they are not read anew at every start (about a second)."""


@dataclass(frozen=True)
class InstalledModel:
    """One model, ready to be loaded: `folder` holds weights, tokenizer and template, `config` and `card` are read."""

    folder: Path
    config: ModelConfig
    card: Card

    @property
    def name(self) -> str:
        return self.card.name

    @property
    def weights(self) -> Path:
        return self.folder / WEIGHTS_FILE

    @property
    def memory_needed(self) -> int:
        """Bytes of memory that running it takes."""
        return memory_needed(self.config, self.card.weights_bytes, self.card.weights != "bf16")

    def tokenizer(self) -> Tokenizer:
        """Loaded at the first call (about 0.1 s), then the same one."""
        return self._tokenizer

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return Tokenizer(self.folder)

    def verify(self) -> None:
        """Read everything and compare it with the card. Raises LongshelfError("model_damaged")."""
        from engine.model.safetensors_file import digest

        self._verify_small_files()
        note = self.folder / VERIFIED_FILE
        if digest(self.weights) != self.card.weights_digest:
            note.unlink(missing_ok=True)
            raise _damaged(self.folder, "its content changed since it was installed")
        if self.card.weights_bytes >= LARGE:
            with suppress(OSError):  # a full disk, say: they are read again next time
                durable.write_file(note, self._stamp().encode())

    def verify_once(self) -> None:
        """As `verify`, but weights so large that reading them takes seconds only where their file isn't the one that was verified.

        `doctor --deep` reads them all the same.
        """
        try:
            known = (self.folder / VERIFIED_FILE).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            known = ""
        if self.card.weights_bytes >= LARGE and known == self._stamp():
            self._verify_small_files()
        else:
            self.verify()

    def _verify_small_files(self) -> None:
        try:
            template = blake3.blake3((self.folder / TEMPLATE_FILE).read_bytes()).hexdigest()
        except OSError as error:
            raise _damaged(self.folder, "its chat template is missing") from error
        if (template, Tokenizer(self.folder).digest) != (self.card.template_digest, self.card.tokenizer_digest):
            raise _damaged(self.folder, "its content changed since it was installed")

    def _stamp(self) -> str:
        """Changes when the weights' file does, and in a copy of it."""
        status = self.weights.stat()
        named = (self.card.weights_digest, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        return " ".join(map(str, named))


class Models:
    """All models of one home."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def names(self) -> list[str]:
        """Names of the installed models, sorted."""
        folder = self._home.models
        if not folder.is_dir():
            return []
        return sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith(".") and (entry / CARD_FILE).is_file())

    def without_card(self) -> builtins.list[str]:
        """Names of folders that hold a model's weights but no card: something took it away."""
        found = self._home.models.glob(f"*/{WEIGHTS_FILE}")
        return sorted(
            path.parent.name for path in found if not path.parent.name.startswith(".") and not (path.parent / CARD_FILE).is_file()
        )

    def list(self) -> list[dict[str, Any]]:
        """A row for each installed model, and one for the model that can be fetched if it isn't installed.

        {name, installed, current, bytes, family, window, weights, license, languages, trial, source, problem, calibration} and what
        `costs` says; bytes of a model that isn't installed: what is downloaded. problem: why an installed model can't be used (what its
        files would say is null then), else null. calibration: what `calibration.shown` says.
        """
        current = self.current()
        rows = [self._row(name, name == current) for name in self.names()]
        if not any(row["name"] == DEFAULT.name for row in rows):
            rows.append(_fetchable_row())
        return rows

    def _row(self, name: str, current: bool) -> dict[str, Any]:
        row = {"name": name, "installed": True, "current": current}
        try:
            model = self.open(name)
            measured = calibration.shown(model)
        except LongshelfError as error:
            unknown = dict.fromkeys(("family", "window", "weights", "license", "source", "calibration", *costs(0, 0, 0)))
            size = _folder_bytes(self._home.models / name)
            return {**row, "bytes": size, **unknown, "languages": [], "trial": False, "problem": error.message}
        card = model.card
        return {
            **row,
            "bytes": card.bytes,
            "family": card.family,
            "window": card.window,
            "weights": card.weights,
            "license": card.license,
            "languages": list(card.languages),
            "trial": card.trial,
            "source": card.source,
            "problem": None,
            "calibration": measured,
            **costs(model.config.kv_bytes_per_token, index_bytes_per_token(model.config), model.memory_needed),
        }

    def current(self) -> str | None:
        """Name of the model in use: the one chosen, else the first installed; None if there is none."""
        names = self.names()
        try:
            chosen = (self._home.models / CURRENT_FILE).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            chosen = ""
        return chosen if chosen in names else next(iter(names), None)

    def use(self, name: str) -> None:
        """Choose the current model. Raises LongshelfError("unknown_model") or ("model_damaged")."""
        self.open(name)
        durable.write_file(self._home.models / CURRENT_FILE, f"{name}\n".encode())

    def keep_current(self) -> None:
        """Let the model in use stay it, also where it is so only because none was chosen and another will come before it."""
        if (name := self.current()) is not None:
            durable.write_file(self._home.models / CURRENT_FILE, f"{name}\n".encode())

    def remove(self, name: str) -> None:
        """Delete a model; it vanishes at once, its files after that. Raises LongshelfError("unknown_model")."""
        folder = self._folder(name)
        with tempfile.TemporaryDirectory(prefix=TEMPORARY, dir=self._home.models, ignore_cleanup_errors=True) as room:
            folder.rename(Path(room) / name)

    def open(self, name: str | None = None) -> InstalledModel:
        """The model `name`, else the current one.

        Raises LongshelfError: "no_model" (none installed), "unknown_model", "model_damaged", "newer_home".
        """
        chosen = name or self.current()
        if chosen is None:
            raise LongshelfError("no_model", "No model is installed.", "Run `longshelf models fetch`.")
        folder = self._folder(chosen)
        config, card = ModelConfig.from_json(read_json(folder / CONFIG_FILE)), Card.from_json(read_json(folder / CARD_FILE))
        model = InstalledModel(folder, config, card)
        try:
            size = model.weights.stat().st_size
        except OSError as error:
            raise _damaged(folder, "its weights are missing") from error
        if size != model.card.weights_bytes:
            raise _damaged(folder, f"its weights have {size} bytes, not {model.card.weights_bytes}")
        return model

    def _folder(self, name: str) -> Path:
        if name not in self.names():
            hint = "Run `longshelf models fetch`." if name == DEFAULT.name else "`longshelf models list` shows the installed ones."
            raise LongshelfError("unknown_model", f"There is no installed model {name!r}.", hint)
        return self._home.models / name


def _fetchable_row() -> dict[str, Any]:
    return {
        "name": DEFAULT.name,
        "installed": False,
        "current": False,
        "bytes": DEFAULT.wheel_bytes,
        "family": DEFAULT.family,
        "window": DEFAULT.window,
        "weights": "bf16",
        "license": DEFAULT.license,
        "languages": list(DEFAULT.languages),
        "trial": True,
        "source": DEFAULT.source,
        "problem": None,
        "calibration": None,
        **costs(DEFAULT.kv_bytes_per_token, DEFAULT.index_bytes_per_token, DEFAULT.memory_needed),
    }


def _folder_bytes(folder: Path) -> int:
    return sum(entry.stat().st_size for entry in folder.iterdir() if entry.is_file())


def _damaged(folder: Path, why: str) -> LongshelfError:
    return damaged(f"The model in {folder} is damaged: {why}.")
