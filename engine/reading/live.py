"""A reading job under way: how far it is, how fast, and how it ended."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from engine.errors import LongshelfError
from engine.library.jobs import Job


@dataclass
class Ended:
    """What one run of a job did: segments computed and found, and the error that ended it, if one did."""

    computed: int = 0
    found: int = 0
    error: LongshelfError | None = None


@dataclass
class Live:
    """A job under way. tokens_ahead: computed but not yet kept as a segment; over: nothing of it goes on any more."""

    job: Job
    place: str | None = None
    tokens_ahead: int = 0
    tokens_per_s: float | None = None
    over: bool = False
    ended: Ended = field(default_factory=Ended)
    interrupt: threading.Event = field(default_factory=threading.Event)
    _since: float = field(default_factory=time.perf_counter)
    _tokens: int = 0

    def chunk(self, tokens: int) -> None:
        """Count tokens just computed; the speed is the mean over about the last half minute."""
        self._tokens += tokens
        self.tokens_ahead += tokens
        elapsed = time.perf_counter() - self._since
        self.tokens_per_s = self._tokens / elapsed if elapsed > 0 else None
        if elapsed > 30:
            self._since, self._tokens = time.perf_counter() - elapsed / 2, self._tokens // 2
