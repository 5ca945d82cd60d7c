"""Making the catalog again when its file is damaged or gone.

What there is to work with: the texts (documents and how they are cut), the files of the chats, and the segment files, which say
themselves what they are. Where one of them is damaged too, the daily backup and what can still be read in the damaged catalog stand
in. No model is needed and nothing is read again. The new catalog is built beside the old one and takes its place in one step; the
damaged file is kept.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import sqlite3
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlite_utils import Database

from engine.errors import LongshelfError
from engine.home import Home
from engine.library import backup
from engine.library.catalog import Catalog
from engine.library.library import Library
from engine.library.parts import SegmentRow
from engine.store import durable, space

_CHAT_TABLES = ("chats", "chat_documents", "messages", "citations", "counters")


@dataclass(frozen=True)
class Rebuilt:
    """What came back. aside: where the damaged file is kept; unreadable_texts: ids of documents whose kept text is damaged too and
    that are lost unless their source is added again; unreadable_chats: ids of chats whose file is damaged and that are lost, or as
    old as what stood in for it."""

    aside: Path | None
    backup_used: bool
    documents: int
    parts: int
    parts_ready: int
    segments: int
    chats: int
    unreadable_texts: list[str]
    unreadable_chats: list[str]


def rebuild(home: Home, floor: int | None = None) -> Rebuilt:
    """Make the catalog of a home again. For the holder of the writer lock, with no other process or Library using the home.

    Raises LongshelfError("disk_full", "store_unavailable" or "newer_home"); the old file is then still in its place.
    """
    with space.named_disk_errors(home.root):
        fresh = durable.temporary_beside(home.catalog)
        try:
            result = _build(home, fresh, floor)
            _put_in_place(fresh, home.catalog, result.aside)
        finally:
            durable.discard(fresh)
    return result


def _build(home: Home, fresh: Path, floor: int | None) -> Rebuilt:
    """The new catalog under a temporary name, closed and in one file."""
    library, backup_used = _begin(home, fresh, floor)
    with closing(library):
        _salvage_chats(home.catalog, library)
        unreadable_chats = _restore_chats(library)
        segments = _find_segments(library)
        unreadable = _restore_documents(library)
        library.chats.fail_interrupted()
        library.jobs.requeue_interrupted()
        progress = library.parts.progress()
        library.catalog.db.disable_wal()
        return Rebuilt(
            aside=_aside(home.catalog) if home.catalog.exists() else None,
            backup_used=backup_used,
            documents=len(library.documents.all()),
            parts=sum(entry.parts for entry in progress),
            parts_ready=sum(entry.parts_ready for entry in progress),
            segments=segments,
            chats=len(library.chats.all()),
            unreadable_texts=unreadable,
            unreadable_chats=unreadable_chats,
        )


def _begin(home: Home, fresh: Path, floor: int | None) -> tuple[Library, bool]:
    """A library over a new catalog that starts from the backup, if that is whole."""
    os.close(durable.create(fresh))
    kept = backup.backup_path(home.catalog)
    used = backup.is_whole(kept)
    if used:
        shutil.copyfile(kept, fresh)
    library = Library(home, Catalog.open(fresh), floor)
    with library.catalog.transaction() as db:
        # Which segments and parts there are, the files say better than a backup of some hours ago.
        db.execute("DELETE FROM parts")
        db.execute("DELETE FROM segments")
    return library, used


def _find_segments(library: Library) -> int:
    """Rows for all segment files whose frame is good. One that begins a chain and is expected by no part is a shared one."""
    count = 0
    with library.catalog.transaction():
        for digest, header, _ in library.store.scan():
            row = SegmentRow(digest, header.parent, header.namespace, header.start, header.tokens, library.store.size(digest))
            library.parts.add_row(row, shared=not header.parent)
            count += 1
    return count


def _restore_documents(library: Library) -> list[str]:
    """Documents as the texts have them; returns the ids of unreadable texts that no backup stands in for."""
    library.memory.finish_removals()  # before lost documents come back: these were removed on purpose
    texts = set(library.texts.ids())
    for row in library.documents.all():
        if row.id not in texts:  # removed since the backup
            with library.catalog.transaction() as db:
                db.execute("DELETE FROM documents WHERE id = ?", [row.id])
            continue
        _restore_over_backup(library, row.id)
    _, unreadable = library.restore_lost()
    with library.catalog.transaction() as db:
        expected = "SELECT value FROM parts, json_each(parts.expected)"
        db.execute(f"UPDATE segments SET shared = 0 WHERE shared AND digest IN ({expected})")
    return unreadable


def _restore_over_backup(library: Library, document_id: str) -> None:
    """The kept text says better than the backup what a document is; if it can't be read, the backup's row stands in for it."""
    try:
        record = library.texts.load(document_id)
    except LongshelfError as error:
        if error.kind != "text_damaged":
            raise
        library.texts.save(library.documents.record(document_id))
        library.documents.set_state(document_id, "queued", "How it was cut into parts was lost; it is read again.")
        return
    library.restore_over(record)


def _restore_chats(library: Library) -> list[str]:
    """Chats as their files have them; returns the ids of unreadable files, where what came back so far stays."""
    kept, unreadable = library.transcripts, []
    there = {chat.id for chat in library.chats.all()}
    if kept.folder.exists():  # else all chats are from before they had files
        for chat_id in there.difference(kept.ids()):  # removed since the backup
            library.chats.remove(chat_id)
    for chat_id in kept.ids():
        try:
            library.chats.restore(kept.load(chat_id))
        except LongshelfError as error:
            if error.kind != "chat_damaged":
                raise
            unreadable.append(chat_id)
            if chat_id in there:
                _keep_aside(kept.path(chat_id))
                library.chats.keep(chat_id)
    return unreadable


def _keep_aside(path: Path) -> None:
    """A second name for a damaged file that is about to be replaced: a person may still make something of it."""
    if not (aside := path.with_name(path.name + ".damaged")).exists():
        durable.keep_aside(path, aside)


def _salvage_chats(path: Path, library: Library) -> None:
    """Chats as far as the damaged file still gives them, over those of the backup."""
    if not path.exists():
        return
    # A copy: reading folds the write-ahead log into the file, and the damaged one is to stay as it was found.
    copy = durable.temporary_beside(path)
    try:
        for suffix in ("", "-wal"):
            if (source := path.with_name(path.name + suffix)).exists():
                shutil.copyfile(source, copy.with_name(copy.name + suffix))
        tables: dict[str, list[dict[str, Any]]] = {}
        complete = True
        for table in _CHAT_TABLES:
            tables[table], whole = _readable_rows(copy, table)
            if not whole:  # what lies behind the damage, read from the other end
                tables[table] += _readable_rows(copy, table, backwards=True)[0]
            complete = complete and whole
    finally:
        durable.discard(copy)
    with library.catalog.transaction() as db:
        if complete:
            db.execute("DELETE FROM chats")
        for table, rows in tables.items():
            for row in sorted(rows, key=lambda row: str(row.get("id", "")).zfill(20)):  # a message after the one it answers
                with suppress(sqlite3.IntegrityError):  # a row that lost what it belongs to
                    _keep_row(db, table, row)


def _readable_rows(path: Path, table: str, backwards: bool = False) -> tuple[list[dict[str, Any]], bool]:
    """The rows of a table up to the first that can't be read, and whether that was all."""
    rows: list[dict[str, Any]] = []
    try:
        db = Database(path, execute_plugins=False)
        try:
            for row in db.query(f"SELECT * FROM {table} ORDER BY rowid {'DESC' if backwards else 'ASC'}"):
                rows.append(row)
        finally:
            db.close()
    except sqlite3.Error:
        return rows, False
    return rows, True


