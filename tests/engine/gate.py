"""A gate in the way of reading: tests hold it open or shut instead of racing with the reading thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import torch

from engine.model.loss import looked_at
from engine.shelf import Shelf

PATIENCE_S = 30.0
"""How long a test waits for what must happen before it fails."""


class Gate:
    """Stands before the n-th chunk that is read of documents (`at`, from 1; the preamble is the first chunk of a fresh home).

    The reading waits there until `open()`, or does what `instead` does. Questions pass freely. urgent: while it waits it does what
    is urgent, as a reading does between layers.
    """

    def __init__(self, shelf: Shelf, at: int, instead: Callable[[], None] | None = None, urgent: bool = False) -> None:
        self._shelf = shelf
        decoder = shelf.model()[0].decoder
        self._forward = decoder.forward
        self._at, self._instead, self._urgent = at, instead, urgent
        self._reached, self._opened = threading.Event(), threading.Event()
        self.chunks = 0
        decoder.forward = self._gated  # type: ignore[method-assign]

    def _gated(self, ids: Any, rows: Any, attention: Any, logits_of: Any = None, between_layers: Any = None) -> Any:
        if logits_of is None or (isinstance(logits_of, torch.Tensor) and torch.equal(logits_of, looked_at(len(ids)))):  # only reading
            self.chunks += 1
            if self.chunks == self._at:
                self._reached.set()
                if self._instead is not None:
                    self._instead()
                else:
                    self._stand()
        return self._forward(ids, rows, attention, logits_of, between_layers)

    def _stand(self) -> None:
        ends = time.monotonic() + PATIENCE_S
        while not self._opened.wait(0.01):
            assert time.monotonic() < ends, "nobody opened the gate"
            if self._urgent:
                self._shelf.model_thread.let_urgent_pass()

    def wait(self) -> None:
        """Until the reading stands at the gate."""
        assert self._reached.wait(PATIENCE_S), "the reading never came to the gate"

    def open(self) -> None:
        self._opened.set()
