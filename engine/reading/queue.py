"""The queue of reading jobs and the thread that works it off, one document after another.

A job is stopped between two layers, keeps every segment that is finished, and goes on from there. What the person asks for (pause,
cancel) and what happens (disk full, a fault) end as states with a reason; one bad document never stops the next.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import blake3
import numpy as np

from engine.errors import LongshelfError, Stopped
from engine.library.counters import TOKENS_PREFILLED
from engine.library.documents import DocumentRow
from engine.library.jobs import Job
from engine.library.parts import Part, PartPlan
from engine.model.loaded import LoadedModel
from engine.reading.memory import Watcher, planned_digests, remember_part
from engine.reading.parts import cut, part_limit
from engine.reading.rows import document_row, stored_document

if TYPE_CHECKING:
    from engine.shelf import Shelf

log = logging.getLogger("longshelf")

FIRST_GUESS = 600.0
"""Tokens a second, assumed until this machine has read something."""

_TELL_EVERY_S = 0.25
_ENDED_BY_PERSON = ("paused", "cancelled")
_PAUSES = ("disk_full", "store_unavailable", "no_model", "unknown_model", "busy")
"""Kinds of errors behind which a job waits, because it can go on once the cause is gone."""


@dataclass
class Live:
    """A job under way. tokens_ahead: computed but not yet kept as a segment."""

    job: Job
    place: str | None = None
    tokens_ahead: int = 0
    tokens_per_s: float | None = None
    computed: int = 0
    found: int = 0
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


class ReadingQueue:
    """Runs queued jobs on a thread of its own, which starts with the first `wake`."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self.usual_speed = FIRST_GUESS
        self._work = threading.Condition()
        self._live: Live | None = None
        self._results: dict[int, dict[str, int]] = {}
        self._closed = False
        self._thread: threading.Thread | None = None
        self._told = 0.0

    def wake(self) -> None:
        """There may be something to read."""
        with self._work:
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="reading", daemon=True)
                self._thread.start()
            self._work.notify_all()

    def live(self, document_id: str) -> Live | None:
        """What is going on with a document that is being read now."""
        live = self._live
        return live if live is not None and live.job.document_id == document_id else None

    def interrupt(self, job_ids: Sequence[int]) -> None:
        """These jobs were paused or cancelled in the catalog: end the one that runs, at the next layer."""
        live = self._live
        if live is not None and live.job.id in job_ids:
            live.interrupt.set()
        for job_id in job_ids:
            job = self.shelf.library.jobs.get(job_id)
            if live is None or live.job.id != job_id:
                self._show_ended(job)

    def wait(self, job_id: int, stop: threading.Event) -> tuple[Job, dict[str, int]]:
        """Until the job has ended, its document's state told, or `stop` is set: the job, and {computed, found} segments of its last run."""
        with self._work:
            while (
                (job := self.shelf.library.jobs.get(job_id)).state in ("queued", "running") or self._is_live(job_id)
            ) and not stop.is_set():
                self._work.wait(timeout=0.2)
            return job, self._results.get(job_id, {"computed": 0, "found": 0})

    def _is_live(self, job_id: int) -> bool:
        live = self._live
        return live is not None and live.job.id == job_id

    def close(self) -> None:
        """End at the next layer; the job that runs is queued again."""
        with self._work:
            self._closed = True
            if self._live is not None:
                self._live.interrupt.set()
            self._work.notify_all()
        if self._thread is not None:
            self._thread.join(timeout=10)

    def _run(self) -> None:
        while True:
            job = self._next()
            if job is None:
                self.shelf.library.close()
                return
            self._live = live = Live(job)
            try:
                self._read(live)
            finally:
                with self._work:
                    self._live = None
                    self._results[live.job.id] = {"computed": live.computed, "found": live.found}
                    self._work.notify_all()
                self._tell(live.job.document_id, now=True)
                self.shelf.publish("status", {"state": "ready"})

    def _next(self) -> Job | None:
        """The next job, when there is one; None when the queue is closed."""
        with self._work:
            while not self._closed:
                if (job := self.shelf.library.jobs.claim()) is not None:
                    return job
                self._work.wait(timeout=5)
        return None

    def _read(self, live: Live) -> None:
        """Do one job and write down how it ended."""
        library, job = self.shelf.library, live.job
        try:
            if library.jobs.get(job.id).state != "running":  # paused or cancelled between being claimed and being live
                raise Stopped
            library.documents.set_state(job.document_id, "remembering")
            self.shelf.publish("status", {"state": "reading", "document": job.document_id})
            self._tell(job.document_id, now=True)
            self._remember(live)
        except Stopped:
            job = library.jobs.get(job.id)
            if job.state not in _ENDED_BY_PERSON:  # the engine ends: it goes on at the next start
                job = library.jobs.set_state(job.id, "queued")
            self._show_ended(job)
        except LongshelfError as error:
            if error.kind == "not_found":
                return  # the document was removed meanwhile, and its job with it
            self._fail(job, "paused" if error.kind in _PAUSES else "failed", f"{error.message} {error.hint}".strip())
        except Exception:
            log.exception("reading a document failed")
            self._fail(job, "failed", "Longshelf made a mistake while reading this document. The log has the details.")
        else:
            library.documents.set_state(job.document_id, "ready")  # first: a job that is done is looked at no more
            library.jobs.set_state(job.id, "done")

    def _show_ended(self, job: Job) -> None:
        """Bring the document's state in line with its job's."""
        states = {"paused": "paused", "cancelled": "paused", "queued": "queued", "failed": "failed", "done": "ready"}
        reason = "cancelled" if job.state == "cancelled" else job.reason
        self.shelf.library.documents.set_state(job.document_id, states[job.state], reason)
        self._tell(job.document_id, now=True)

    def _fail(self, job: Job, state: str, reason: str) -> None:
        try:
            self._show_ended(self.shelf.library.jobs.set_state(job.id, state, reason))
        except LongshelfError:
            log.exception("the end of a job could not be written")

    def _remember(self, live: Live) -> None:
        library = self.shelf.library
        model, _ = self.shelf.model(live.job.model)
        row = library.documents.get(live.job.document_id)
        document = stored_document(self.shelf, row)
        parts = library.parts.of(row.id, model.namespace) or assign_parts(self.shelf, model, row)
        ids: list[int] = []
        for part in parts:
            if part.state == "ready":
                live.found += len(part.expected)
                continue
            if not ids:
                ids = model.tokenizer.encode_ids(document.text)
            place = document.place(part.start)
            live.place = place.section or (f"page {place.page_label}" if place.page_label else None)
            self._one_part(live, model, part, ids[part.first_token : part.first_token + part.tokens])
        if live.tokens_per_s:
            self.usual_speed = live.tokens_per_s

    def _one_part(self, live: Live, model: LoadedModel, part: Part, ids: list[int]) -> None:
        thread = self.shelf.model_thread

        def before_layer() -> None:
            thread.let_urgent_pass()
            if live.interrupt.is_set():
                raise Stopped

        watcher = Watcher(before_layer, lambda tokens: self._count(live, tokens), lambda computed: self._kept(live, computed))
        thread.run(lambda: remember_part(model, self.shelf.library, part, ids, watcher))

    def _count(self, live: Live, tokens: int) -> None:
        live.chunk(tokens)
        self.shelf.library.counters.increment(TOKENS_PREFILLED, tokens)
        self._tell(live.job.document_id)

    def _kept(self, live: Live, computed: bool) -> None:
        live.tokens_ahead = 0
        live.computed += computed
        live.found += not computed
        self._tell(live.job.document_id)

    def _tell(self, document_id: str, now: bool = False) -> None:
        """Publish the document's row, four times a second at most."""
        if not now and time.perf_counter() - self._told < _TELL_EVERY_S:
            return
        self._told = time.perf_counter()
        try:
            row: dict[str, Any] = document_row(self.shelf, self.shelf.library.documents.get(document_id))
        except LongshelfError:
            return
        self.shelf.publish("documents", {"documents": [row]})


def assign_parts(shelf: Shelf, model: LoadedModel, row: DocumentRow, wanted: int | None = None) -> list[Part]:
    """Cut a document for a model and store how. Raises LongshelfError("usage") for a part size that doesn't fit."""
    document = stored_document(shelf, row)
    encoding = model.tokenizer.encode(document.text)
    limit = part_limit(wanted, model.card.part_tokens, model.config.window)
    preamble = model.card.preamble.ids
    tip = planned_digests(model, "", 0, preamble)[-1]
    plans = []
    for part in cut([start for start, _ in encoding.offsets], document.break_points(), len(document.text), limit):
        ids = encoding.ids[part.first_token : part.first_token + part.tokens]
        digest = blake3.blake3(np.asarray(ids, "<i4").tobytes()).hexdigest()
        plans.append(PartPlan(part.start, part.end, part.tokens, part.first_token, digest, planned_digests(model, tip, len(preamble), ids)))
    shelf.library.documents.set_tokens(row.id, len(encoding))
    return shelf.library.parts.assign(row.id, model.namespace, model.name, plans)
