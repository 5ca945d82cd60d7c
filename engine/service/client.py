"""A client of a running engine over its socket: no Qt, no torch."""

from __future__ import annotations

import contextlib
import itertools
import queue
import socket
import threading
from collections.abc import Callable
from typing import Any

from engine.errors import LongshelfError, Stopped
from engine.home import Home
from engine.service import endpoint, protocol

OnEvent = Callable[[str, dict[str, Any]], None]


class Client:
    """One connection. `call` may be used by several threads at once."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._ids = itertools.count(1)
        self._sending = threading.Lock()
        self._waiting: dict[int, queue.SimpleQueue[protocol.Message | None]] = {}
        threading.Thread(target=self._receive, name="engine replies", daemon=True).start()

    def call(
        self, method: str, params: dict[str, Any] | None = None, on_event: OnEvent | None = None, stop: threading.Event | None = None
    ) -> dict[str, Any]:
        """The result of a request. on_event: told each event, on this thread. stop: set it to end the request.

        Raises the LongshelfError that the engine gives, Stopped if a stopped request left no result, and
        LongshelfError("engine_gone") if the engine ends meanwhile.
        """
        request = protocol.Request(next(self._ids), method, params or {})
        replies: queue.SimpleQueue[protocol.Message | None] = queue.SimpleQueue()
        self._waiting[request.id] = replies
        self._send(request)
        asked_to_stop = False
        try:
            while True:
                if stop is not None and stop.is_set() and not asked_to_stop:
                    asked_to_stop = True
                    self._send(protocol.Request(next(self._ids), "stop", {"request": request.id}))
                try:
                    reply = replies.get(timeout=0.1 if stop is not None else None)
                except queue.Empty:
                    continue
                match reply:
                    case None:
                        raise _gone()
                    case protocol.Event():
                        if on_event is not None:
                            on_event(reply.name, reply.data)
                    case protocol.Result():
                        if set(reply.value) == {"stopped"}:
                            raise Stopped if asked_to_stop else _gone()  # the engine stops what is under way when it ends
                        return reply.value
                    case protocol.Failure():
                        raise reply.error
        finally:
            del self._waiting[request.id]

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _send(self, message: protocol.Message) -> None:
        try:
            with self._sending:
                self._socket.sendall(protocol.encode(message))
        except OSError as error:
            raise _gone() from error

    def _receive(self) -> None:
        lines = protocol.Lines()
        with contextlib.suppress(OSError, LongshelfError):
            while data := self._socket.recv(1 << 16):
                for line in lines.feed(data):
                    message = protocol.decode(line)
                    if message.id is not None and (replies := self._waiting.get(message.id)) is not None:
                        replies.put(message)
        for replies in list(self._waiting.values()):
            replies.put(None)


def connect(home: Home) -> Client | None:
    """A client of the home's engine, None if none is running."""
    path = endpoint.find(home)
    if path is None:
        return None
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(str(path))
    except OSError:
        connection.close()
        return None
    return Client(connection)


def _gone() -> LongshelfError:
    return LongshelfError("engine_gone", "The engine ended while it was working on this.", "Try again: everything finished is kept.")
