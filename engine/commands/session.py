"""What commands share: the engine they talk to, and how they speak.

A command joins the engine of the home if one is running; otherwise it is the engine for its own duration, and a second command
joins it. It ends only when the requests of others are done.
"""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import threading
import time
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

from engine.errors import LongshelfError
from engine.home import Home
from engine.service.client import Client, OnEvent, connect

if TYPE_CHECKING:
    from engine.service.server import Host

_JOIN_S = 5.0


@dataclass
class Output:
    """json: stdout belongs to the result, so everything for people goes to stderr."""

    json: bool = False
    _line_length: int = 0

    def say(self, text: str = "") -> None:
        """A line for people; nothing where the result is printed as JSON."""
        if not self.json:
            self._end_line()
            print(text)

    def note(self, text: str) -> None:
        """A line on stderr."""
        self._end_line()
        print(text, file=sys.stderr, flush=True)

    def progress(self, text: str) -> None:
        """A line that the next one replaces on a terminal; on stderr."""
        if sys.stderr.isatty():
            print("\r" + text.ljust(self._line_length)[:200], end="", file=sys.stderr, flush=True)
            self._line_length = len(text)

    def event(self, name: str, data: dict[str, Any]) -> None:
        """One JSON line of a stream (--jsonl)."""
        print(json.dumps({"event": name, "data": data}, ensure_ascii=False), flush=True)

    def _end_line(self) -> None:
        if self._line_length:
            print(file=sys.stderr)
            self._line_length = 0


class Session:
    """The engine of a home as one command sees it. Ctrl+C stops the request under way, a second one ends the program."""

    def __init__(self, home: Home, output: Output) -> None:
        self.home = home
        self.output = output
        self.stop = threading.Event()
        self._client: Client | None = None
        self._host: Host | None = None

    def call(self, method: str, params: dict[str, Any] | None = None, on_event: OnEvent | None = None) -> dict[str, Any]:
        """A request to the engine; raises its LongshelfError."""
        self._open()
        if self._client is not None:
            return self._client.call(method, params, on_event, self.stop)
        from engine.shelf import Call

        assert self._host is not None
        return self._host.shelf.call(method, params or {}, Call(on_event or (lambda event, data: None), self.stop))

    def own_engine(self) -> Host:
        """This process's own engine, for measurements. Raises LongshelfError("locked") if another one runs."""
        self._open()
        if self._host is None:
            raise LongshelfError(
                "locked", "An engine of this home is running; measuring beside it would measure both.", "Close the window first."
            )
        return self._host

    def __enter__(self) -> Session:
        with contextlib.suppress(ValueError):  # not in the main thread
            signal.signal(signal.SIGINT, self._on_interrupt)
            signal.signal(signal.SIGTERM, self._on_interrupt)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._client is not None:
            self._client.close()
        if self._host is not None:
            if kind is None and self._host.busy:
                self.output.note("Done; waiting for another command that uses this engine. Ctrl+C ends both.")
                self._host.wait_for_requests()
            self._host.close()

    def _on_interrupt(self, number: int, frame: object) -> None:
        if self.stop.is_set():
            raise KeyboardInterrupt
        self.stop.set()

    def _open(self) -> None:
        if self._client is not None or self._host is not None:
            return
        deadline = time.monotonic() + _JOIN_S
        while True:
            self._client = connect(self.home)
            if self._client is not None:
                return
            try:
                from engine.service.server import Host

                self._host = Host(self.home)
                return
            except LongshelfError as error:
                if error.kind != "locked" or time.monotonic() > deadline:
                    raise
            time.sleep(0.1)  # an engine that is just starting or ending


def size(count: float) -> str:
    """Bytes for people."""
    from engine.store.space import size_text

    return size_text(int(count))


def duration(seconds: float | None) -> str:
    """Seconds for people: 42 s, 3 min, 1 h 20 min."""
    if seconds is None:
        return ""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
