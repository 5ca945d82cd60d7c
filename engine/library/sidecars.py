"""Sidecars with their rows, kept in step: what was made of segments and can be made of them again.

The file is on the disk for good, then the row; the row goes, then the file. A row goes with any of the segments it derives from,
whatever removes that. Files without a row are nobody's, and `sweep` removes them: at every start, and whenever something is forgotten.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import LongshelfError
from engine.library.catalog import Catalog
from engine.store.sidecar import Sidecar, SidecarHeader, damaged
from engine.store.sidecars import SidecarStore

if TYPE_CHECKING:
    import torch

QUICK_JOIN, SKETCH, TABLES = "quick join", "sketch", "hash tables"

BUILDERS = {QUICK_JOIN: 1, SKETCH: 2, TABLES: 1}
"""The version of the code that makes each kind. One more for every change of what it makes: what the code before made goes then."""

LOST = ("sidecar_damaged", "sidecar_missing")


@dataclass(frozen=True)
class SidecarRow:
    """A sidecar that is on the disk. bytes: of the file; sources: digests of the segments it derives from, in order."""

    digest: str
    kind: str
    builder: int
    namespace: str
    bytes: int
    sources: tuple[str, ...]


class Sidecars:
    """Find, keep and drop. Only the holder of the home's writer lock may call what changes something here."""

    def __init__(self, catalog: Catalog, store: SidecarStore) -> None:
        self.store = store
        self._catalog = catalog
        self._lock = threading.RLock()  # held from a file to its row; taken before a transaction, never inside one

    def find(self, digest: str) -> Sidecar | None:
        """The sidecar of a recipe, every byte of it checked (once a process), and used now; None if there is none.

        One that can't be used is none; a damaged one is dropped.
        """
        if self._catalog.row("SELECT 1 FROM sidecars WHERE digest = ?", [digest]) is None:
            return None
        try:
            sidecar = self.store.open(digest)
            sidecar.will_need()
            sidecar.touch_all()
        except LongshelfError as error:
            with suppress(LongshelfError):  # a full disk, say: it is found damaged again
                if error.kind in LOST:
                    self.drop(digest)
            return None
        with suppress(LongshelfError), self._catalog.transaction() as db:
            db.execute("UPDATE sidecars SET last_used = ? WHERE digest = ?", [time.time(), digest])
        return sidecar

    def keep(self, header: SidecarHeader, arrays: Sequence[torch.Tensor]) -> bool:
        """Keep a sidecar; False if a segment it derives from has gone meanwhile, and nothing is kept.

        Raises what SidecarStore.commit and the catalog raise, and nothing is kept then either.
        """
        with self._lock:
            digest = self.store.commit(header, arrays)
            kept = False
            try:
                kept = self._add_row(header)
            finally:
                if not kept:
                    with suppress(LongshelfError):  # it is swept away later
                        self.store.remove(digest)
            return kept

    def _add_row(self, header: SidecarHeader) -> bool:
        recipe, now = header.recipe, time.time()
        with self._catalog.transaction() as db:
            there = "SELECT count(DISTINCT digest) FROM segments WHERE digest IN (SELECT value FROM json_each(?))"
            if db.execute(there, [json.dumps(recipe.sources)]).fetchone()[0] < len(set(recipe.sources)):
                return False
            db.execute("DELETE FROM sidecars WHERE digest = ?", [recipe.digest])
            db.execute(
                "INSERT INTO sidecars (digest, kind, builder, namespace, bytes, created_at, last_used) VALUES (?, ?, ?, ?, ?, ?, ?)",
                [recipe.digest, recipe.kind, recipe.builder, recipe.namespace, header.size, now, now],
            )
            sources = [(recipe.digest, ordinal, source) for ordinal, source in enumerate(recipe.sources)]
            db.conn.executemany("INSERT INTO sidecar_sources (sidecar, ordinal, segment) VALUES (?, ?, ?)", sources)
            return True

    def check(self, row: SidecarRow, deep: bool) -> None:
        """Compare a row with its file; deep: every byte of it. Raises LongshelfError("sidecar_missing") and ("sidecar_damaged")."""
        if (found := self.store.size(row.digest)) != row.bytes:
            raise damaged(row.digest, f"it has {found:,} bytes, not {row.bytes:,}")
        if deep:
            self.store.verify(row.digest)
            recipe = self.store.open(row.digest).header.recipe
            said = (row.kind, row.builder, row.namespace, row.sources)
            if said != (recipe.kind, recipe.builder, recipe.namespace, recipe.sources):
                raise damaged(row.digest, "the catalog says something else about it")

    def drop(self, digest: str) -> None:
        """Remove one: its row, then its file. Nothing if it isn't there."""
        with self._lock:
            with self._catalog.transaction() as db:
                db.execute("DELETE FROM sidecars WHERE digest = ?", [digest])
            self.store.remove(digest)

    def drop_other_models(self, namespaces: Collection[str]) -> None:
        """Drop what was made for models that aren't installed any more: its like is made again once they are."""
        for row in self.all():
            if row.namespace not in namespaces:
                self.drop(row.digest)

    def let_go(self, segments: Sequence[str]) -> int:
        """Inside a transaction that removes these segments' rows: remove those of what derives from them; gives the bytes of that.

        The files stay until `sweep`.
        """
        derived = "SELECT sidecar FROM sidecar_sources WHERE segment IN (SELECT value FROM json_each(?))"
        with self._catalog.transaction() as db:
            gone = db.execute(f"DELETE FROM sidecars WHERE digest IN ({derived}) RETURNING bytes", [json.dumps(list(segments))])
            return sum(int(row[0]) for row in gone.fetchall())

    def sweep(self) -> None:
        """Remove what nobody will open again: what code before this made, and files without rows. What can't be removed is left."""
        with self._lock, suppress(LongshelfError):
            for row in self._catalog.rows("SELECT digest, kind, builder FROM sidecars"):
                if row["builder"] != BUILDERS.get(row["kind"]):
                    self.drop(row["digest"])
            for digest in self.without_row():
                with suppress(LongshelfError):
                    self.store.remove(digest)

    def without_row(self) -> list[str]:
        """Digests of files that have no row."""
        rows = {row["digest"] for row in self._catalog.rows("SELECT digest FROM sidecars")}
        return [digest for digest in self.store.digests() if digest not in rows]

    def all(self) -> list[SidecarRow]:
        """Least recently used first."""
        sources: dict[str, list[str]] = {}
        for row in self._catalog.rows("SELECT sidecar, segment FROM sidecar_sources ORDER BY sidecar, ordinal"):
            sources.setdefault(row["sidecar"], []).append(row["segment"])
        rows = self._catalog.rows("SELECT digest, kind, builder, namespace, bytes FROM sidecars ORDER BY last_used, digest")
        return [SidecarRow(**row, sources=tuple(sources.get(row["digest"], ()))) for row in rows]

    def without(self, kind: str, segments: Sequence[str]) -> list[str]:
        """Those of these segments of which there is no sidecar of a kind, in their order."""
        sql = """
            SELECT value FROM json_each(?) WHERE value NOT IN (
                SELECT segment FROM sidecar_sources JOIN sidecars ON sidecars.digest = sidecar WHERE kind = ?)
            ORDER BY key
        """
        return [str(row["value"]) for row in self._catalog.rows(sql, [json.dumps(list(segments)), kind])]

    def bytes(self) -> int:
        """Bytes of all of them."""
        row = self._catalog.row("SELECT coalesce(sum(bytes), 0) AS bytes FROM sidecars")
        return int(row["bytes"]) if row else 0
