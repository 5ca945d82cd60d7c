"""The command `settings`: show what is chosen, and choose."""

from __future__ import annotations

import re
from argparse import ArgumentParser, Namespace
from typing import Any

from engine.commands.session import Session, size
from engine.errors import LongshelfError

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_NAMES = {"threads": "threads", "limit": "limit_bytes"}


def add_parsers(commands: Any, output: ArgumentParser) -> None:
    parser = commands.add_parser("settings", parents=[output], help="what is chosen: threads, limit (bytes on disk); or choose")
    parser.add_argument("name", nargs="?", choices=tuple(_NAMES), help="threads: for the model; limit: what everything remembered may take")
    parser.add_argument("value", nargs="?", metavar="VALUE", help="a number, for limit a size such as 50GB; `default` undoes a choice")
    parser.set_defaults(run=_settings)


def _settings(options: Namespace, session: Session) -> dict[str, Any]:
    if options.value is None:
        result = session.call("settings.get")
    else:
        result = session.call("settings.set", {_NAMES[options.name]: _value(options.name, options.value)})
    for name, stored in _NAMES.items():
        if options.name in (None, name):
            value = result[stored]
            session.output.say(f"{name:<8} {'default' if value is None else size(value) if name == 'limit' else value}")
    return result


def _value(name: str, text: str) -> int | None:
    if text == "default":
        return None
    if name == "limit":
        return bytes_of(text)
    if not text.isdecimal():
        raise LongshelfError("usage", f"{name} can't be {text!r}.", "Give a whole number, or `default`.")
    return int(text)


def bytes_of(text: str) -> int:
    """Bytes that a size such as 50GB, 1.5 TB or 2000000 means. Raises LongshelfError("usage")."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)B?", text.strip().upper())
    if match is None:
        raise LongshelfError("usage", f"{text!r} is no size.", "Sizes are written as 500MB, 50GB or 1.5TB.")
    return int(float(match[1]) * _UNITS[match[2]])
