"""What is still to be read, and changing that: the methods `jobs.*`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.errors import Stopped
from engine.library.jobs import STATES, Job
from engine.reading.adding import progress_told
from engine.reading.rows import document_row

if TYPE_CHECKING:
    from engine.shelf import Call, Shelf


def list_jobs(shelf: Shelf, params: dict[str, Any], call: Call) -> dict[str, Any]:
    """jobs.list: in the order of the queue."""
    return {"jobs": _jobs(shelf, shelf.library.jobs.all(("queued", "running", "paused", "failed")))}


def change_jobs(shelf: Shelf, params: dict[str, Any], call: Call) -> dict[str, Any]:
    """jobs.pause, .resume, .cancel, .retry ({action}): one document's or job's ({id}), or all."""
    jobs, action = shelf.library.jobs, params["action"]
    chosen: list[int | None] = [None]
    if params.get("id") is not None:
        name = str(params["id"])
        is_number = name.isascii() and name.isdigit() and len(name) < 19
        chosen = [int(name)] if is_number else [job.id for job in jobs.of(shelf.library.documents.find(name).id)]
    with progress_told(shelf, call) as told:
        changed = [job for job_id in chosen for job in getattr(jobs, action)(job_id)]
        if not changed and chosen != [None] and action in ("resume", "retry"):
            changed = _begun(shelf, str(params["id"]))
            chosen = [job.id for job in changed] or chosen
        told.update(job.document_id for job in changed)
        if action in ("pause", "cancel"):
            shelf.queue.interrupt([job.id for job in changed])
        else:
            for job in changed:
                row = shelf.library.documents.set_state(job.document_id, "queued")
                shelf.publish("documents", {"documents": [document_row(shelf, row)]})
            shelf.queue.wake()
        shelf.publish("jobs", {"jobs": _jobs(shelf, changed)})
        if action in ("resume", "retry") and params.get("wait"):
            # What a killed engine, or one that handed over, left queued goes on as well.
            changed = [job for job in jobs.all(("queued", "running")) if chosen == [None] or job.id in chosen]
            told.update(job.document_id for job in changed)
            for job in changed:
                shelf.queue.wait(job.id, call.stop)
            if call.stop.is_set():
                shelf.queue.pause([job.id for job in changed])
                raise Stopped
    left = {job.id: job for job in jobs.all(STATES)}
    return {"jobs": _jobs(shelf, [left[job.id] for job in changed if job.id in left])}


def _begun(shelf: Shelf, name: str) -> list[Job]:
    """A job for a document that has none to go on with: it was kept as text only, or forgotten."""
    library = shelf.library
    row = next((row for row in library.documents.all() if name in (row.id, row.path, row.title)), None)
    if row is None or row.state != "paused":
        return []
    model = shelf.models.open()
    library.documents.decide(row.id, "queued")
    return [library.jobs.add(row.id, model.name)]


def _jobs(shelf: Shelf, jobs: list[Job]) -> list[dict[str, Any]]:
    titles = {row.id: row.title for row in shelf.library.documents.all()}
    return [
        {
            "id": job.id,
            "document": job.document_id,
            "title": titles.get(job.document_id, ""),
            "state": job.state,
            "position": job.position,
            "reason": job.reason,
        }
        for job in jobs
    ]
