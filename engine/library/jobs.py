"""The queue of reading jobs: one for each document and model that is still to be read, in an order the person can change."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from engine.errors import LongshelfError
from engine.library.catalog import Catalog, Row

ALIVE = ("queued", "running", "paused")
STATES = (*ALIVE, "failed", "done", "cancelled")


@dataclass(frozen=True)
class Job:
    """state: "queued", "running", "paused", "failed", "done" or "cancelled"; position: smaller comes first; reason: for people."""

    id: int
    document_id: str
    model: str
    state: str
    position: float
    reason: str
    created_at: float
    updated_at: float


class Jobs:
    """Methods that name a job raise LongshelfError("not_found") if it isn't there; changes return the rows that changed."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def add(self, document_id: str, model: str) -> Job:
        """Queue a document behind the others. A job alive for the same pair is given back (a paused one is queued again).

        One that ended makes room for the new one, so there is at most one job for each pair.
        """
        now = time.time()
        with self._catalog.transaction() as db:
            alive = self._where("document_id = ? AND model = ? AND state IN ('queued', 'running', 'paused')", [document_id, model])
            if alive:
                return self.set_state(alive[0].id, "queued") if alive[0].state == "paused" else alive[0]
            db.execute("DELETE FROM jobs WHERE document_id = ? AND model = ?", [document_id, model])
            job_id = db.execute(
                "INSERT INTO jobs (document_id, model, state, position, created_at, updated_at)"
                " VALUES (?, ?, 'queued', (SELECT coalesce(max(position), 0) + 1 FROM jobs), ?, ?)",
                [document_id, model, now, now],
            ).lastrowid
            return self.get(int(job_id or 0))

    def get(self, job_id: int) -> Job:
        found = self._where("id = ?", [job_id])
        if not found:
            raise LongshelfError("not_found", f"There is no job {job_id}.", "`longshelf jobs list` shows the jobs that are there.")
        return found[0]

    def all(self, states: Sequence[str] = ALIVE) -> list[Job]:
        """Jobs in these states, in the order of the queue."""
        return self._where(f"state IN ({', '.join('?' * len(states))})", list(states))

    def of(self, document_id: str) -> list[Job]:
        """All jobs of a document, old ones too."""
        return self._where("document_id = ?", [document_id])

    def claim(self) -> Job | None:
        """Take the first queued job, which is then running; None if there is none."""
        with self._catalog.transaction():
            queued = self.all(["queued"])
            return self.set_state(queued[0].id, "running") if queued else None

    def set_state(self, job_id: int, state: str, reason: str = "") -> Job:
        with self._catalog.transaction() as db:
            db.execute("UPDATE jobs SET state = ?, reason = ?, updated_at = ? WHERE id = ?", [state, reason, time.time(), job_id])
            return self.get(job_id)

    def pause(self, job_id: int | None = None, reason: str = "") -> list[Job]:
        """Pause one job, or all that are queued or running."""
        return self._move(job_id, ("queued", "running"), "paused", reason)

    def resume(self, job_id: int | None = None) -> list[Job]:
        """Queue one paused job again, or all of them."""
        return self._move(job_id, ("paused",), "queued")

    def cancel(self, job_id: int | None = None) -> list[Job]:
        """Give up one job, or all that are alive; what was read is kept."""
        return self._move(job_id, ALIVE, "cancelled")

    def retry(self, job_id: int | None = None) -> list[Job]:
        """Queue one failed or cancelled job again, or all failed ones."""
        with self._catalog.transaction():
            old = self.all(["failed"]) if job_id is None else [self.get(job_id)]
            return [self.set_state(job.id, "queued") for job in old if job.state in ("failed", "cancelled")]

    def move_before(self, job_id: int, before: int | None) -> Job:
        """Put a job before another in the queue, or last."""
        with self._catalog.transaction() as db:
            others = [job for job in self.all() if job.id != job_id]
            places = [job.id for job in others]
            at = len(places) if before is None else places.index(self.get(before).id)
            below = others[at - 1].position if at > 0 else None
            above = others[at].position if at < len(others) else None
            if below is None and above is None:
                position = 1.0
            elif below is None:
                position = (above or 0.0) - 1
            else:
                position = below + 1 if above is None else (below + above) / 2
            db.execute("UPDATE jobs SET position = ?, updated_at = ? WHERE id = ?", [position, time.time(), job_id])
            return self.get(job_id)

    def move_first(self, job_id: int, behind: Collection[int] = ()) -> Job:
        """Put a job before all that wait in the queue, but for those it is to stand behind."""
        with self._catalog.transaction():
            waiting = [job.id for job in self.all(["queued"]) if job.id != job_id and job.id not in behind]
            return self.move_before(job_id, waiting[0]) if waiting else self.get(job_id)

    def requeue_interrupted(self) -> list[Job]:
        """At the start of the one engine: what was running when the last one ended goes on."""
        return self._move(None, ("running",), "queued")

    def _move(self, job_id: int | None, from_states: Sequence[str], state: str, reason: str = "") -> list[Job]:
        with self._catalog.transaction():
            chosen = self.all(from_states) if job_id is None else [self.get(job_id)]
            return [self.set_state(job.id, state, reason) for job in chosen if job.state in from_states]

    def _where(self, condition: str, values: Sequence[object]) -> list[Job]:
        return [_job(row) for row in self._catalog.rows(f"SELECT * FROM jobs WHERE {condition} ORDER BY position, id", values)]


def _job(row: Row) -> Job:
    return Job(**row)