def _keep_row(db: Database, table: str, row: dict[str, Any]) -> None:
    if table == "messages" and not _is_json(row["meta"]):
        row = row | {"meta": "{}"}
    keys = db.table(table).pks
    names = ", ".join(f'"{name}"' for name in row)
    changes = ", ".join(f'"{name}" = excluded."{name}"' for name in row if name not in keys) or f"{keys[0]} = excluded.{keys[0]}"
    db.execute(
        f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(row))}) ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {changes}",
        list(row.values()),
    )


def _is_json(text: Any) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (TypeError, ValueError):
        return False


def _aside(catalog: Path) -> Path:
    """A name that no earlier damaged file has."""
    name = f"{catalog.name}.damaged-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}"
    names = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
    return next(path for path in map(catalog.with_name, names) if not path.exists())


def _put_in_place(fresh: Path, catalog: Path, aside: Path | None) -> None:
    """The old catalog keeps its name until the new one takes it, and its log never meets the new file."""
    descriptor = os.open(fresh, os.O_RDWR)
    try:
        durable.sync_file(descriptor)
    finally:
        os.close(descriptor)
    if aside is not None:
        durable.keep_aside(catalog, aside)
    if (log := catalog.with_name(catalog.name + "-wal")).exists():
        durable.replace(log, (aside or catalog).with_name((aside or catalog).name + ("-wal" if aside else ".lost-wal")))
    catalog.with_name(catalog.name + "-shm").unlink(missing_ok=True)
    durable.replace(fresh, catalog)
