"""The engine of a home: one process that holds the engine lock, listens on the socket, and serves any number of clients.

`Host` is that process's role. `python -m engine.service.server` plays it for as long as whoever started it keeps the pipe open; a
command line that finds no engine plays it for its own duration, so that a second command joins the first.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import socket
import struct
import sys
import threading
from logging.handlers import RotatingFileHandler
from typing import Any

from engine.errors import LongshelfError, PrivateFormatter, Stopped
from engine.home import Home
from engine.service import endpoint, protocol
from engine.shelf import Call, Shelf
from engine.store.lock import FileLock

log = logging.getLogger("longshelf")

GRACE_S = 5.0
"""How long an engine that ends waits for the answers that it has just stopped."""

PATIENCE_S = 10
"""A client that takes nothing for so long is let go: what one doesn't read must not hold up the others."""


class Host:
    """The engine of one home. Raises LongshelfError("locked") if there is one already."""

    def __init__(self, home: Home, wait_s: float = 0.0) -> None:
        home.open()
        self._lock = FileLock(home.engine_lock).acquire(wait_s)
        try:
            self.home = home
            self.shelf = Shelf(home)
            self._requests = 0
            self._connections: set[Connection] = set()
            self._changed = threading.Condition()
            self.ended = threading.Event()
            self._socket = socket.socket(socket.AF_UNIX)
            path = endpoint.prepare(home)
            self._socket.bind(str(path))
            path.chmod(0o600)
            self._socket.listen()
        except BaseException:
            self._lock.release()
            raise
        threading.Thread(target=self._accept, name="accept", daemon=True).start()

    @property
    def busy(self) -> bool:
        """Whether a client's request is under way that can't go on in another engine."""
        return self._requests > 0

    def wait_for_requests(self, timeout: float | None = None) -> bool:
        """Until the engine isn't busy; False if it still is after `timeout` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: not self.busy, timeout)

    def close(self) -> None:
        """Stop listening and working; what is finished is kept."""
        self.ended.set()
        for connection in list(self._connections):
            connection.stop_answers()
        self.wait_for_requests(GRACE_S)
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        with contextlib.suppress(LongshelfError):
            endpoint.clear(self.home)
        self.shelf.close()
        self._lock.release()
        for connection in list(self._connections):
            connection.close()  # last: whoever finds that this engine is gone can be the next one

    def _accept(self) -> None:
        while not self.ended.is_set():
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(Connection(self, connection),), name="client", daemon=True).start()

    def _serve(self, connection: Connection) -> None:
        self._connections.add(connection)
        try:
            connection.serve()
        finally:
            self._connections.discard(connection)

    @contextlib.contextmanager
    def counted(self, method: str) -> Any:
        """While a request is under way."""
        counts = method not in protocol.RESUMABLE
        with self._changed:
            self._requests += counts
        try:
            yield
        finally:
            with self._changed:
                self._requests -= counts
                self._changed.notify_all()


class Connection:
    """One client: its requests run concurrently, and end with it."""

    def __init__(self, host: Host, connection: socket.socket) -> None:
        self._host = host
        self._socket = connection
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", PATIENCE_S, 0))
        self._sending = threading.Lock()
        self._calls: dict[int, Call] = {}
        self._answers: set[int] = set()  # requests that no other engine could take over

    def serve(self) -> None:
        lines = protocol.Lines()
        try:
            while data := self._socket.recv(1 << 16):
                for line in lines.feed(data):
                    self._take(line)
        except (OSError, LongshelfError):
            log.debug("a client broke off")
        finally:
            for call in list(self._calls.values()):
                call.stop.set()
            self._socket.close()

    def stop_answers(self) -> None:
        """The engine ends: answers under way end with what they have said."""
        for request_id in list(self._answers):
            if (call := self._calls.get(request_id)) is not None:
                call.stop.set()

    def close(self) -> None:
        """End it from this side; the client sees the end of the stream."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def _take(self, line: bytes) -> None:
        try:
            message = protocol.decode(line)
        except LongshelfError as error:
            self._send(protocol.Failure.of(None, error))
            return
        if not isinstance(message, protocol.Request):
            return
        if message.method == "stop":
            if (other := self._calls.get(int(message.params.get("request", -1)))) is not None:
                other.stop.set()
            self._send(protocol.Result(message.id))
        elif message.method == "shutdown":
            self._send(protocol.Result(message.id))
            self._host.ended.set()
        else:
            call = Call(lambda event, data: self._tell(message.id, event, data))
            self._calls[message.id] = call
            if message.method not in protocol.RESUMABLE:
                self._answers.add(message.id)
            threading.Thread(target=self._do, args=(message, call), name=message.method, daemon=True).start()

    def _do(self, request: protocol.Request, call: Call) -> None:
        reply: protocol.Message
        with self._host.counted(request.method):
            try:
                reply = protocol.Result(request.id, self._host.shelf.call(request.method, request.params, call))
            except LongshelfError as error:
                reply = protocol.Failure.of(request.id, error)
            except Stopped:
                reply = protocol.Result(request.id, {"stopped": True})
            except Exception as error:
                log.exception("%s failed", request.method)
                reply = protocol.Failure(
                    request.id,
                    "engine_fault",
                    f"Longshelf made a mistake ({type(error).__name__}).",
                    f"Details are in {self._host.home.log}.",
                )
            finally:
                self._calls.pop(request.id, None)
                self._answers.discard(request.id)
                if self._host.shelf.opened:
                    self._host.shelf.library.close()  # this thread's connection to the catalog
            with contextlib.suppress(OSError):
                self._send(reply)

    def _tell(self, request_id: int, event: str, data: dict[str, Any]) -> None:
        """Send an event. Where nobody is there to take it, the request ends."""
        try:
            self._send(protocol.Event(request_id, event, data))
        except OSError:
            if (call := self._calls.get(request_id)) is not None:
                call.stop.set()

    def _send(self, message: protocol.Message) -> None:
        with self._sending:
            try:
                self._socket.sendall(protocol.encode(message))
            except OSError:
                self.close()  # a line may have gone out in part: nothing can follow it
                raise


