"""What a person may choose, kept in settings.json of the home. Unknown names in the file are left alone: a later version wrote them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from engine.errors import LongshelfError
from engine.home import Home
from engine.store import durable


@dataclass(frozen=True)
class Settings:
    """threads: for the model, None is the machine's default; limit_bytes: what everything remembered may take, None is the default
    share of the disk."""

    threads: int | None = None
    limit_bytes: int | None = None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def _whole(least: int, most: int) -> Callable[[Any], bool]:
    return lambda value: value is None or (isinstance(value, int) and not isinstance(value, bool) and least <= value <= most)


_ALLOWED = {"threads": _whole(1, 1024), "limit_bytes": _whole(0, 1 << 60)}


def load(home: Home) -> Settings:
    """The home's settings; defaults where the file is missing, unreadable or holds something else."""
    stored = _read(home)
    return Settings(**{f.name: stored[f.name] for f in fields(Settings) if f.name in stored and _ALLOWED[f.name](stored[f.name])})


def change(home: Home, changes: dict[str, Any]) -> Settings:
    """Check, save and give the new settings. Raises LongshelfError("usage") for an unknown name or value; nothing is changed then."""
    for name, value in changes.items():
        if name not in _ALLOWED:
            raise LongshelfError("usage", f"There is no setting {name!r}.", f"Settings are {', '.join(_ALLOWED)}.")
        if not _ALLOWED[name](value):
            raise LongshelfError("usage", f"The setting {name} can't be {value!r}.")
    settings = replace(load(home), **changes)
    durable.write_file(home.settings, json.dumps(_read(home) | settings.as_json(), indent=1, ensure_ascii=False).encode())
    return settings


def _read(home: Home) -> dict[str, Any]:
    try:
        stored = json.loads(home.settings.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stored if isinstance(stored, dict) else {}
