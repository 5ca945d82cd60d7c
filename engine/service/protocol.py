"""What travels between the engine process and its clients: one JSON object a line, UTF-8.

    client → engine   {"id": 7, "method": "ask", "params": {…}}
    engine → client   {"id": 7, "event": "token", "data": {…}}      any number
                      {"id": 7, "result": {…}}                      then exactly one of these two
                      {"id": 7, "error": {"kind", "message", "hint"}}

Ids belong to one connection and requests run concurrently. {"method": "stop", "params": {"request": 7}} ends request 7, whose result still
comes. Nothing here opens a socket, so that the engine, the command line and the window share it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from engine.errors import LongshelfError

# A document's text (at most 64 MB) travels as one line; escapes can double it. Longer lines come from a peer that is not ours.
LONGEST_LINE = 256 * 1024 * 1024

RESUMABLE = frozenset(
    (
        *("documents.add", "documents.list", "documents.show", "documents.read", "jobs.list", "jobs.resume", "jobs.retry"),
        *("chats.list", "chats.show", "chats.export", "models.list", "settings.get", "doctor", "paths", "hello", "watch"),
    )
)
"""Requests that can be made again, of the next engine, where the one that worked on them ended: nothing is done twice."""


@dataclass(frozen=True)
class Request:
    id: int
    method: str
    params: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {"id": self.id, "method": self.method, "params": self.params}


@dataclass(frozen=True)
class Event:
    id: int
    name: str
    data: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {"id": self.id, "event": self.name, "data": self.data}


@dataclass(frozen=True)
class Result:
    id: int
    value: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {"id": self.id, "result": self.value}


@dataclass(frozen=True)
class Failure:
    """How a request failed. `id` is None for a line the engine couldn't read at all."""

    id: int | None
    kind: str
    message: str
    hint: str = ""

    @staticmethod
    def of(id: int | None, error: LongshelfError) -> Failure:
        return Failure(id, error.kind, error.message, error.hint)

    @property
    def error(self) -> LongshelfError:
        return LongshelfError(self.kind, self.message, self.hint)

    def as_json(self) -> dict[str, Any]:
        return {"id": self.id, "error": {"kind": self.kind, "message": self.message, "hint": self.hint}}


Message = Request | Event | Result | Failure


def encode(message: Message) -> bytes:
    """The message as one line, line end included. Numbers that JSON lacks (NaN, infinity) become null."""
    value = message.as_json()
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:
        text = json.dumps(_finite(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        return text.encode("utf-8") + b"\n"
    except UnicodeEncodeError:
        # A file name that isn't valid UTF-8 holds lone surrogates; escaped they survive the trip.
        return json.dumps(json.loads(text), ensure_ascii=True, separators=(",", ":")).encode("ascii") + b"\n"


def decode(line: bytes) -> Message:
    """The message in one line. Raises LongshelfError("protocol") for anything that isn't one of ours."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _foreign("is not JSON") from error
    if not isinstance(value, dict):
        raise _foreign("is not an object")
    id = value.get("id")
    if isinstance(error_value := value.get("error"), dict) and (id is None or _is_id(id)):
        return Failure(id, *(str(error_value.get(name, "")) for name in ("kind", "message", "hint")))
    if not _is_id(id):
        raise _foreign("has no id")
    if isinstance(method := value.get("method"), str):
        return Request(id, method, _object(value.get("params"), "params"))
    if isinstance(name := value.get("event"), str):
        return Event(id, name, _object(value.get("data"), "data"))
    if "result" in value:
        return Result(id, _object(value["result"], "result"))
    raise _foreign("is neither request nor reply")


class Lines:
    """Cuts a stream of bytes into lines as they become complete."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._length = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The lines that `data` completes, without their ends. Raises LongshelfError("protocol") for an endless line."""
        *complete, rest = data.split(b"\n")
        for line in complete:
            yield b"".join((*self._pieces, line))
            self._pieces.clear()
            self._length = 0
        if rest:
            self._pieces.append(rest)
            self._length += len(rest)
            if self._length > LONGEST_LINE:
                raise _foreign("is longer than any of ours")


def _is_id(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _object(value: object, name: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _foreign(f"has no object as its {name}")
    return value


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value


def _foreign(what: str) -> LongshelfError:
    return LongshelfError("protocol", f"A line on the engine's socket {what}.", "Is another program using this socket?")
