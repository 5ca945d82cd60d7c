"""The window's line to the engine: requests go out, events and results come back as Qt signals.

An engine that already runs in this home is joined; otherwise one is started. Requests made before it listens wait for it. When the engine
dies, every open request fails with kind "engine_lost", and it is started again, a few times; after that a person decides.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtNetwork import QLocalSocket

from app.engine_process import EngineProcess, command
from engine.errors import LongshelfError
from engine.home import Home
from engine.service import endpoint, protocol

TOKEN_MS = 40  # tokens are handed on in batches: repainting for each would cost more than they are worth
_RESTART_MS = 300
_RESTARTS = 3  # within _RESTART_WINDOW_S; an engine that dies at once would die for ever
_RESTART_WINDOW_S = 60.0

Params = dict[str, Any]


class Reply(QObject):
    """One request on its way. `tokens` carries the text since the last time; it is always complete before `finished` or `failed`."""

    event = Signal(str, object)  # name, data
    tokens = Signal(str)
    finished = Signal(object)  # the result
    failed = Signal(object)  # LongshelfError

    def __init__(self, engine: Engine, request: protocol.Request) -> None:
        super().__init__()
        self.request = request
        self._engine = engine
        self._text: list[str] = []
        self._timer = QTimer(self, singleShot=True, interval=TOKEN_MS)
        self._timer.timeout.connect(self._flush)

    def stop(self) -> None:
        """Ask the engine to end this; the result still comes, marked stopped."""
        self._engine.stop(self)

    def take(self, message: protocol.Event | protocol.Result | protocol.Failure) -> None:
        if isinstance(message, protocol.Event) and message.name == "token":
            self._text.append(str(message.data.get("text", "")))
            if not self._timer.isActive():
                self._timer.start()
            return
        self._flush()
        if isinstance(message, protocol.Event):
            self.event.emit(message.name, message.data)
        elif isinstance(message, protocol.Result):
            self.finished.emit(message.value)
        else:
            self.failed.emit(message.error)

    def _flush(self) -> None:
        self._timer.stop()
        if self._text:
            text, self._text = "".join(self._text), []
            self.tokens.emit(text)


class Engine(QObject):
    ready = Signal(object)  # the result of `hello`, after each (re)connection
    lost = Signal(object, bool)  # LongshelfError, and whether it is being started again
    trouble = Signal(object)  # LongshelfError of a request whose caller doesn't handle failures itself

    def __init__(self, home: Home, arguments: Sequence[str] | None = None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.home = home
        self.about: Params = {}  # what `hello` said
        self._process = EngineProcess(arguments or command(home), self)
        self._process.listening.connect(self._connect)
        self._process.ended.connect(self._on_process_end)
        self._socket = QLocalSocket(self)
        self._socket.connected.connect(self._on_connected)
        self._socket.disconnected.connect(self._on_disconnected)
        self._socket.errorOccurred.connect(self._on_socket_error)
        self._socket.readyRead.connect(self._read)
        self._lines = protocol.Lines()
        self._replies: dict[int, Reply] = {}
        self._waiting: list[bytes] = []
        self._number = 0
        self._deaths: list[float] = []
        self._closing = False
        self._mourned = False  # the last engine's death has been told
        self._again = QTimer(self, singleShot=True, interval=_RESTART_MS)
        self._again.timeout.connect(self.start)

    @property
    def is_connected(self) -> bool:
        return self._socket.state() is QLocalSocket.LocalSocketState.ConnectedState

    def start(self) -> None:
        """Join this home's engine, or start it. Does nothing when that is done or under way."""
        if not self._closing and self._socket.state() is QLocalSocket.LocalSocketState.UnconnectedState and not self._process.running:
            self._connect()

    def restart(self) -> None:
        """A person asked for it: earlier deaths no longer count."""
        self._deaths.clear()
        self.start()

    def close(self) -> None:
        """End our engine, if it is ours, and let go. Returns once no process of ours is left."""
        self._closing = True
        self._socket.flush()
        self._socket.abort()
        self._process.end()

    def request(
        self,
        method: str,
        params: Params | None = None,
        *,
        done: Callable[[Params], object] | None = None,
        failed: Callable[[LongshelfError], object] | None = None,
        event: Callable[[str, Params], object] | None = None,
    ) -> Reply:
        """Send a request, now or once the engine listens. A failure that the caller doesn't take is shown to the person."""
        self._number += 1
        reply = Reply(self, protocol.Request(self._number, method, params or {}))
        if done is not None:
            reply.finished.connect(done)
        if event is not None:
            reply.event.connect(event)
        reply.failed.connect(failed if failed is not None else self.trouble.emit)
        self._replies[self._number] = reply
        self._send(reply.request)
        return reply

    def stop(self, reply: Reply) -> None:
        if reply.request.id in self._replies:
            self.request("stop", {"request": reply.request.id}, failed=_nothing)  # what has ended by itself needs no stopping

    def _send(self, request: protocol.Request) -> None:
        line = protocol.encode(request)
        if self.about and self.is_connected:
            self._socket.write(line)
        else:
            self._waiting.append(line)

    def _connect(self) -> None:
        if self._closing or self.is_connected:
            return
        if (path := endpoint.find(self.home)) is not None:
            self._socket.connectToServer(str(path))
        else:
            self._launch()

    def _launch(self) -> None:
        if not self._process.running:  # a running one says `ready` when it listens
            self._mourned = False
            self._process.start()

    def _on_connected(self) -> None:
        self._lines = protocol.Lines()
        self._number += 1
        hello = Reply(self, protocol.Request(self._number, "hello"))
        hello.finished.connect(self._on_hello)
        hello.failed.connect(self.trouble)
        self._replies[self._number] = hello
        self._socket.write(protocol.encode(hello.request))

    def _on_hello(self, about: Params) -> None:
        self.about = about or {"version": ""}
        self._mourned = False
        waiting, self._waiting = self._waiting, []
        for line in waiting:
            self._socket.write(line)
        self.ready.emit(about)

    def _on_socket_error(self, error: QLocalSocket.LocalSocketError) -> None:
        """Nobody behind the socket: what an engine left when it died. A new one takes its place."""
        if self._closing or self.about or error is QLocalSocket.LocalSocketError.PeerClosedError:
            return  # who closes an open line is told by `disconnected`
        if self._process.running:
            QTimer.singleShot(_RESTART_MS, self, self._connect)
        else:
            QTimer.singleShot(0, self, self._launch)  # once the socket has come to rest

    def _on_disconnected(self) -> None:
        if not self._closing and not self._mourned:
            self._on_death()

    def _on_process_end(self) -> None:
        if self._closing or self.is_connected or self._again.isActive():
            return
        if self._mourned:
            self._connect()
        elif endpoint.find(self.home) is not None and self._recently_died() < _RESTARTS:
            # Another window's engine may have won the race for this home: join it. If not, the next try tells.
            self._deaths.append(time.monotonic())
            self._again.start()
        else:
            self._on_death()

    def _on_death(self) -> None:
        again = self._recently_died() < _RESTARTS
        self._deaths.append(time.monotonic())
        self._mourned = True
        self.about = {}
        self._waiting.clear()
        self._socket.abort()
        error = LongshelfError("engine_lost", "The engine stopped unexpectedly.", self._process.last_words)
        replies, self._replies = self._replies, {}
        self.lost.emit(error, again)
        for reply in replies.values():
            reply.take(protocol.Failure.of(reply.request.id, error))
        if again:
            self._again.start()

    def _recently_died(self) -> int:
        since = time.monotonic() - _RESTART_WINDOW_S
        self._deaths = [moment for moment in self._deaths if moment > since]
        return len(self._deaths)

    def _read(self) -> None:
        try:
            for line in self._lines.feed(self._socket.readAll().data()):
                if line.strip():
                    self._take(protocol.decode(line))
        except LongshelfError as error:
            self.trouble.emit(error)
            self._socket.abort()

    def _take(self, message: protocol.Message) -> None:
        if isinstance(message, protocol.Request) or message.id is None:
            return
        ends = not isinstance(message, protocol.Event)
        reply = self._replies.pop(message.id, None) if ends else self._replies.get(message.id)
        if reply is not None:
            reply.take(message)


def _nothing(*_: object) -> None:
    pass
