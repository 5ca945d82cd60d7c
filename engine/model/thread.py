"""The one thread that runs the model, and who goes first on it.

All native work of an engine happens here: an OpenMP runtime keeps one pool of workers for each thread that calls it, and several
pools would compete for the same cores. Questions are urgent: they run at once, between two layers of whatever is
being read, and reading goes on where it was.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")
Work = tuple[Callable[[], Any], "Future[Any]"]


class ModelThread:
    """Runs work one piece at a time; urgent work first."""

    def __init__(self) -> None:
        self._urgent: queue.SimpleQueue[Work] = queue.SimpleQueue()
        self._patient: queue.SimpleQueue[Work] = queue.SimpleQueue()
        self._waiting = threading.Semaphore(0)
        self._ended = False
        self._last: Callable[[], None] | None = None
        self._thread = threading.Thread(target=self._run, name="model", daemon=True)
        self._thread.start()

    def run(self, work: Callable[[], T], urgent: bool = False) -> T:
        """The result of `work`, done on the model thread; what it raises is raised here."""
        future: Future[T] = Future()
        (self._urgent if urgent else self._patient).put((work, future))
        self._waiting.release()
        return future.result()

    def let_urgent_pass(self) -> None:
        """Do the urgent work that waits. For patient work to call between layers; on the model thread only."""
        while not self._urgent.empty():
            self._waiting.acquire()
            _do(self._urgent.get())

    def close(self, last: Callable[[], None] | None = None) -> None:
        """End after the work that runs now; what waits is not begun. last: how the thread lets go of what is its own."""
        self._last = last
        self._ended = True
        self._waiting.release()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout=10)

    def _run(self) -> None:
        while True:
            self._waiting.acquire()
            if self._ended:
                if self._last is not None:
                    self._last()
                return
            _do(self._urgent.get() if not self._urgent.empty() else self._patient.get())


def _do(work: Work) -> None:
    function, future = work
    try:
        future.set_result(function())
    except BaseException as error:  # handed to whoever waits for the result
        future.set_exception(error)
