"""Listing, showing and removing documents: the methods `documents.*` but adding."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.documents.document import Document
from engine.documents.reader import read
from engine.errors import LongshelfError
from engine.library.memory import Freed
from engine.reading.poorly import reads_poorly
from engine.reading.rows import current_model, document_row, stored_document

if TYPE_CHECKING:
    from engine.library.library import Library
    from engine.library.parts import Part
    from engine.shelf import Call, Shelf


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
    parts: list[Part] = []
    if installed:
        from engine.model.identity import namespace

        parts = shelf.library.parts.of(row.id, namespace(installed))
    return {
        "id": row.id,
        "state": row.state,
        "reason": row.reason,
        **described(document),
        "parts": [{"n": p.ordinal + 1, "start": p.start, "end": p.end, "tokens": p.tokens, "state": p.state} for p in parts],
        "made_by": _made_by(shelf.library, parts),
        "reads_poorly": reads_poorly(shelf, row.id, installed) if installed else None,
    }


def _made_by(library: Library, parts: list[Part]) -> list[dict[str, Any]]:
    """How what is remembered of these parts was made, each different way with the numbers of its parts. Never a reason not to use it."""
    ways: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for part in parts:
        for digest in [part.tip] if part.tip else []:
            with contextlib.suppress(LongshelfError):  # what is wrong with it is said when it is read
                segment = library.store.open(digest)
                segment.close()
                ways.setdefault(tuple(sorted(segment.header.provenance.items())), []).append(part.ordinal + 1)
    return [{**dict(way), "parts": numbers} for way, numbers in ways.items()]


def read_only(shelf: Shelf, params: dict[str, Any], call: Call) -> dict[str, Any]:
    """documents.read: what a path that isn't added holds; nothing is kept, no model is needed."""
    path = Path(params["paths"][0])
    document = read(path, params.get("encoding"), call.stop.is_set)
    return {"id": None, "state": "read", "reason": "", **described(document), "parts": [], "made_by": []}


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


def _remove(library: Library, document_id: str) -> Freed:
    """On a full disk the memory goes first: that takes few rows and gives the room in which the text and its index can go."""
    try:
        return library.memory.remove_document(document_id)
    except LongshelfError as error:
        if error.kind != "disk_full":
            raise
    forgotten = library.memory.forget(document_id)
    freed = library.memory.remove_document(document_id)
    return Freed(forgotten.segments + freed.segments, forgotten.bytes + freed.bytes)


def remove(shelf: Shelf, params: dict[str, Any], call: Call) -> dict[str, Any]:
    """documents.remove: rows, text, and the segments that nothing else needs."""
    row = shelf.library.documents.find(str(params["id"]))
    shelf.queue.give_up(row.id)
    freed = shelf.model_thread.run(lambda: _remove(shelf.library, row.id))
    shelf.publish("documents", {"documents": [{"id": row.id, "removed": True}]})
    return {"id": row.id, "title": row.title, "segments_removed": freed.segments, "bytes_freed": freed.bytes}
