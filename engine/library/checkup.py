"""The doctor: what is wrong in a home, why that can be, and what to do. `mending` does it.

The quick check compares names and sizes; the deep one reads every byte that is kept, and compares rows with files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from engine.errors import LongshelfError, Stopped
from engine.library import agreement
from engine.library.library import Library

_REPAIR = "Run `longshelf doctor --repair`."
_REPAIR_DEEP = "Run `longshelf doctor --deep --repair`."


@dataclass(frozen=True)
class Problem:
    """kind: stable word; what, cause, next: one sentence each; subject: digest, document id, path or row, for the repair."""

    kind: str
    what: str
    cause: str
    next: str
    subject: str

    def as_json(self) -> dict[str, str]:
        return {"kind": self.kind, "what": self.what, "cause": self.cause, "next": self.next}


def _never() -> bool:
    return False


def examine(
    library: Library,
    deep: bool = False,
    stop: Callable[[], bool] = _never,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Problem]:
    """All problems, worst first. deep: reads everything, about a second a GB; progress(done, total) in segments.

    Changes nothing. Raises Stopped when `stop` says so.
    """
    problems = list(_in_catalog(library, deep))
    if problems and problems[0].kind == "catalog_damaged":
        return problems  # what it says about the rest can't be trusted
    if deep and (differing := list(_in_rows(library))):
        return problems + differing  # what rows say about files can be trusted once these are mended
    problems += _in_documents(library, deep)
    problems += _in_chats(library, deep)
    problems += _in_segments(library, deep, stop, progress)
    problems += _in_sidecars(library, deep, stop)
    problems += _left_over(library)
    return problems


def _in_catalog(library: Library, deep: bool) -> Iterator[Problem]:
    try:
        library.catalog.check(deep)
        orphans = library.catalog.rows("PRAGMA foreign_key_check")
    except LongshelfError as error:
        if error.kind != "catalog_damaged":
            raise
        yield Problem(error.kind, error.message, "A disk fault, or another program wrote into the file.", error.hint, "")
        return
    for row in orphans:
        what = f"A row of {row['table']} belongs to one of {row['parent']} that is gone."
        yield Problem("catalog_rows", what, "Another program changed the catalog.", _REPAIR, f"{row['table']} {row['rowid']}")
    for index in ("parts_fts", "parts_words", "messages_fts") if deep else ():
        try:
            with library.catalog.transaction() as db:
                db.execute(f"INSERT INTO {index} ({index}, rank) VALUES ('integrity-check', 1)")
        except LongshelfError as error:
            if error.kind != "search_damaged":
                raise
            what = f"The search index {index} does not fit the text it is about."
            yield Problem("search_index", what, "Another program changed the catalog.", _REPAIR, index)


def _in_rows(library: Library) -> Iterator[Problem]:
    """What differs from the files that are kept of it. Where that can be read, the row was changed and not the file."""
    cause = "A disk fault, or the program was killed while it was changed."
    for document_id in agreement.differing_documents(library):
        what = f"The catalog says something else about document {document_id} than the text that is kept of it."
        yield Problem("document_differs", what, cause, _REPAIR_DEEP, document_id)
    for chat_id in agreement.differing_chats(library):
        what = f"The catalog says something else about chat {chat_id} than the file that is kept of it."
        yield Problem("chat_differs", what, cause, _REPAIR_DEEP, chat_id)
    for digest in agreement.differing_segments(library):
        what = f"The catalog says something else about segment {digest[:12]} than its file."
        yield Problem("segment_differs", what, cause, _REPAIR_DEEP, digest)


def _in_documents(library: Library, deep: bool) -> Iterator[Problem]:
    kept = set(library.texts.ids())
    for row in library.documents.all():
        if row.id not in kept:
            what = f"The kept text of {row.title!r} is missing."
            yield Problem("text_missing", what, "The file was removed by another program.", _REPAIR, row.id)
    lost = library.lost()
    for document_id in lost:
        what = f"The text of document {document_id} is kept, but the catalog has lost it."
        yield Problem("document_lost", what, "The program was killed while it was added.", _REPAIR, document_id)
    for document_id in sorted(kept.difference(lost)) if deep else ():
        try:
            library.texts.load(document_id)
        except LongshelfError as error:
            if error.kind == "text_damaged":
                yield Problem(error.kind, error.message, "A disk fault, or another program wrote into the file.", _REPAIR, document_id)


def _in_chats(library: Library, deep: bool) -> Iterator[Problem]:
    for chat in library.chats_without_file():
        what = f"The chat {chat.title!r} has no file of its own."
        yield Problem("chat_missing", what, "The file was removed by another program.", _REPAIR, chat.id)
    lost = library.lost_chats()
    for chat_id in lost:
        what = f"The chat {chat_id} is kept, but the catalog has lost it."
        yield Problem("chat_lost", what, "The program was killed while it was begun.", _REPAIR, chat_id)
    for chat_id in sorted(set(library.transcripts.ids()).difference(lost)) if deep else ():
        try:
            library.transcripts.load(chat_id)
        except LongshelfError as error:
            if error.kind == "chat_damaged":
                yield Problem(error.kind, error.message, "A disk fault, or another program wrote into the file.", _REPAIR, chat_id)


def _in_segments(library: Library, deep: bool, stop: Callable[[], bool], progress: Callable[[int, int], None]) -> Iterator[Problem]:
    rows = {row["digest"]: row["bytes"] for row in library.catalog.rows("SELECT digest, bytes FROM segments ORDER BY digest")}
    files = set(library.store.digests())
    for number, (digest, size) in enumerate(rows.items()):
        if stop():
            raise Stopped
        if fault := _fault(library, digest, size, deep, digest in files):
            where = _whose(library, digest)
            yield Problem(fault.kind, f"{fault.message}{where}", _CAUSES[fault.kind], _REPAIR, digest)
        progress(number + 1, len(rows))
    expected = {digest for part in _all_parts(library) for digest in part}
    for digest in sorted(files - set(rows) - expected):
        what = f"Segment {digest[:12]} belongs to no document."
        yield Problem("segment_orphan", what, "The program was killed while it was kept or removed.", _REPAIR, digest)


_CAUSES = {
    "segment_missing": "The file was removed by another program.",
    "segment_damaged": "A disk fault, or another program wrote into the file.",
    "sidecar_missing": "The file was removed by another program.",
    "sidecar_damaged": "A disk fault, or another program wrote into the file.",
}


def _fault(library: Library, digest: str, size: int, deep: bool, present: bool) -> LongshelfError | None:
    if not present:
        return LongshelfError("segment_missing", f"Segment {digest[:12]} is missing.")
    try:
        if deep:
            library.store.verify(digest)
        elif (found := library.store.size(digest)) != size:
            return LongshelfError("segment_damaged", f"Segment {digest[:12]} has {found:,} bytes, not {size:,}.")
    except LongshelfError as error:
        if error.kind not in _CAUSES:
            raise
        return error
    return None


def _in_sidecars(library: Library, deep: bool, stop: Callable[[], bool]) -> Iterator[Problem]:
    for row in library.sidecars.all():
        if stop():
            raise Stopped
        try:
            library.sidecars.check(row, deep)
        except LongshelfError as error:
            if error.kind not in _CAUSES:
                raise
            yield Problem(error.kind, error.message, _CAUSES[error.kind], error.hint, row.digest)
    for digest in library.sidecars.without_row():
        what = f"Sidecar {digest[:12]} belongs to nothing that is remembered."
        yield Problem("sidecar_orphan", what, "The program was killed while it was kept or removed.", _REPAIR, digest)


def _whose(library: Library, digest: str) -> str:
    places = [f"part {part.ordinal + 1} of {library.documents.get(part.document_id).title!r}" for part in library.parts.having(digest)]
    return f" It is in {', '.join(places)}." if places else ""


def _all_parts(library: Library) -> Iterator[tuple[str, ...]]:
    for row in library.documents.all():
        yield from (part.expected for part in library.parts.of(row.id))


def _left_over(library: Library) -> Iterator[Problem]:
    for path in library.temporaries():
        yield Problem("temporary_file", f"{path} was never finished.", "The program was killed while writing it.", _REPAIR, str(path))
    for row in library.catalog.rows("SELECT id FROM removals"):
        what = "Files of something that was removed are still there."
        yield Problem("removal_unfinished", what, "The program was killed while removing it.", _REPAIR, str(row["id"]))
