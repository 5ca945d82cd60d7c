"""Adding, showing and removing documents: the methods `documents.*` and `jobs.*`."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.documents.document import Document
from engine.documents.reader import read
from engine.errors import LongshelfError, Stopped
from engine.library.documents import DocumentRow, NewDocument
from engine.library.jobs import Job
from engine.reading.rows import current_model, document_row, estimate_bytes, stored_document
from engine.store import space

if TYPE_CHECKING:
    from engine.shelf import Call, Shelf

_STATE_OF = {"no_text": "no_text", "undecodable": "damaged", "unreadable": "failed"}
"""Document state for an error of a reader; anything else is "skipped"."""

_UNREADABLE = ("no_text", "undecodable", "unreadable", "binary", "unsupported", "special", "too_large")


def add(shelf: Shelf, params: dict[str, Any], call: Call) -> dict[str, Any]:
    """documents.add: read files and folders, keep their text, queue them for the model, and wait for that unless told not to."""
    paths = [Path(os.path.abspath(os.path.expanduser(path))) for path in params.get("paths", [])]
    if not paths:
        raise LongshelfError("usage", "Nothing was named to add.", "Name a file or a folder.")
    wants_reading = params.get("read", True)
    if wants_reading:
        shelf.models.open(params.get("model"))  # no model, or a damaged one: said before anything is read
    results: list[dict[str, Any]] = []
    for path in paths:
        started = time.perf_counter()
        try:
            row, job = _take(shelf, path, params, call, wants_reading)
        except LongshelfError as error:
            if error.kind not in (*_UNREADABLE, "not_found"):
                raise
            results.append(_refused(path, error) if len(paths) > 1 or error.kind in _UNREADABLE else _raise(error))
            continue
        results.append({"row": row, "job": job, "started": started})
    return {"documents": [_result(shelf, entry, params, call) for entry in results]}


def _raise(error: LongshelfError) -> dict[str, Any]:
    raise error


def _refused(path: Path, error: LongshelfError) -> dict[str, Any]:
    state = _STATE_OF.get(error.kind, "failed" if error.kind == "not_found" else "skipped")
    nothing = {"tokens": 0, "parts": 0, "segments_computed": 0, "segments_found": 0, "bytes": 0, "seconds": 0.0, "skipped": []}
    return {"id": None, "path": str(path), "title": path.name, "state": state, "reason": error.message, "error": error.as_json(), **nothing}


def _take(shelf: Shelf, path: Path, params: dict[str, Any], call: Call, wants_reading: bool) -> tuple[DocumentRow, Job | None]:
    """Read one source and give it a row and, where it is to be read, a job."""
    call.emit("progress", {"id": None, "title": path.name, "state": "reading", "percent": 0.0})
    document = read(
        path,
        params.get("encoding"),
        call.stop.is_set,
        lambda name, done, total: call.emit("progress", {"title": name, "state": "reading", "files_done": done, "files": total}),
    )
    row = _row_for(shelf, document, wants_reading)
    shelf.publish("documents", {"documents": [document_row(shelf, row)]})
    if not wants_reading:
        return row, None
    from engine.reading.queue import assign_parts

    model, _ = shelf.model(params.get("model"))
    assigned = shelf.library.parts.of(row.id, model.namespace)
    if not assigned or params.get("part_tokens"):
        assigned = assign_parts(shelf, model, row, params.get("part_tokens"))
    if all(part.state == "ready" for part in assigned):
        return shelf.library.documents.set_state(row.id, "ready"), None
    job = shelf.library.jobs.add(row.id, model.name)
    missing = estimate_bytes(model.installed, sum(part.tokens - part.tokens_done for part in assigned))
    try:
        space.require(shelf.home.segments, missing)
    except LongshelfError as error:
        job = _hold(shelf, job, f"{error.message} {error.hint}")
    else:
        if missing > space.ASK_ABOVE and not params.get("yes"):
            job = _hold(shelf, job, f"It will take {space.size_text(missing)} on the disk. Resume it to go ahead.")
    shelf.queue.wake()
    row = shelf.library.documents.get(row.id)
    call.emit("document", document_row(shelf, row))
    return row, job


def _hold(shelf: Shelf, job: Job, reason: str) -> Job:
    shelf.library.documents.set_state(job.document_id, "paused", reason)
    return shelf.library.jobs.set_state(job.id, "paused", reason)


def _row_for(shelf: Shelf, document: Document, wants_reading: bool) -> DocumentRow:
    """The document's row: the one it had under this path, with new content where the source changed, else a new one."""
    library = shelf.library
    fields = document.as_json()
    names = ("title", "path", "format", "encoding", "encoding_confident", "source_digest", "text", "spans", "skipped")
    new = NewDocument(**{name: fields[name] for name in names})
    for old in library.documents.with_path(document.path):
        if old.source_digest != document.source_digest or old.encoding != document.encoding:
            row = library.documents.replace_content(old.id, new)
            for part in {part.namespace for part in library.parts.of(old.id)}:
                library.memory.unassign(old.id, part)
            return library.documents.set_state(row.id, "queued")
        return old
    return library.documents.add(new) if wants_reading else library.documents.add(new, "paused", "added without reading")


