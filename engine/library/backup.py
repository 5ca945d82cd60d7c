"""Copies of the catalog taken while it is in use: one a day, and one before an upgrade.

The copy is made by SQLite's online backup into a temporary file, checked, flushed and renamed, so that an older good copy is only
replaced by a newer good one.
"""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path

from sqlite_utils import Database

from engine.store import durable, space

DAY_S = 24 * 3600


def backup_path(catalog: Path) -> Path:
    """Where the daily copy of a catalog lies: catalog.backup.db beside catalog.db."""
    return catalog.with_name(f"{catalog.stem}.backup.db")


def is_whole(path: Path) -> bool:
    """Whether SQLite finds nothing wrong with the file."""
    if not path.is_file() or path.stat().st_size == 0:
        return False
    try:
        db = Database(path, execute_plugins=False)
        try:
            return [row[0] for row in db.execute("PRAGMA quick_check(1)").fetchall()] == ["ok"]
        finally:
            db.close()
    except sqlite3.Error:
        return False


def copy(source: Database, target: Path) -> None:
    """Copy a database in use to `target`, in one file without a write-ahead log.

    Raises LongshelfError("disk_full" or "store_unavailable"), or sqlite3.Error for the source.
    """
    with space.named_disk_errors(target.parent):
        _copy(source, target)


def _copy(source: Database, target: Path) -> None:
    temporary = durable.temporary_beside(target)
    try:
        os.close(durable.create(temporary))  # private from the first byte
        db = Database(temporary, execute_plugins=False)
        try:
            source.conn.backup(db.conn, pages=-1)
            db.disable_wal()
        finally:
            db.close()
        if not is_whole(temporary):
            raise OSError(f"the copy of the catalog {temporary} is damaged")
        descriptor = os.open(temporary, os.O_RDWR)
        try:
            durable.sync_file(descriptor)
        finally:
            os.close(descriptor)
        durable.replace(temporary, target)
    except BaseException:
        durable.discard(temporary)
        raise


def copy_daily(source: Database, catalog: Path, now: float | None = None) -> bool:
    """Take the daily copy unless one of the last 24 hours is there; returns whether one was taken."""
    target = backup_path(catalog)
    moment = time.time() if now is None else now
    if target.exists() and 0 <= moment - target.stat().st_mtime < DAY_S:
        return False
    copy(source, target)
    return True