def log_to(home: Home) -> logging.Handler:
    """What goes wrong is told in the home's log, not on the terminal. A log that can't be written disturbs nothing."""
    logging.raiseExceptions = False
    handler = RotatingFileHandler(home.log, maxBytes=1_000_000, backupCount=1, encoding="utf-8", delay=True)
    handler.setFormatter(PrivateFormatter())
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    return handler


def _end_with_starter(host: Host) -> None:
    """The pipe of whoever started this process closes when they end, however they end."""
    with contextlib.suppress(OSError):
        while os.read(0, 1 << 12):
            pass
    host.ended.set()


def main() -> int:
    """Run until the starter's pipe closes or a client sends `shutdown`."""
    parser = argparse.ArgumentParser(prog="engine.service.server", description="The engine process of a home.")
    parser.add_argument("--home", required=True)
    home = Home.choose(parser.parse_args().home)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what native libraries print never reaches the pipe of answers
    try:
        home.open()
        log_to(home)
        host = Host(home, wait_s=3.0)
    except LongshelfError as error:
        print(error.message, error.hint, file=sys.stderr)
        return 1
    threading.Thread(target=_end_with_starter, args=(host,), daemon=True).start()
    print("ready", file=answers, flush=True)
    threading.Thread(target=_go_on, args=(host,), daemon=True).start()
    host.ended.wait()
    host.close()
    return 0


def _go_on(host: Host) -> None:
    """Read on what an earlier engine left unfinished."""
    try:
        library = host.shelf.library
        library.catalog.back_up_daily()
        if library.jobs.all(["queued"]):
            host.shelf.queue.wake()
        library.close()
    except LongshelfError as error:
        log.warning("%s %s", error.message, error.hint)


if __name__ == "__main__":
    sys.exit(main())
