"""Mending what `checkup` found, each problem by itself. It never touches a text that is whole or a segment that is good."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.errors import LongshelfError
from engine.library.checkup import Problem
from engine.library.library import Library
from engine.library.parts import SegmentRow
from engine.store import durable


@dataclass(frozen=True)
class Repair:
    """A problem and what was done about it, one sentence."""

    problem: Problem
    done: str


def repair(library: Library, problems: Sequence[Problem]) -> list[Repair]:
    """Repair what can be, in the order given. For the holder of the writer lock.

    Of a damaged catalog only its indexes can be: for the rest, close the library and use `recovery.rebuild`.
    """
    repairs: dict[str, Callable[[Library, str], str]] = {
        "catalog_damaged": _rebuild_indexes,
        "catalog_rows": _delete_row,
        "document_differs": _restore_over,
        "chat_differs": _restore_over_chat,
        "segment_differs": _restore_segment_row,
        "search_index": _rebuild_index,
        "text_missing": _write_text,
        "text_damaged": _write_text,
        "document_lost": _restore_document,
        "chat_missing": _write_chat,
        "chat_damaged": _write_chat,
        "chat_lost": _restore_chat,
        "segment_missing": _lose_segment,
        "segment_damaged": _lose_segment,
        "segment_orphan": _remove_segment,
        "sidecar_missing": _drop_sidecar,
        "sidecar_damaged": _drop_sidecar,
        "sidecar_orphan": _drop_sidecar,
        "temporary_file": _remove_file,
        "removal_unfinished": _finish_removal,
    }
    return [Repair(problem, repairs[problem.kind](library, problem.subject)) for problem in problems if problem.kind in repairs]


# ---- each does it and says what was done ----


def _delete_row(library: Library, subject: str) -> str:
    table, rowid = subject.split()
    with library.catalog.transaction() as db:
        db.execute(f'DELETE FROM "{table}" WHERE rowid = ?', [int(rowid)])
    return "The row was removed."


def _rebuild_indexes(library: Library, subject: str) -> str:
    """Damage that only the thorough check of SQLite finds is most often in an index, which can be made again in its place."""
    try:
        with library.catalog.transaction() as db:
            db.execute("REINDEX")
    except LongshelfError as error:
        if error.kind != "catalog_damaged":
            raise
        return "It can't be mended in its place."
    return "Its indexes were made again."


def _restore_over(library: Library, subject: str) -> str:
    library.restore_over(library.texts.load(subject))
    return "The document was made again from the text that is kept."


def _restore_over_chat(library: Library, subject: str) -> str:
    library.chats.restore(library.transcripts.load(subject))
    return "The chat was made again from its file."


def _restore_segment_row(library: Library, subject: str) -> str:
    header = library.store.open(subject).header
    row = SegmentRow(subject, header.parent, header.namespace, header.start, header.tokens, library.store.size(subject))
    library.parts.correct_row(row)
    return "The row was made again from the file."


def _rebuild_index(library: Library, subject: str) -> str:
    with library.catalog.transaction() as db:
        db.execute(f"INSERT INTO {subject} ({subject}) VALUES ('rebuild')")
    return "The index was made again from the text."


def _write_text(library: Library, subject: str) -> str:
    if library.catalog.row("SELECT 1 FROM documents WHERE id = ?", [subject]) is None:
        path = library.texts.path(subject)
        durable.replace(path, path.with_name(path.name + ".damaged"))
        return f"Its document is lost; the file is kept as {path.name}.damaged. Add the source again."
    library.texts.save(library.text_record(subject))
    return "The text was written again from the catalog."


def _restore_document(library: Library, subject: str) -> str:
    restored, unreadable = library.restore_lost()
    if subject in unreadable:
        return _write_text(library, subject)
    if any(row.id == subject for row in restored):
        return "The document is back."
    return "The document is back already."


def _write_chat(library: Library, subject: str) -> str:
    try:
        library.chats.keep(subject)
    except LongshelfError as error:
        if error.kind != "not_found":
            raise
        return "The chat was removed meanwhile."
    return "The chat was written again from the catalog."


def _restore_chat(library: Library, subject: str) -> str:
    _, unreadable = library.restore_lost_chats()
    if subject not in unreadable:
        return "The chat is back."
    path = library.transcripts.path(subject)
    durable.replace(path, path.with_name(path.name + ".damaged"))
    return f"It can't be read; the file is kept as {path.name}.damaged."


def _lose_segment(library: Library, subject: str) -> str:
    parts = library.memory.lose(subject)
    for part in parts:
        library.documents.set_state(part.document_id, "queued", f"Part {part.ordinal + 1} of what was remembered is read again.")
        library.jobs.add(part.document_id, part.model)
    return "The segment was taken out; it is read again." if parts else "The segment was taken out."


def _remove_segment(library: Library, subject: str) -> str:
    library.store.remove(subject)
    return "The file was removed."


def _drop_sidecar(library: Library, subject: str) -> str:
    library.sidecars.drop(subject)
    return "It was removed; it is made again when it is needed."


def _remove_file(library: Library, subject: str) -> str:
    durable.remove(Path(subject))
    return "The file was removed."


def _finish_removal(library: Library, subject: str) -> str:
    library.memory.finish_removals()
    return "The files were removed."
