"""The engine as one object: a home opened, its library, its model, its queue of reading, and the methods that clients call.

`call` is the only door: the command line uses it in-process, the server hands it what arrives on the socket. The holder of the
home's engine lock makes the one Shelf of a home. Nothing heavy is loaded before it is needed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from engine import settings
from engine.errors import LongshelfError
from engine.home import Home
from engine.model.installed import Models
from engine.store import ballast, space

if TYPE_CHECKING:
    from engine.library.documents import DocumentRow
    from engine.library.library import Library
    from engine.library.recovery import Rebuilt
    from engine.model.loaded import LoadedModel
    from engine.model.thread import ModelThread
    from engine.reading.queue import ReadingQueue

log = logging.getLogger("longshelf")

T = TypeVar("T")

_FREEING = ("documents.remove", "documents.forget", "gc", "chats.remove", "doctor", "jobs.cancel", "jobs.pause")
"""Methods that must work on a full disk, and that can be called twice."""

Listener = Callable[[str, dict[str, Any]], None]


@dataclass
class Call:
    """One request under way. `emit` sends an event to whoever asked; `stop` is set when they want it to end."""

    emit: Listener = lambda event, data: None
    stop: threading.Event = field(default_factory=threading.Event)


class Shelf:
    """One home. Methods may be called from any thread."""

    def __init__(self, home: Home) -> None:
        self.home = home.open()
        self.models = Models(home)
        self.adding = threading.Lock()  # held while a source becomes a document with parts and a job
        self._lock = threading.RLock()
        self._library: Library | None = None
        self._thread: ModelThread | None = None
        self._loaded: LoadedModel | None = None
        self._queue: ReadingQueue | None = None
        self._listeners: list[Listener] = []

    @property
    def library(self) -> Library:
        """Opened at first use, and put in order then. Raises what `Library.open` raises."""
        with self._lock:
            if self._library is None:
                from engine.library.library import Library

                library = self._with_room(lambda: self._settled(Library.open(self.home)))
                room = space.space(self.home.root)
                ballast.hold(self.home.ballast, room.total, room.free)
                self._library = library
            return self._library

    def _settled(self, library: Library) -> Library:
        self._queue_lost(library, library.settle().unqueued)
        return library

    def _with_room(self, work: Callable[[], T]) -> T:
        """Do what can be done twice; on a full disk once more, with the room that was held back for that."""
        try:
            return work()
        except LongshelfError as error:
            if error.kind != "disk_full" or not ballast.let_go(self.home.ballast):
                raise
        return work()

    def _queue_lost(self, library: Library, rows: list[DocumentRow]) -> None:
        """Give documents that a killed engine had taken but not yet queued their job, as soon as there is a model to read them."""
        if (model := self.models.current()) is not None:
            for row in rows:
                library.jobs.add(row.id, model)
                library.documents.set_state(row.id, "queued")

    @property
    def opened(self) -> bool:
        """Whether the library has been opened."""
        return self._library is not None

    @property
    def model_thread(self) -> ModelThread:
        with self._lock:
            if self._thread is None:
                from engine.model.thread import ModelThread

                self._thread = ModelThread()
            return self._thread

    @property
    def queue(self) -> ReadingQueue:
        """The queue of reading jobs; its thread starts when something is to be read."""
        with self._lock:
            if self._queue is None:
                from engine.reading.queue import ReadingQueue

                self._queue = ReadingQueue(self)
            return self._queue

    def model(self, name: str | None = None, device: str | None = None) -> tuple[LoadedModel, float]:
        """The model in memory (one at a time), and the seconds that loading took now.

        device: where it is to run, see `engine.placement`; None: where it runs already, else auto.
        Raises LongshelfError("no_model"), ("unknown_model"), ("model_damaged"), ("not_enough_memory"), ("no_device").
        """
        wanted = name or self.models.current()

        def there(loaded: LoadedModel | None) -> bool:
            return loaded is not None and loaded.name == wanted and (device is None or loaded.runs_on(device))

        loaded = self._loaded
        if loaded is not None and there(loaded):
            return loaded, 0.0
        started = time.perf_counter()
        installed = self.models.open(wanted)
        self.publish("status", {"state": "loading", "model": installed.name})

        def load() -> LoadedModel:
            from engine.model.loaded import LoadedModel
            from engine.model.needs import require_memory
            from engine.placement import keep_compiled_in, require_device
            from engine.threads import use_threads

            if self._loaded is None or not there(self._loaded):
                require_memory(installed.name, installed.memory_needed)
                use_threads(settings.load(self.home).threads)
                keep_compiled_in(self.home.compiled)
                require_device(device or "auto")
                self._loaded = None  # its memory is wanted
                self._loaded = LoadedModel(installed, device or "auto")
            return self._loaded

        loaded = self.model_thread.run(load, urgent=True)
        self.publish("status", {"state": "ready"})
        return loaded, time.perf_counter() - started

    def unload(self) -> None:
        """Let go of the model in memory; the next question loads the current one."""
        self._loaded = None

    def call(self, method: str, params: dict[str, Any], call: Call) -> dict[str, Any]:
        """Do one request. Raises LongshelfError, and Stopped where stopping leaves no result."""
        from engine.service.methods import METHODS

        function = METHODS.get(method)
        if function is None:
            raise LongshelfError("usage", f"The engine knows no method {method!r}.")
        if method in _FREEING:
            return self._with_room(lambda: function(self, params, call))
        return function(self, params, call)

    def rebuild(self) -> Rebuilt:
        """Make a damaged catalog again; reading stops before. Raises what `recovery.rebuild` raises.

        A request that another thread is at work on may fail, or be lost with the damaged file.
        """
        from engine.library import recovery

        with self._lock:
            queue, library = self._queue, self._library
            self._queue = self._library = None
        if queue is not None:
            queue.close()
        if library is not None:
            self.model_thread.run(library.close, urgent=True)
            library.close()
        return recovery.rebuild(self.home)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Tell `listener` of every change from now on; gives the way to end that."""
        with self._lock:
            self._listeners.append(listener)

        def end() -> None:
            with self._lock:
                if listener in self._listeners:
                    self._listeners.remove(listener)

        return end

    def publish(self, event: str, data: dict[str, Any]) -> None:
        """Tell every subscriber."""
        with self._lock:
            listeners = list(self._listeners)
        for listener in listeners:
            try:
                listener(event, data)
            except OSError:
                log.debug("a watcher is gone")

    def close(self) -> None:
        """Stop reading at the next layer, keep what is finished, take the day's copy of the catalog, close the library."""
        if self._queue is not None:
            self._queue.close()
        if self._thread is not None:
            self._thread.close(self._library.close if self._library is not None else None)
        if self._library is not None:
            with suppress(LongshelfError):  # a full disk, say: the next engine tries again
                self._library.catalog.back_up_daily()
            self._library.close()
