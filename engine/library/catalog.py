"""The catalog: one SQLite file that says what there is, opened through sqlite-utils.

Each thread has its own connection (WAL, foreign keys on, waits for a writer up to 30 s). Changes happen inside `transaction()`;
one transaction holds all that must be true together. What SQLite says of the disk or of a damaged file becomes a LongshelfError;
anything else it raises is a fault of ours and passes through.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlite_utils import Database

from engine.errors import LongshelfError
from engine.library import backup
from engine.library.migrations import migrations
from engine.store import space

Row = dict[str, Any]

_BUSY_MS = 30_000  # indexing the text of a very large folder holds the write lock for seconds
_RETRY_S = 0.02
_COMPANIONS = 64 * 1024  # bytes; the first pages of -wal and -shm, without which nothing can even be read
_SMALLEST_PAGE = 512  # bytes; SQLite takes what is shorter for an empty database and would write over it
_CHECKED_BELOW = 64_000_000  # bytes; a larger file is checked when opened only if it wasn't closed in order (about 1 s a GB)


class Catalog:
    """Rows under `path`. Made by `Catalog.open`; may be used by any thread; `close` ends the calling thread's connection."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._local = threading.local()

    @staticmethod
    def open(path: Path) -> Catalog:
        """Open or create; bring an older schema up to date, with a copy of the file kept from before.

        Raises LongshelfError: "catalog_damaged", "newer_home" (a later version made it), "disk_full", "home" (can't be opened),
        "busy" (another process keeps it locked). Every use of a catalog may raise these but "newer_home"; also "search_damaged".
        """
        catalog = Catalog(path)
        with catalog._named_errors():
            closed_in_order = not path.with_name(path.name + "-wal").exists()
            size = path.stat().st_size if path.exists() else 0
            if 0 < size < _SMALLEST_PAGE:
                raise damaged(path, f"it was cut to {size} bytes")
            catalog._refuse_newer()
            if size and not (closed_in_order and size > _CHECKED_BELOW):
                catalog.check()
            catalog._upgrade(existing=size > 0)
        return catalog

    @property
    def db(self) -> Database:
        """The calling thread's connection."""
        db: Database | None = getattr(self._local, "db", None)
        if db is None:
            db = Database(self.path, execute_plugins=False)  # plugins are other people's code
            try:
                db.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
                db.execute("PRAGMA foreign_keys = ON")
                db.execute("PRAGMA temp_store = MEMORY")  # what is sorted, texts among it, is written nowhere else
                # FULL: rows are on the disk before the files they let go of are removed, a power cut included. At one commit
                # a segment or message its cost doesn't show. fullfsync is macOS's way to reach the drive itself.
                db.execute("PRAGMA synchronous = FULL")
                db.execute("PRAGMA fullfsync = ON")
            except BaseException:
                db.close()
                raise
            self._local.db = db
        return db

    @contextmanager
    def transaction(self) -> Iterator[Database]:
        """All or nothing, for what is done on the connection it gives. Inside another it is part of that one."""
        with self._named_errors():
            db = self.db
            if db.conn.in_transaction:
                with db.atomic():
                    yield db
                return
            db.execute("BEGIN IMMEDIATE")  # take the write lock now: a read that turns into a write can fail half-way
            try:
                yield db
                db.commit()
            except BaseException:
                db.rollback()
                raise

    def rows(self, sql: str, parameters: Sequence[object] | dict[str, Any] = ()) -> list[Row]:
        """All rows of a SELECT."""
        with self._named_errors():
            cursor = self.db.execute(sql, parameters)
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def row(self, sql: str, parameters: Sequence[object] | dict[str, Any] = ()) -> Row | None:
        """The first row of a SELECT, if any."""
        found = self.rows(sql, parameters)
        return found[0] if found else None

    def value(self, text: str) -> Any:
        """What a JSON column holds. Raises LongshelfError("catalog_damaged")."""
        try:
            return json.loads(text)
        except ValueError as error:
            raise damaged(self.path, f"a column that holds JSON can't be read ({error})") from error

    def check(self, deep: bool = False) -> None:
        """Ask SQLite whether the file is whole. deep: the indexes too. Raises LongshelfError("catalog_damaged")."""
        with self._named_errors():
            verdict = [str(row[0]) for row in self.db.execute(f"PRAGMA {'integrity_check' if deep else 'quick_check'}(3)").fetchall()]
        # Newer versions of SQLite look into the search indexes too. Those are made again from the text: see `checkup`.
        if faults := [line for line in verdict if line != "ok" and "fts5" not in line.lower()]:
            raise damaged(self.path, "; ".join(faults))

    def back_up_daily(self, now: float | None = None) -> bool:
        """Take the day's copy of the catalog unless it is there; returns whether one was taken. Raises as `open` does."""
        with self._named_errors():
            return backup.copy_daily(self.db, self.path, now)

    def close(self) -> None:
        """Close the calling thread's connection; the last one to close folds the write-ahead log into the file."""
        db: Database | None = getattr(self._local, "db", None)
        if db is not None:
            self._local.db = None
            db.close()

    def _refuse_newer(self) -> None:
        known = {migration.name for migration in migrations.pending(Database(memory=True))}
        if unknown := [step.name for step in migrations.applied(self.db) if step.name not in known]:
            self.close()
            raise LongshelfError(
                "newer_home",
                f"The home {self.path.parent} was used by a newer version of Longshelf ({unknown[-1]}).",
                "Use that version, or choose another home with --home DIR. Nothing was changed.",
            )

    def _upgrade(self, existing: bool) -> None:
        self._enable_wal()
        if not (pending := migrations.pending(self.db)):
            return
        if existing and migrations.applied(self.db):
            backup.copy(self.db, self.path.with_name(f"{self.path.stem}.before-{pending[0].name}.db"))
        # One transaction around all steps: two processes that open a new home at once must not both create its tables.
        with self.transaction() as db:
            migrations.apply(db)

    def _enable_wal(self) -> None:
        """SQLite doesn't wait by itself for two processes that do this at once to a new home."""
        until = time.monotonic() + _BUSY_MS / 1000
        while True:
            try:
                return self.db.enable_wal()
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise
            time.sleep(_RETRY_S)

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            named = _named(self.path, error)
            if named is None:
                raise
            raise named from error


