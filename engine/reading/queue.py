"""The queue of reading jobs and the thread that works it off, one document after another.

A job is stopped between two layers, keeps every segment that is finished, and goes on from there. What the person asks for (pause,
cancel) and what happens (disk full, a fault) end as states with a reason; one bad document never stops the next.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import blake3
import numpy as np

from engine.errors import LongshelfError, Stopped
from engine.library.counters import TOKENS_PREFILLED
from engine.library.documents import DocumentRow
from engine.library.jobs import Job
from engine.library.parts import Part, PartPlan
from engine.model import calibration
from engine.reading import room
from engine.reading.live import Ended, Live
from engine.reading.parts import cut, part_limit
from engine.reading.rows import document_row, index_bytes, kv_bytes, stored_document

if TYPE_CHECKING:
    from engine.model.loaded import LoadedModel
    from engine.shelf import Shelf

log = logging.getLogger("longshelf")

FIRST_GUESS = 600.0
"""Tokens a second, assumed until this machine has read something."""

_TELL_EVERY_S = 0.25
_ENDED_BY_PERSON = ("paused", "cancelled")
_PAUSES = ("disk_full", "limit", "store_unavailable", "no_model", "unknown_model", "busy")
"""Kinds of errors behind which a job waits, because it can go on once the cause is gone."""


class ReadingQueue:
    """Runs queued jobs on a thread of its own, which starts with the first `wake`."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self.usual_speed = FIRST_GUESS
        self._work = threading.Condition()
        self._live: Live | None = None
        self._ended: dict[int, Ended] = {}
        self._blocked: LongshelfError | None = None
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
        return live if live is not None and live.job.document_id == document_id and not live.over else None

    def interrupt(self, job_ids: Sequence[int]) -> None:
        """These jobs were paused or cancelled in the catalog: end the one that runs, at the next layer."""
        live = self._live
        if live is not None and live.job.id in job_ids:
            live.interrupt.set()
        for job_id in job_ids:
            job = self.shelf.library.jobs.get(job_id)
            if live is None or live.job.id != job_id:
                self._show_ended(job)

    def pause(self, job_ids: Sequence[int]) -> None:
        """Pause those of these jobs that still go on."""
        jobs = self.shelf.library.jobs
        going_on = [job.id for job in jobs.all(("queued", "running")) if job.id in job_ids]
        self.interrupt([job.id for job_id in going_on for job in jobs.pause(job_id)])

    def wait(self, job_id: int, stop: threading.Event) -> Ended:
        """Until the job has ended, its document's state told, or `stop` is set: what its last run did."""
        with self._work:
            while not stop.is_set() and self._goes_on(job_id):
                self._work.wait(timeout=0.2)
            return Ended(error=self._blocked) if self._blocked is not None else self._ended.get(job_id, Ended())

    def _goes_on(self, job_id: int) -> bool:
        if self._is_live(job_id):
            return True
        try:
            state = self.shelf.library.jobs.get(job_id).state
        except LongshelfError as error:
            if error.kind != "not_found":
                raise
            return False  # its document was removed
        # What ended while the catalog couldn't be written, or can't even begin, still looks as if it went on.
        return (state == "queued" and self._blocked is None) or (state == "running" and job_id not in self._ended)

    def _is_live(self, job_id: int) -> bool:
        live = self._live
        return live is not None and live.job.id == job_id

    def give_up(self, document_id: str) -> None:
        """Cancel what is to be read of a document; when this returns, nothing of it is being read. Not for the model thread."""
        jobs = self.shelf.library.jobs
        for job in jobs.of(document_id):
            jobs.cancel(job.id)
        with self._work:
            while (live := self._live) is not None and live.job.document_id == document_id:
                live.interrupt.set()
                self._work.wait(timeout=0.2)

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
            live = self._next()
            if live is None:
                self.shelf.library.close()
                return
            try:
                self._read(live)
            finally:
                live.over = True
                self._tell(live.job.document_id, now=True)  # before those who wait go on: they watch no longer then
                with self._work:
                    self._live = None
                    self._ended[live.job.id] = live.ended
                    self._work.notify_all()
                self.shelf.publish("status", {"state": "ready"})

    def _next(self) -> Live | None:
        """The next job, when there is one, which is then live; None when the queue is closed."""
        with self._work:
            while not self._closed:
                try:
                    job = self.shelf.library.jobs.claim()
                    self._blocked = None
                except LongshelfError as error:  # a full disk takes not even this: whoever waits is told, and it is tried again
                    log.warning("no job can be begun: %s", error.message)
                    job, self._blocked = None, error
                    self._work.notify_all()
                if job is not None:
                    self._ended.pop(job.id, None)
                    self._live = Live(job)
                    return self._live
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
            library.documents.set_state(job.document_id, "ready")  # first: a job that is done is looked at no more
            library.jobs.set_state(job.id, "done")
        except Stopped:
            self._end(live, "queued")  # unless a person ended it: it goes on at the next start
        except LongshelfError as error:
            live.ended.error = error
            self._end(live, "paused" if error.kind in _PAUSES else "failed", f"{error.message} {error.hint}".strip())
        except Exception:
            log.exception("reading a document failed")
            message = "Longshelf made a mistake while reading this document."
            live.ended.error = LongshelfError("engine_fault", message, "The log has the details.")
            self._end(live, "failed", f"{message} The log has the details.")

    def _end(self, live: Live, state: str, reason: str = "") -> None:
        """Write down how a job ended, unless a person ended it meanwhile or its document is gone."""
        jobs = self.shelf.library.jobs
        try:
            job = jobs.get(live.job.id)
            self._show_ended(job if job.state in _ENDED_BY_PERSON else jobs.set_state(job.id, state, reason))
        except LongshelfError as error:
            if error.kind != "not_found":
                log.exception("the end of a job could not be written")

    def _show_ended(self, job: Job) -> None:
        """Bring the document's state in line with its job's."""
        states = {"paused": "paused", "cancelled": "paused", "queued": "queued", "failed": "failed", "done": "ready"}
        reason = "cancelled" if job.state == "cancelled" else job.reason
        self.shelf.library.documents.set_state(job.document_id, states[job.state], reason)
        self._tell(job.document_id, now=True)

    def _remember(self, live: Live) -> None:
        library = self.shelf.library
        model, _ = self.shelf.model(live.job.model)
        row = library.documents.get(live.job.document_id)
        document = stored_document(self.shelf, row)
        parts = library.parts.of(row.id, model.namespace) or assign_parts(self.shelf, model, row)
        if missing := sum(part.tokens - part.tokens_done for part in parts):
            needed, index = kv_bytes(model.installed, missing), index_bytes(model.installed, missing)
            self.shelf.model_thread.run(lambda: room.make(self.shelf, needed, index=index), urgent=True)
        ids: list[int] = []
        for part in parts:
            if live.interrupt.is_set():  # parts whose segments are all there already pass no layer
                raise Stopped
            if part.state == "ready":
                live.ended.found += len(part.expected)
            else:
                ids = ids or model.tokenizer.encode_ids(document.text)
                place = document.place(part.start)
                live.place = place.section or (f"page {place.page_label}" if place.page_label else None)
                self._one_part(live, model, part, ids[part.first_token : part.first_token + part.tokens])
            self._index(live, model, part)
        if live.tokens_per_s:
            self.usual_speed = live.tokens_per_s

    def _one_part(self, live: Live, model: LoadedModel, part: Part, ids: list[int]) -> None:
        from engine.reading.memory import Watcher, remember_part  # torch, which a queue that only stands by doesn't need

        watcher = Watcher(self._pass(live), lambda tokens: self._count(live, tokens), lambda computed: self._kept(live, computed))
        self.shelf.model_thread.run(lambda: remember_part(model, self.shelf.library, part, ids, watcher))

    def _index(self, live: Live, model: LoadedModel, part: Part) -> None:
        """What is made of a part that is ready; it can be asked meanwhile."""
        from engine.reading.indexing import index  # torch

        segments = self.shelf.library.parts.segments(part.id)
        self.shelf.model_thread.run(lambda: index(model, self.shelf, segments, self._pass(live)))

    def _pass(self, live: Live) -> Callable[[], None]:
        """What a job does between two layers: let questions pass, and end when it is told to."""

        def before_layer() -> None:
            self.shelf.model_thread.let_urgent_pass()
            if live.interrupt.is_set():
                raise Stopped

        return before_layer

    def _count(self, live: Live, tokens: int) -> None:
        live.chunk(tokens)
        self.shelf.library.counters.increment(TOKENS_PREFILLED, tokens)
        self._tell(live.job.document_id)

    def _kept(self, live: Live, computed: bool) -> None:
        live.tokens_ahead = 0
        live.ended.computed += computed
        live.ended.found += not computed
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
    from engine.reading.memory import planned_digests

    document = stored_document(shelf, row)
    encoding = model.tokenizer.encode(document.text)
    limit = part_limit(wanted, calibration.load(model.installed).part_tokens, model.config.window)
    preamble = model.card.preamble.ids
    tip = planned_digests(model, "", 0, preamble)[-1]
    plans = []
    for part in cut([start for start, _ in encoding.offsets], document.break_points(), len(document.text), limit):
        ids = encoding.ids[part.first_token : part.first_token + part.tokens]
        digest = blake3.blake3(np.asarray(ids, "<i4").tobytes()).hexdigest()
        plans.append(PartPlan(part.start, part.end, part.tokens, part.first_token, digest, planned_digests(model, tip, len(preamble), ids)))
    shelf.library.documents.set_tokens(row.id, len(encoding))
    return shelf.library.parts.assign(row.id, model.namespace, model.name, plans)
