"""Adding documents: the method `documents.add`."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.documents import encodings
from engine.documents.document import Document
from engine.documents.files import shown
from engine.documents.reader import read
from engine.errors import LongshelfError, Stopped
from engine.library.documents import DocumentRow, NewDocument
from engine.library.jobs import Job
from engine.library.parts import Part
from engine.library.sidecars import SKETCH
from engine.model import calibration
from engine.reading import room
from engine.reading.live import Ended
from engine.reading.parts import part_limit
from engine.reading.queue import assign_parts
from engine.reading.rows import document_row, estimate_bytes, index_bytes, kv_bytes, stored_document
from engine.store import space

if TYPE_CHECKING:
    from engine.model.installed import InstalledModel
    from engine.shelf import Call, Shelf

_STATE_OF = {"no_text": "no_text", "undecodable": "damaged", "unreadable": "failed"}
"""Document state for an error of a reader; anything else is "skipped"."""

_UNREADABLE = ("no_text", "undecodable", "unreadable", "binary", "unsupported", "special", "too_large")


def add(shelf: Shelf, params: dict[str, Any], call: Call) -> dict[str, Any]:
    """documents.add: read files and folders, keep their text, queue them for the model, and wait for that unless told not to.

    first: before what waits in the queue already, such as documents that an earlier engine left unfinished.
    """
    paths = [Path(os.path.abspath(os.path.expanduser(path))) for path in params.get("paths", [])]
    if not paths:
        raise LongshelfError("usage", "Nothing was named to add.", "Name a file or a folder.")
    if params.get("encoding"):
        encodings.check_known(params["encoding"])
    if params.get("read", True):  # no model, a damaged one or an impossible size: said before anything is read
        installed = shelf.models.open(params.get("model"))
        part_limit(params.get("part_tokens"), calibration.load(installed).part_tokens, installed.config.window)
    ahead: list[int] = []
    entries: list[Taken | dict[str, Any]] = []
    with progress_told(shelf, call) as told:
        for path in paths:
            try:
                entries.append(_take(shelf, path, params, call, told, ahead))
            except LongshelfError as error:
                if error.kind not in (*_UNREADABLE, "not_found") or (error.kind == "not_found" and len(paths) == 1):
                    raise
                entries.append(_refused(path, error))
        documents = [_result(shelf, entry, params, call) if isinstance(entry, Taken) else entry for entry in entries]
    if all("error" in document for document in documents):
        return {"documents": documents, "error": documents[0]["error"]}
    return {"documents": documents}


def _refused(path: Path, error: LongshelfError) -> dict[str, Any]:
    state = _STATE_OF.get(error.kind, "failed" if error.kind == "not_found" else "skipped")
    nothing = {"tokens": 0, "parts": 0, "segments_computed": 0, "segments_found": 0, "bytes": 0, "seconds": 0.0, "skipped": []}
    return {"id": None, "path": str(path), "title": path.name, "state": state, "reason": error.message, "error": error.as_json(), **nothing}


@dataclass(frozen=True)
class Taken:
    """A source that has a row. job: its reading, None where there is nothing to read; held: why that waits."""

    row: DocumentRow
    started: float
    job: Job | None = None
    held: LongshelfError | None = None


def _take(shelf: Shelf, path: Path, params: dict[str, Any], call: Call, told: set[str], ahead: list[int]) -> Taken:
    """Read one source and give it a row, whose id is put into `told`, and, where it is to be read, a job, put into `ahead`."""
    started = time.perf_counter()
    call.emit("progress", {"id": None, "title": path.name, "state": "reading", "percent": 0.0})
    encoding = params.get("encoding") or _named_before(shelf, path)
    document = _read(shelf, path, encoding, not params.get("encoding"), call)
    if not params.get("read", True):
        with shelf.adding:
            row = _row_for(shelf, document, encoding, wants_reading=False)
        _forget_unneeded(shelf)
        shelf.publish("documents", {"documents": [document_row(shelf, row)]})
        return Taken(row, started)
    model, _ = shelf.model(params.get("model"))
    with shelf.adding:  # the same source added twice at once is one document, cut once
        row = _row_for(shelf, document, encoding, wants_reading=True)
        told.add(row.id)
        if row.state == "paused":  # kept as text only so far, perhaps
            row = shelf.library.documents.decide(row.id, "queued")
        shelf.publish("documents", {"documents": [document_row(shelf, row)]})
        assigned = shelf.library.parts.of(row.id, model.namespace)
        if not assigned or params.get("part_tokens"):
            assigned = assign_parts(shelf, model, row, params.get("part_tokens"))
            _forget_unneeded(shelf)
        missing = sum(part.tokens - part.tokens_done for part in assigned)
        if not missing and _is_indexed(shelf, assigned):
            row = shelf.library.documents.set_state(row.id, "ready")
            shelf.publish("documents", {"documents": [document_row(shelf, row)]})
            return Taken(row, started)
        job = _queued(shelf, row, model.name, bool(params.get("first")), ahead)
        held = _reason_to_hold(shelf, model.installed, missing, bool(params.get("yes"))) if missing else None
        if held is not None:
            reason = f"{held.message} {held.hint}".strip()
            shelf.library.documents.set_state(row.id, "paused", reason)
            job = shelf.library.jobs.set_state(job.id, "paused", reason)
    shelf.queue.wake()
    row = shelf.library.documents.get(row.id)
    call.emit("document", document_row(shelf, row))
    return Taken(row, started, job, held)


def _is_indexed(shelf: Shelf, parts: Sequence[Part]) -> bool:
    """Whether all segments of these parts have their sketches."""
    library = shelf.library
    return not any(library.sidecars.without(SKETCH, library.parts.segments(part.id)) for part in parts)


def _forget_unneeded(shelf: Shelf) -> None:
    """Remove what only a document's old content, or its old parts, had."""
    shelf.library.memory.collect()