def damaged(path: Path, detail: str) -> LongshelfError:
    """The error for a catalog that can't be trusted."""
    return LongshelfError(
        "catalog_damaged",
        f"The catalog {path} is damaged: {detail}.",
        "Run `longshelf doctor --repair`: the damaged file is kept aside, and documents, what was remembered of them and chats are"
        " brought back from the files that are kept of each.",
    )


def _named(path: Path, error: sqlite3.DatabaseError) -> LongshelfError | None:
    """What a primary result code of SQLite means to a person; None for those that are our own mistakes."""
    if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_CORRUPT_VTAB:
        return LongshelfError(
            "search_damaged",
            f"The search index in the catalog {path} is damaged.",
            "Run `longshelf doctor --deep --repair`: the index is made again from the text.",
        )
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == 0 and "decode to UTF-8" in str(error):  # Python's own complaint: it has no code
        return damaged(path, str(error))
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT):
        return damaged(path, str(error))
    if code == sqlite3.SQLITE_FULL or (code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN) and _is_full(path)):
        return space.disk_full(path.parent)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return LongshelfError(
            "busy", f"Another process keeps the catalog {path} locked.", "Wait until it has ended, or close it, and try again."
        )
    if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_AUTH):
        return LongshelfError(
            "home", f"The catalog {path} can't be used: {error}.", "Check the disk and the folder's permissions, or choose another home."
        )
    return None


def _is_full(path: Path) -> bool:
    """Where not even the companions of the catalog fit, SQLite speaks of an input/output error."""
    try:
        return space.space(path.parent).free < _COMPANIONS
    except LongshelfError:
        return False
