"""Segment files and their rows, kept in step: what is remembered of documents, and how it is forgotten.

Remembering: the file is on the disk for good, then the row. Forgetting: the rows go, then the files. So a process killed at any
instant leaves files without rows, never rows without files. One lock covers each such pair of steps: without it a segment could
be forgotten between another thread's finding its file and writing its row. Only the holder of the home's writer lock may call
what changes something here.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from engine.errors import LongshelfError
from engine.library import references
from engine.library.catalog import Catalog
from engine.library.counters import TOKENS_PREFILLED, Counters
from engine.library.joins import Join, Joins
from engine.library.parts import Part, Parts, SegmentRow
from engine.library.sidecars import Sidecars
from engine.library.texts import TextRecord, Texts
from engine.store.format import Ids, SegmentHeader
from engine.store.store import Store

if TYPE_CHECKING:
    import torch

    KV = npt.NDArray[np.generic] | torch.Tensor


@dataclass(frozen=True)
class Freed:
    """What removing gave back. bytes: of segments and of what was made of them."""

    segments: int
    bytes: int


class Memory:
    """Remember and forget. `kv` and what `remember…` raises: see Store.commit."""

    def __init__(
        self, catalog: Catalog, store: Store, texts: Texts, parts: Parts, joins: Joins, counters: Counters, sidecars: Sidecars
    ) -> None:
        self.store = store
        self._catalog = catalog
        self._texts = texts
        self._parts = parts
        self._joins = joins
        self._counters = counters
        self._sidecars = sidecars
        self.lock = threading.RLock()  # taken before a transaction, never inside one that another thread could wait for

    def remember(self, part_id: int, header: SegmentHeader, ids: Sequence[int] | Ids, kv: KV, prefilled: int) -> Part:
        """Keep the next segment of a part. prefilled: tokens computed for it, added to tokens_prefilled_total in the same step."""
        with self.lock:
            self._parts.get(part_id)
            return self.record(part_id, self.store.commit(header, ids, kv), header, prefilled)

    def record(self, part_id: int, digest: str, header: SegmentHeader, prefilled: int) -> Part:
        """The second half of `remember`, for a file the store has committed (prefilled) or had already (0).

        Raises LongshelfError: "segment_missing" if the file was removed since, "not_found" if the part was (its document was
        removed, or cut anew); the file then goes too, unless something else has it.
        """
        with self.lock:
            row = self._row(digest, header)
            try:
                with self._catalog.transaction():
                    self._counters.increment(TOKENS_PREFILLED, prefilled)
                    return self._parts.add_segment(part_id, row)
            except LongshelfError as error:
                if error.kind == "not_found" and self._catalog.row("SELECT 1 FROM segments WHERE digest = ?", [digest]) is None:
                    self.store.remove(digest)
                raise

    def remember_shared(self, header: SegmentHeader, ids: Sequence[int] | Ids, kv: KV, prefilled: int) -> str:
        """Keep a segment that stands before many parts, such as the preamble; returns its digest.

        It is needed, and so kept, as long as its namespace has parts.
        """
        with self.lock:
            digest = self.store.commit(header, ids, kv)
            self.record_shared(digest, header, prefilled)
            return digest

    def record_shared(self, digest: str, header: SegmentHeader, prefilled: int) -> None:
        """The second half of `remember_shared`, for a file the store has."""
        with self.lock:
            row = self._row(digest, header)
            with self._catalog.transaction():
                self._counters.increment(TOKENS_PREFILLED, prefilled)
                self._parts.add_row(row, shared=True)

    def remember_join(self, join_id: int, header: SegmentHeader, ids: Sequence[int] | Ids, kv: KV, prefilled: int) -> Join:
        """Keep the next segment of a join."""
        with self.lock:
            return self.record_join(join_id, self.store.commit(header, ids, kv), header, prefilled)

    def record_join(self, join_id: int, digest: str, header: SegmentHeader, prefilled: int) -> Join:
        """The second half of `remember_join`, for a file the store has."""
        with self.lock:
            row = self._row(digest, header)
            with self._catalog.transaction():
                self._counters.increment(TOKENS_PREFILLED, prefilled)
                return self._joins.add_segment(join_id, row)

    def adopt(self, part_id: int, deep: bool = True) -> Part:
        """Give a part the segments it expects next whose files are there and whole; nothing is computed.

        This is how reading goes on after a crash, and how the same text added twice is read once. deep: every byte is verified
        now; otherwise header and ids only, and K and V when they are first used.
        """
        with self.lock:
            part = self._parts.get(part_id)
            for digest in part.expected[len(self._parts.segments(part_id)) :]:
                if not self.store.has(digest):
                    break
                try:
                    if deep:
                        self.store.verify(digest)
                    segment = self.store.open(digest)
                except LongshelfError as error:
                    if error.kind not in ("segment_damaged", "segment_missing"):
                        raise
                    break  # the part is read from here; committing replaces the bad file
                segment.close()
                part = self._parts.add_segment(part_id, self._row(digest, segment.header))
            return part

    def lose(self, digest: str) -> list[Part]:
        """A segment is damaged or missing: take it out, so that it is never used again; returns the parts to be read on.

        They are cut back to the segment before it and "damaged". Their later segments stay on disk and are adopted again once
        the lost one has been read. A lost shared segment belongs to no part: whoever needs it computes it anew.
        """
        with self.lock:
            with self._catalog.transaction() as db:
                parts = [self._parts.cut_back(part.id, self._parts.segments(part.id).index(digest)) for part in self._parts.having(digest)]
                db.execute("DELETE FROM joins WHERE id IN (SELECT join_id FROM join_segments WHERE digest = ?)", [digest])
                self._let_go([digest])
            self.finish_removals()
            return parts

    def remove_document(self, document_id: str) -> Freed:
        """Remove a document: its rows, its text, and the segments that nothing else needs.

        Raises LongshelfError("not_found"). After "store_unavailable" the document is gone and its files go at the next start.
        """

        def rows() -> None:
            with self._catalog.transaction() as db:
                if db.execute("DELETE FROM documents WHERE id = ?", [document_id]).rowcount == 0:
                    raise LongshelfError("not_found", f"There is no document {document_id!r}.", "`longshelf list` shows what is there.")

        return self._forget(rows, document_id)

    def forget(self, document_id: str, namespace: str | None = None) -> Freed:
        """Forget what is remembered of a document (by one model, or by all), and keep its text and how it is cut."""

        def rows() -> None:
            for part in self._parts.of(document_id, namespace):
                self._parts.cut_back(part.id, 0)
            with self._catalog.transaction() as db:
                sql = "UPDATE parts SET state = 'waiting' WHERE document_id = ? AND (? IS NULL OR namespace = ?)"
                db.execute(sql, [document_id, namespace, namespace])
                db.execute(
                    "DELETE FROM joins WHERE id IN (SELECT join_id FROM join_parts JOIN parts ON parts.id = part_id"
                    " WHERE document_id = ? AND (? IS NULL OR parts.namespace = ?))",
                    [document_id, namespace, namespace],
                )

        return self._forget(rows)

    def unassign(self, document_id: str, namespace: str) -> Freed:
        """Forget also how a document is cut for a model (a model that was removed)."""
        kept = self._texts.load(document_id)
        rest = {name: value for name, value in kept.assignments.items() if name != namespace}
        self._texts.save(TextRecord(kept.document, rest))

        def rows() -> None:
            with self._catalog.transaction() as db:
                db.execute("DELETE FROM parts WHERE document_id = ? AND namespace = ?", [document_id, namespace])

        return self._forget(rows)

    def remove_join(self, join_id: int) -> Freed:
        """Forget a stored combination; the documents' own memory stays."""
        return self._forget(lambda: self._joins.remove(join_id))

    def collect(self) -> Freed:
        """Remove every segment that nothing needs: `gc`. Segments of parts and joins are never touched."""
        with self.lock, self._catalog.transaction():
            freed = self._let_go([digest for digest, _ in references.unneeded(self._catalog)])
        self.finish_removals()
        return freed

    def finish_removals(self) -> int:
        """Remove the files of removals whose rows are gone already; returns how many there were. Also done at every start.

        Raises what the first file said that can't be removed, after all others are.
        """
        with self.lock:
            removals = self._catalog.rows("SELECT id, document_id, digests FROM removals ORDER BY id")
            failed: LongshelfError | None = None
            for removal in removals:
                error = self._remove_files(removal["document_id"], self._catalog.value(removal["digests"]))
                failed = failed or error
                if error is None:
                    with self._catalog.transaction() as db:
                        db.execute("DELETE FROM removals WHERE id = ?", [removal["id"]])
            self._sidecars.sweep()
            if failed is not None:
                raise failed
            return len(removals)

    def _remove_files(self, document_id: str | None, digests: Sequence[str]) -> LongshelfError | None:
        """A document's text and segments, where nothing has them any more; what the first said that can't be removed."""
        work: list[Callable[[], object]] = []
        if document_id and self._catalog.row("SELECT 1 FROM documents WHERE id = ?", [document_id]) is None:
            work.append(partial(self._texts.remove, document_id))
        for digest in digests:
            if self._catalog.row("SELECT 1 FROM segments WHERE digest = ?", [digest]) is None:
                work.append(partial(self.store.remove, digest))
        failed: LongshelfError | None = None
        for remove in work:
            try:
                remove()
            except LongshelfError as error:
                failed = failed or error
        return failed

    def _forget(self, rows: Callable[[], None], document_id: str | None = None) -> Freed:
        """Remove rows, let go of the segments that only they needed, then remove the files."""
        with self.lock:
            with self._catalog.transaction():
                before = references.needed(self._catalog)
                rows()
                freed = self._let_go(sorted(before - references.needed(self._catalog)), document_id)
            self.finish_removals()
            return freed

    def _let_go(self, digests: Sequence[str], document_id: str | None = None) -> Freed:
        """Inside a transaction: remove the segments' rows and note that their files (and the text's) are to go.

        What was made of them goes with them.
        """
        with self._catalog.transaction() as db:
            total = self._sidecars.let_go(digests)
            for digest in digests:
                row = db.execute("DELETE FROM segments WHERE digest = ? RETURNING bytes", [digest]).fetchone()
                total += int(row[0]) if row else 0
            if digests or document_id:
                db.execute(
                    "INSERT INTO removals (document_id, digests, created_at) VALUES (?, ?, ?)",
                    [document_id, json.dumps(list(digests)), time.time()],
                )
            return Freed(len(digests), total)

    def _row(self, digest: str, header: SegmentHeader) -> SegmentRow:
        return SegmentRow(digest, header.parent, header.namespace, header.start, header.tokens, self.store.size(digest))
