"""What commands share: the engine they talk to, and how they speak.

A command joins the engine of the home if one is running; otherwise it is the engine for its own duration, and a second command
joins it. It ends only when the requests of others are done.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
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
from engine.service.protocol import RESUMABLE

if TYPE_CHECKING:
    from engine.service.server import Host

_JOIN_S = 5.0
_PATIENCE_S = 2.0
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass
class Output:
    """json: stdout belongs to the result, so everything for people goes to stderr."""

    json: bool = False
    _line_length: int = 0

    def say(self, text: str = "", end: str = "\n") -> None:
        """A line for people; nothing where the result is printed as JSON."""
        if not self.json:
            self._end_line()
            print(harmless(text) if sys.stdout.isatty() else text, end=end, flush=True)

    def note(self, text: str) -> None:
        """A line on stderr."""
        self._end_line()
        print(harmless(text) if sys.stderr.isatty() else text, file=sys.stderr, flush=True)

    def progress(self, text: str) -> None:
        """A line that the next one replaces on a terminal; on stderr."""
        if sys.stderr.isatty():
            print("\r" + harmless(text).ljust(self._line_length)[:200], end="", file=sys.stderr, flush=True)
            self._line_length = len(text)

    def event(self, name: str, data: dict[str, Any]) -> None:
        """One JSON line of a stream (--jsonl)."""
        print(json_line({"event": name, "data": data}), flush=True)

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
        self.signal: int | None = None
        self._client: Client | None = None
        self._host: Host | None = None
        self._log: logging.Handler = logging.NullHandler()

    def call(self, method: str, params: dict[str, Any] | None = None, on_event: OnEvent | None = None) -> dict[str, Any]:
        """A request to the engine; raises its LongshelfError. Where the engine that was joined ends, this process goes on by itself."""
        told = 0

        def tell(event: str, data: dict[str, Any]) -> None:
            nonlocal told
            told += 1
            if on_event is not None:
                on_event(event, data)

        while True:
            self._open()
            if self._client is None:
                break
            try:
                return self._client.call(method, params, tell, self.stop)
            except LongshelfError as error:
                if error.kind != "engine_gone" or not (method in RESUMABLE or (method == "ask" and not told)):
                    raise
                self._client.close()
                self._client = None
        from engine.shelf import Call

        assert self._host is not None
        return self._host.shelf.call(method, params or {}, Call(tell, self.stop))

    def document(self, name: str) -> str:
        """DOC as the engine looks it up. It may work in another folder than this process, so a path becomes absolute."""
        path = os.path.abspath(os.path.expanduser(name))
        documents = self.call("documents.list")["documents"] if path != name else []
        return path if any(row["path"] == path for row in documents) else name

    def own_engine(self) -> Host:
        """This process's own engine, for measurements. Raises LongshelfError("locked") if another one runs."""
        self._open()
        if self._host is None:
            raise LongshelfError(
                "locked", "An engine of this home is running; measuring beside it would measure both.", "Close the window first."
            )
        return self._host

    def end_own_engine(self) -> None:
        """End this process's engine, so that nobody uses the home. Raises LongshelfError("locked") if another one runs."""
        if self._client is not None:
            raise LongshelfError("locked", "An engine of this home is running.", "Close the window, or wait for the other command, first.")
        if self._host is not None:
            host, self._host = self._host, None
            host.close()
            logging.getLogger("longshelf").removeHandler(self._log)
            self._log.close()

    def __enter__(self) -> Session:
        with contextlib.suppress(ValueError):  # not in the main thread
            signal.signal(signal.SIGINT, self._on_interrupt)
            signal.signal(signal.SIGTERM, self._on_interrupt)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._client is not None:
            self._client.close()
        if self._host is None:
            return
        try:
            self.stop.set()  # nothing of its own is left to stop: the next Ctrl+C ends the program
            if not isinstance(error, KeyboardInterrupt) and not self._host.wait_for_requests(_PATIENCE_S):
                self.output.note("Waiting for another command that uses this engine. Ctrl+C ends both.")
                self._host.wait_for_requests()
        finally:
            self._host.close()
            logging.getLogger("longshelf").removeHandler(self._log)

    def _on_interrupt(self, number: int, frame: object) -> None:
        self.signal = number
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
                from engine.service.server import Host, log_to

                self._host = Host(self.home)
                self._log = log_to(self.home)
                return
            except LongshelfError as error:
                if error.kind != "locked" or time.monotonic() > deadline:
                    raise
            time.sleep(0.1)  # an engine that is just starting or ending


def json_line(value: dict[str, Any]) -> str:
    """One line of JSON that stdout can take whatever its encoding, and whatever file names hold."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(value)
    return text


def harmless(text: str) -> str:
    """Text for a terminal: control characters of documents and models can't move its cursor or change its title."""
    return _CONTROL.sub("\ufffd", text)


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