def _queued(shelf: Shelf, row: DocumentRow, model: str, first: bool, ahead: list[int]) -> Job:
    """The document's job. first: behind those of `ahead`, which were named before it, and before all others that wait."""
    with shelf.library.catalog.transaction():  # or the queue could begin another in between
        job = shelf.library.jobs.add(row.id, model)
        if first and job.state == "queued":
            job = shelf.library.jobs.move_first(job.id, ahead)
    ahead.append(job.id)
    return job


def _named_before(shelf: Shelf, path: Path) -> str | None:
    """The encoding that was named when this source was added before."""
    return next((row.encoding_named for row in shelf.library.documents.with_path(shown(path))), None)


def _read(shelf: Shelf, path: Path, encoding: str | None, from_before: bool, call: Call) -> Document:
    """What stands in a source; the kept text where the source is gone, or a document is named instead of one.

    from_before: the encoding, if any, is not one that was named now.
    """
    if not os.path.lexists(path) and (row := _known(shelf, path)) is not None:
        return stored_document(shelf, row)
    try:
        return read(
            path,
            encoding,
            call.stop.is_set,
            lambda name, done, total: call.emit("progress", {"title": name, "state": "reading", "files_done": done, "files": total}),
        )
    except LongshelfError as error:
        if error.kind == "undecodable" and encoding and from_before:
            hint = f"{encoding} was named when it was added before; name another with --encoding."
            raise LongshelfError(error.kind, error.message, hint) from error
        raise


def _known(shelf: Shelf, path: Path) -> DocumentRow | None:
    """The document that came from this path, or whose id or title its last part is."""
    for name in (shown(path), path.name):
        try:
            return shelf.library.documents.find(name)
        except LongshelfError as error:
            if error.kind != "not_found":
                raise
    return None


def _reason_to_hold(shelf: Shelf, installed: InstalledModel, missing: int, leave: bool) -> LongshelfError | None:
    """Why a document of which `missing` tokens are to be read is not read now. leave: the person agrees to a large one."""
    needed, index = kv_bytes(installed, missing), index_bytes(installed, missing)
    try:
        shelf.model_thread.run(lambda: room.make(shelf, needed, index=index), urgent=True)
    except LongshelfError as error:
        return error
    if (size := estimate_bytes(installed, missing)) > space.ASK_ABOVE and not leave:
        return LongshelfError("large", f"It will take {space.size_text(size)} on the disk.", "Resume it to go ahead.")
    return None


def _row_for(shelf: Shelf, document: Document, encoding: str | None, wants_reading: bool) -> DocumentRow:
    """The document's row: the one it had under this path, with new content where the source changed, else a new one.

    encoding: the one that was named for it.
    """
    library = shelf.library
    fields = document.as_json()
    names = ("title", "path", "format", "encoding", "encoding_confident", "source_digest", "text", "spans", "skipped")
    new = NewDocument(**{name: fields[name] for name in names}, encoding_named=encoding)
    state = ("queued", "") if wants_reading else ("paused", "added without reading")
    for old in library.documents.with_path(document.path):
        changed = old.source_digest != document.source_digest or old.encoding != document.encoding
        named_anew = old.encoding_named != encoding  # of a folder, each file may have another text now
        if changed or (named_anew and library.documents.text(old.id) != document.text):
            shelf.queue.give_up(old.id)
            library.parts.drop(old.id)  # first: what was read of the old text never stands beside the new one
            row = library.documents.replace_content(old.id, new)
            return library.documents.decide(row.id, *state)
        return library.documents.name_encoding(old.id, encoding) if named_anew else old
    return library.documents.add(new, *state)


def _result(shelf: Shelf, taken: Taken, params: dict[str, Any], call: Call) -> dict[str, Any]:
    """One document of the answer; waits for its job where that is wanted. With "error" where that did not end well."""
    row, job, error = taken.row, taken.job, taken.held
    ended = Ended()
    if job is None:
        ended.found = sum(len(part.expected) for part in shelf.library.parts.of(row.id) if part.state == "ready")
    elif error is None and params.get("wait", True):
        ended = shelf.queue.wait(job.id, call.stop)
        if call.stop.is_set():
            shelf.queue.pause([job.id])
            raise Stopped
        error = ended.error
    try:
        row = shelf.library.documents.get(row.id)
    except LongshelfError:
        return _refused(Path(row.path), LongshelfError("removed", f"“{row.title}” was removed while it was being read."))
    if error is None and job is not None and params.get("wait", True) and row.state == "paused":
        how = "cancelled" if row.reason == "cancelled" else "paused"
        error = LongshelfError(how, f"Reading “{row.title}” was {how}.", "What was read is kept; adding it again goes on.")
    shown = document_row(shelf, row)
    return {
        **{name: shown[name] for name in ("id", "path", "title", "state", "reason", "tokens", "parts", "bytes", "reads_poorly")},
        **({"error": error.as_json()} if error is not None else {}),
        "segments_computed": ended.computed,
        "segments_found": ended.found,
        "seconds": round(time.perf_counter() - taken.started, 3),
        "skipped": [{"path": path, "reason": reason} for path, reason in row.skipped],
    }


@contextmanager
def progress_told(shelf: Shelf, call: Call) -> Iterator[set[str]]:
    """Meanwhile the caller is told of each change of the documents whose ids are put into the set."""
    wanted: set[str] = set()

    def tell(event: str, data: dict[str, Any]) -> None:
        for row in data["documents"] if event == "documents" else ():
            if row["id"] in wanted:
                call.emit("progress", row)

    end = shelf.subscribe(tell)
    try:
        yield wanted
    finally:
        end()
