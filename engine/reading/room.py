"""Room for what is remembered: the limit, what is given up to stay below it, and the methods `gc` and `documents.forget`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import settings
from engine.errors import LongshelfError
from engine.library import room
from engine.library.library import Library
from engine.library.memory import Freed
from engine.reading.rows import document_row
from engine.store import space

if TYPE_CHECKING:
    from engine.shelf import Call, Shelf


def limit(shelf: Shelf) -> int:
    """Bytes that everything remembered may take."""
    chosen = settings.load(shelf.home).limit_bytes
    return space.default_limit(space.space(shelf.home.root).total) if chosen is None else chosen


def make(shelf: Shelf, needed: int, keep: int | None = None, index: int = 0) -> None:
    """Make room for `needed` bytes more, giving up sidecars and stored combinations (but `keep`), on the model thread, where none is
    being made. index: bytes that will be wanted for sketches; older sidecars go for them, but nothing is refused for want of them.

    Raises LongshelfError("limit") where that isn't enough, and ("disk_full").
    """
    most = limit(shelf)
    room.give_up_sidecars(shelf.library, most - needed - index)
    room.give_up_joins(shelf.library, most - needed, keep)
    taken = room.used(shelf.library)
    if taken + needed > most:
        sizes = f"{space.size_text(needed)} more are needed, {space.size_text(taken)} of {space.size_text(most)} are taken"
        raise LongshelfError(
            "limit",
            f"What is remembered would take more room than it may: {sizes}.",
            "Remove documents, let some be forgotten (`longshelf gc --forget --down-to SIZE`), or raise the limit"
            " (`longshelf settings limit SIZE`).",
        )
    space.require(shelf.home.segments, needed)


def fits(shelf: Shelf, needed: int) -> bool:
    """Whether `needed` bytes more stay below the limit with nothing given up."""
    return room.used(shelf.library) + needed <= limit(shelf)


def spare(shelf: Shelf, needed: int) -> bool:
    """Make room for a sidecar of `needed` bytes, for which nothing but other sidecars is given up; says whether there is."""
    library, most = shelf.library, limit(shelf) - needed
    if room.used(library) - library.sidecars.bytes() > most:
        return False
    room.give_up_sidecars(library, most)
    return True


def forget(shelf: Shelf, params: dict[str, Any], call: Call) -> dict[str, Any]:
    """documents.forget: what is remembered of a document goes, its text and chats stay."""
    row = shelf.library.documents.find(str(params["id"]))
    freed = _forget(shelf, row.id)
    return {"id": row.id, "title": row.title, "segments_removed": freed.segments, "bytes_freed": freed.bytes}


def gc(shelf: Shelf, params: dict[str, Any], call: Call) -> dict[str, Any]:
    """Remove what nothing needs; then, where more is kept than the limit (or `down_to` bytes), what `room` says goes first.

    forget: the leave to give up documents' memory too. Without it they are named in `would_forget`.
    """
    library = shelf.library
    before = room.used(library)
    freed = shelf.model_thread.run(library.memory.collect)
    most = limit(shelf) if params.get("down_to") is None else int(params["down_to"])
    sidecars = shelf.model_thread.run(lambda: room.give_up_sidecars(library, most))
    joins = shelf.model_thread.run(lambda: room.give_up_joins(library, most))
    forgotten = _forget_down_to(shelf, most) if params.get("forget") else []
    taken = room.used(library)
    return {
        "segments": freed.segments,
        "sidecars": sidecars,
        "joins": joins,
        "forgotten": forgotten,
        "would_forget": [] if params.get("forget") else _would_forget(library, taken - most),
        "temporaries": library.sweep_temporaries(),
        "bytes": before - taken,
        "bytes_used": taken,
        "limit": most,
    }


def _forget_down_to(shelf: Shelf, most: int) -> list[dict[str, Any]]:
    forgotten: list[dict[str, Any]] = []
    for candidate in room.candidates(shelf.library):
        if room.used(shelf.library) <= most:
            break
        freed = _forget(shelf, candidate.row.id)
        forgotten.append({"id": candidate.row.id, "title": candidate.row.title, "bytes": freed.bytes})
    return forgotten


def _would_forget(library: Library, surplus: int) -> list[dict[str, Any]]:
    """The documents that would have to be forgotten for `surplus` bytes to go."""
    named: list[dict[str, Any]] = []
    for candidate in room.candidates(library):
        if surplus <= 0:
            break
        surplus -= candidate.bytes
        named.append({"id": candidate.row.id, "title": candidate.row.title, "bytes": candidate.bytes})
    return named


def _forget(shelf: Shelf, document_id: str) -> Freed:
    shelf.queue.give_up(document_id)
    freed = shelf.model_thread.run(lambda: room.forget(shelf.library, document_id))
    shelf.publish("documents", {"documents": [document_row(shelf, shelf.library.documents.get(document_id))]})
    return freed