def _result(shelf: Shelf, entry: dict[str, Any], params: dict[str, Any], call: Call) -> dict[str, Any]:
    """One document of the answer; waits for its job where that is wanted."""
    if "row" not in entry:
        return entry
    row, job = entry["row"], entry["job"]
    counts = {"computed": 0, "found": 0}
    if job is not None and params.get("wait", True):
        job, counts = _wait(shelf, job, call)
        if call.stop.is_set():
            shelf.queue.interrupt([paused.id for paused in shelf.library.jobs.pause(job.id)])
            raise Stopped
    elif job is None:
        namespace_parts = shelf.library.parts.of(row.id)
        counts["found"] = sum(len(part.expected) for part in namespace_parts if part.state == "ready")
    row = shelf.library.documents.get(row.id)
    shown = document_row(shelf, row)
    kept = {name: shown[name] for name in ("id", "path", "title", "state", "reason", "tokens", "parts", "bytes")}
    return {
        **kept,
        "segments_computed": counts["computed"],
        "segments_found": counts["found"],
        "seconds": round(time.perf_counter() - entry["started"], 3),
        "skipped": [{"path": path, "reason": reason} for path, reason in row.skipped],
    }


def _wait(shelf: Shelf, job: Job, call: Call) -> tuple[Job, dict[str, int]]:
    """Until a job has ended, its progress told to the caller."""
    end = shelf.subscribe(lambda event, data: _forward(call, job.document_id, event, data))
    try:
        return shelf.queue.wait(job.id, call.stop)
    finally:
        end()


def _forward(call: Call, document_id: str, event: str, data: dict[str, Any]) -> None:
    if event == "documents":
        for row in data["documents"]:
            if row["id"] == document_id:
                call.emit("progress", row)


def list_documents(shelf: Shelf, params: dict[str, Any], call: Call) -> dict[str, Any]:
    """documents.list; with query: those whose title, path or text holds every word of it."""
    rows = shelf.library.documents.all()
    if query := params.get("query"):
        order = shelf.library.search.find_documents(query)
        rows = sorted((row for row in rows if row.id in order), key=lambda row: order.index(row.id))
    return {"documents": [document_row(shelf, row) for row in rows]}


def show(shelf: Shelf, params: dict[str, Any], call: Call) -> dict[str, Any]:
    """documents.show: a document's text and map; by id, path or title."""
    row = shelf.library.documents.find(str(params["id"]))
    document = stored_document(shelf, row)
    installed = current_model(shelf)
    parts: list[dict[str, Any]] = []
    if installed:
        from engine.model.identity import namespace

        for part in shelf.library.parts.of(row.id, namespace(installed)):
            parts.append({"n": part.ordinal + 1, "start": part.start, "end": part.end, "tokens": part.tokens, "state": part.state})
    return {"id": row.id, "state": row.state, "reason": row.reason, **described(document), "parts": parts}


def read_only(shelf: Shelf, params: dict[str, Any], call: Call) -> dict[str, Any]:
    """documents.read: what a path that isn't added holds; nothing is kept, no model is needed."""
    path = Path(params["paths"][0])
    return {"id": None, "state": "read", "reason": "", **described(read(path, params.get("encoding"), call.stop.is_set)), "parts": []}


def described(document: Document) -> dict[str, Any]:
    """Text and map of a document, as `show` gives them."""

    def spans(kind: str) -> list[dict[str, Any]]:
        return [{"label": s.label, "start": s.start, "end": s.end} for s in document.spans if s.kind == kind]

    return {
        "title": document.title,
        "path": document.path,
        "format": document.format,
        "encoding": document.encoding,
        "text": document.text,
        "pages": [{"n": n, **page} for n, page in enumerate(spans("page"), 1)],
        "sections": spans("section"),
        "files": spans("file"),
        "skipped": [{"path": s.path, "reason": s.reason} for s in document.skipped],
    }


def remove(shelf: Shelf, params: dict[str, Any], call: Call) -> dict[str, Any]:
    """documents.remove: rows, text, and the segments that nothing else needs."""
    row = shelf.library.documents.find(str(params["id"]))
    cancelled = [job for job in shelf.library.jobs.of(row.id) if job.state in ("queued", "running", "paused")]
    for job in cancelled:
        shelf.library.jobs.cancel(job.id)
    shelf.queue.interrupt([job.id for job in cancelled])
    freed = shelf.model_thread.run(lambda: shelf.library.memory.remove_document(row.id))
    shelf.publish("documents", {"documents": [{"id": row.id, "removed": True}]})
    return {"id": row.id, "title": row.title, "segments_removed": freed.segments, "bytes_freed": freed.bytes}


def list_jobs(shelf: Shelf, params: dict[str, Any], call: Call) -> dict[str, Any]:
    """jobs.list: in the order of the queue."""
    return {"jobs": _jobs(shelf, shelf.library.jobs.all(("queued", "running", "paused", "failed")))}


def change_jobs(shelf: Shelf, params: dict[str, Any], call: Call) -> dict[str, Any]:
    """jobs.pause, .resume, .cancel, .retry ({action}): one document's or job's ({id}), or all."""
    jobs, action = shelf.library.jobs, params["action"]
    chosen: list[int | None] = [None]
    if params.get("id") is not None:
        name = str(params["id"])
        chosen = [int(name)] if name.isdigit() else [job.id for job in jobs.of(shelf.library.documents.find(name).id)]
    changed = [job for job_id in chosen for job in getattr(jobs, action)(job_id)]
    if action in ("pause", "cancel"):
        shelf.queue.interrupt([job.id for job in changed])
    else:
        for job in changed:
            row = shelf.library.documents.set_state(job.document_id, "queued")
            shelf.publish("documents", {"documents": [document_row(shelf, row)]})
        shelf.queue.wake()
    shelf.publish("jobs", {"jobs": _jobs(shelf, changed)})
    if action in ("resume", "retry") and params.get("wait"):
        for job in changed:
            _wait(shelf, job, call)
    return {"jobs": _jobs(shelf, [jobs.get(job.id) for job in changed])}


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
