"""Giving room back: what of the remembered goes first when it takes more than it may.

Sidecars go first, the one unused for longest before the others: what they were made of is still there. Then stored combinations of
documents, likewise: a question makes them again by itself. Then whole documents' memory, but only with leave: their text stays, and
reading it again takes time.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.library import references
from engine.library.documents import DocumentRow
from engine.library.library import Library
from engine.library.memory import Freed

FORGOTTEN = "forgotten"
"""A stable word, as a document's reason."""


@dataclass(frozen=True)
class Candidate:
    """A document whose memory can be given up. bytes: of its segments and what was made of them, some of which other documents may
    need too."""

    row: DocumentRow
    bytes: int
    last_used: float


def used(library: Library) -> int:
    """Bytes of everything remembered."""
    row = library.catalog.row("SELECT coalesce(sum(bytes), 0) AS bytes FROM segments")
    return (int(row["bytes"]) if row else 0) + library.sidecars.bytes()


def give_up_sidecars(library: Library, most: int) -> int:
    """Drop sidecars until everything takes at most `most` bytes; returns how many went."""
    surplus, count = used(library) - most, 0
    for row in library.sidecars.all():
        if surplus <= 0:
            break
        library.sidecars.drop(row.digest)
        surplus -= row.bytes
        count += 1
    return count


def give_up_joins(library: Library, most: int, keep: int | None = None) -> int:
    """Forget stored combinations until everything takes at most `most` bytes; returns how many went. keep: not this one."""
    count = 0
    for join in library.joins.all():
        if used(library) <= most:
            break
        if join.id != keep:
            library.memory.remove_join(join.id)
            count += 1
    return count


def candidates(library: Library) -> list[Candidate]:
    """Documents whose memory can be given up, least recently used first. Those that are to be read are left out."""
    busy = {job.document_id for job in library.jobs.all()}
    sizes: dict[str, int] = {}
    for entry in library.parts.progress():
        sizes[entry.document_id] = sizes.get(entry.document_id, 0) + entry.bytes
    order = references.last_use(library.catalog).items()
    return [Candidate(library.documents.get(name), sizes[name], when) for name, when in order if name not in busy and sizes.get(name)]


def forget(library: Library, document_id: str) -> Freed:
    """Forget what is remembered of a document and keep its text; it isn't read again by itself."""
    library.documents.decide(document_id, "paused", FORGOTTEN)
    return library.memory.forget(document_id)
