"""Rows of parts: how a document is cut for one model, and which segments hold each part so far.

An assignment (document, namespace → parts) is kept once made, so that a document read again is cut the same way. Rows of segments
are only written for files that are already on the disk for good: see `memory`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from sqlite_utils import Database

from engine.errors import LongshelfError
from engine.library.catalog import Catalog, Row
from engine.library.documents import Documents
from engine.library.texts import TextRecord, Texts


@dataclass(frozen=True)
class PartPlan:
    """One part as it is to be read. start, end: code points; first_token: its place among the document's tokens.

    segments: digests of its segments in order, known from the token ids before anything is read; the preamble's is not among them.
    """

    start: int
    end: int
    tokens: int
    first_token: int
    ids_digest: str
    segments: tuple[str, ...]


@dataclass(frozen=True)
class Part:
    """A part and how far it is remembered. ordinal: from 0; expected: PartPlan.segments; tip: digest of its last segment so far.

    tokens_done: tokens of the segments it has; state: "waiting" (none), "reading", "ready" (all), "damaged" (some were lost).
    """

    id: int
    document_id: str
    namespace: str
    model: str
    ordinal: int
    start: int
    end: int
    tokens: int
    first_token: int
    ids_digest: str
    expected: tuple[str, ...]
    tip: str | None
    tokens_done: int
    state: str

    @property
    def plan(self) -> PartPlan:
        """How it was assigned."""
        return PartPlan(self.start, self.end, self.tokens, self.first_token, self.ids_digest, self.expected)


@dataclass(frozen=True)
class SegmentRow:
    """A segment file that is on the disk. bytes: of the file; start: position of its first token in the chain."""

    digest: str
    parent: str
    namespace: str
    start: int
    tokens: int
    bytes: int


@dataclass(frozen=True)
class Progress:
    """How far one document is remembered by one model. bytes: of the segments its parts have, and of what was made of them;
    sidecar_bytes: the latter alone."""

    document_id: str
    namespace: str
    model: str
    parts: int
    parts_ready: int
    tokens: int
    tokens_done: int
    bytes: int
    sidecar_bytes: int


_TICK_S = 0.001
_PART = ", ".join(f'"{column.name}"' for column in fields(Part))


class Parts:
    """Methods that name a part raise LongshelfError("not_found") if it isn't there; changes return the new row."""

    def __init__(self, catalog: Catalog, texts: Texts, documents: Documents) -> None:
        self._catalog = catalog
        self._texts = texts
        self._documents = documents

    def assign(self, document_id: str, namespace: str, model: str, plans: Sequence[PartPlan]) -> list[Part]:
        """Store how a document is cut for a model, replacing what was stored for that pair.

        Kept in texts/ first, then as rows. An unchanged assignment keeps its rows; otherwise each new part at once has the leading
        segments that the catalog knows (text that didn't change isn't read again).
        """
        present = self.of(document_id, namespace)
        if present and [part.plan for part in present] == list(plans):
            return present
        kept = self._texts.load(document_id)
        assignment = {"model": model, "parts": [asdict(plan) for plan in plans]}
        self._texts.save(TextRecord(kept.document, kept.assignments | {namespace: assignment}))
        return self.restore(document_id, namespace, assignment)

    def drop(self, document_id: str) -> None:
        """Forget how a document is cut, for every model. Its segments stay until `Memory.collect`, so that a new cut finds them."""
        kept = self._texts.load(document_id)
        self._texts.save(TextRecord(kept.document, {}))
        with self._catalog.transaction() as db:
            db.execute("DELETE FROM parts WHERE document_id = ?", [document_id])

    def restore(self, document_id: str, namespace: str, assignment: dict[str, Any]) -> list[Part]:
        """Rows for an assignment as a file in texts/ holds it: {"model", "parts": [PartPlan as JSON]}."""
        text = self._documents.text(document_id)
        with self._catalog.transaction() as db:
            db.execute("DELETE FROM parts WHERE document_id = ? AND namespace = ?", [document_id, namespace])
            for ordinal, plan in enumerate(assignment["parts"]):
                part_id = db.execute(
                    'INSERT INTO parts (document_id, namespace, model, ordinal, start, "end", tokens, first_token, ids_digest, expected)'
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    [
                        *(document_id, namespace, assignment["model"], ordinal, plan["start"], plan["end"], plan["tokens"]),
                        *(plan["first_token"], plan["ids_digest"], json.dumps(plan["segments"])),
                    ],
                ).lastrowid
                db.execute("INSERT INTO part_texts (part_id, text) VALUES (?, ?)", [part_id, text[plan["start"] : plan["end"]]])
                _link_known(db, int(part_id or 0), plan["segments"])
        return self.of(document_id, namespace)

    def get(self, part_id: int) -> Part:
        row = self._catalog.row(f"SELECT {_PART} FROM parts WHERE id = ?", [part_id])
        if row is None:
            raise LongshelfError("not_found", f"There is no part {part_id}.", "")
        return self._part(row)

    def of(self, document_id: str, namespace: str | None = None) -> list[Part]:
        """A document's parts in order, of one namespace or of all."""
        sql = f"SELECT {_PART} FROM parts WHERE document_id = ? AND (? IS NULL OR namespace = ?) ORDER BY namespace, ordinal"
        return [self._part(row) for row in self._catalog.rows(sql, [document_id, namespace, namespace])]

    def count(self, namespace: str) -> int:
        """How many parts all documents have."""
        row = self._catalog.row("SELECT count(*) AS count FROM parts WHERE namespace = ?", [namespace])
        return int(row["count"]) if row else 0

    def documents_with(self, namespace: str, limit: int) -> list[str]:
        """Ids of documents that have a finished part, the latest added first."""
        sql = (
            "SELECT id FROM documents WHERE id IN (SELECT document_id FROM parts WHERE namespace = ? AND state = 'ready')"
            " ORDER BY added_at DESC, id LIMIT ?"
        )
        return [str(row["id"]) for row in self._catalog.rows(sql, [namespace, limit])]

    def segments(self, part_id: int) -> list[str]:
        """Digests of the segments a part has so far, in order."""
        rows = self._catalog.rows("SELECT digest FROM part_segments WHERE part_id = ? ORDER BY ordinal", [part_id])
        return [str(row["digest"]) for row in rows]

    def having(self, digest: str) -> list[Part]:
        """The parts that a segment belongs to."""
        sql = f"SELECT {_PART} FROM parts WHERE id IN (SELECT part_id FROM part_segments WHERE digest = ?) ORDER BY id"
        return [self._part(row) for row in self._catalog.rows(sql, [digest])]

    def add_segment(self, part_id: int, segment: SegmentRow) -> Part:
        """The next segment of a part is on the disk. Nothing if the part has it already.

        Raises ValueError if it isn't the one the part expects next.
        """
        with self._catalog.transaction() as db:
            part = self.get(part_id)
            present = self.segments(part_id)
            if segment.digest in present:
                return part
            if part.expected[len(present) : len(present) + 1] != (segment.digest,):
                raise ValueError(f"segment {segment.digest[:12]} is not number {len(present)} of part {part_id}")
            self.add_row(segment)
            _link(db, part_id, len(present), segment.digest)
            _settle(db, part_id)
            return self.get(part_id)

    def add_row(self, segment: SegmentRow, shared: bool = False) -> None:
        """The row of a segment, tied to no part. shared: it stands before all parts of its namespace, as the preamble does."""
        now = time.time()
        with self._catalog.transaction() as db:
            db.execute(
                "INSERT INTO segments (digest, parent, namespace, start, tokens, bytes, shared, created_at, last_used)"
                " VALUES (:digest, :parent, :namespace, :start, :tokens, :bytes, :shared, :now, :now)"
                " ON CONFLICT (digest) DO UPDATE SET bytes = excluded.bytes, shared = max(shared, excluded.shared)",
                asdict(segment) | {"shared": int(shared), "now": now},
            )

    def correct_row(self, segment: SegmentRow) -> None:
        """Make a segment's row say what its file does."""
        with self._catalog.transaction() as db:
            names = ", ".join(f"{name} = :{name}" for name in asdict(segment) if name != "digest")
            db.execute(f"UPDATE segments SET {names} WHERE digest = :digest", asdict(segment))
            for part in self.having(segment.digest):
                _settle(db, part.id)

    def is_consistent(self, part: Part) -> bool:
        """Whether a part says of itself what its segments do, and has the ones it expects."""
        has = self.segments(part.id)
        sql = "SELECT coalesce(sum(tokens), 0) AS done FROM segments JOIN part_segments USING (digest) WHERE part_id = ?"
        done = self._catalog.rows(sql, [part.id])[0]["done"]
        states = {"ready"} if done >= part.tokens else {"reading", "damaged"} if done else {"waiting", "damaged"}
        said = (part.tip, part.tokens_done, tuple(has))
        return said == (has[-1] if has else None, done, part.expected[: len(has)]) and part.state in states

    def cut_back(self, part_id: int, keep: int) -> Part:
        """Forget all but the first `keep` segments of a part: it is then "damaged", and reading goes on from there."""
        with self._catalog.transaction() as db:
            db.execute("DELETE FROM part_segments WHERE part_id = ? AND ordinal >= ?", [part_id, keep])
            _settle(db, part_id)
            db.execute("UPDATE parts SET state = 'damaged' WHERE id = ?", [part_id])
            return self.get(part_id)

    def touch(self, digests: Iterable[str]) -> None:
        """These segments were used now: what was used longest ago is given up first.

        Later than any other, too, where the clock was set back meanwhile.
        """
        with self._catalog.transaction() as db:
            (latest,) = db.execute("SELECT coalesce(max(last_used), 0) FROM segments").fetchone()
            now = max(time.time(), latest + _TICK_S)
            db.conn.executemany("UPDATE segments SET last_used = ? WHERE digest = ?", [(now, digest) for digest in digests])

    def progress(self, document_id: str | None = None, namespace: str | None = None) -> list[Progress]:
        """How far documents are remembered, one entry for each pair of document and namespace that has parts."""
        own = """
            SELECT part_segments.digest FROM part_segments JOIN parts AS own ON own.id = part_segments.part_id
            WHERE own.document_id = parts.document_id AND own.namespace = parts.namespace
        """
        sql = f"""
            SELECT document_id, namespace, min(model) AS model, count(*) AS parts, sum(state = 'ready') AS parts_ready,
                sum(tokens) AS tokens, sum(tokens_done) AS tokens_done,
                (SELECT coalesce(sum(bytes), 0) FROM segments WHERE digest IN ({own})) AS bytes,
                (SELECT coalesce(sum(bytes), 0) FROM sidecars WHERE digest IN (
                    SELECT sidecar FROM sidecar_sources WHERE segment IN ({own}))) AS sidecar_bytes
            FROM parts WHERE (:document IS NULL OR document_id = :document) AND (:namespace IS NULL OR namespace = :namespace)
            GROUP BY document_id, namespace ORDER BY document_id, namespace
        """
        rows = self._catalog.rows(sql, {"document": document_id, "namespace": namespace})
        return [Progress(**row | {"bytes": row["bytes"] + row["sidecar_bytes"]}) for row in rows]

    def _part(self, row: Row) -> Part:
        return Part(**(row | {"expected": tuple(self._catalog.value(row["expected"]))}))


def _link(db: Database, part_id: int, ordinal: int, digest: str) -> None:
    db.execute("INSERT INTO part_segments (part_id, ordinal, digest) VALUES (?, ?, ?)", [part_id, ordinal, digest])


def _link_known(db: Database, part_id: int, expected: Sequence[str]) -> None:
    """Give a part without segments the leading ones that have rows."""
    for ordinal, digest in enumerate(expected):
        if db.execute("SELECT 1 FROM segments WHERE digest = ?", [digest]).fetchone() is None:
            break
        _link(db, part_id, ordinal, digest)
    _settle(db, part_id)


def _settle(db: Database, part_id: int) -> None:
    """Make tip, tokens_done and state say what part_segments holds."""
    db.execute(
        """
        UPDATE parts SET
            tip = (SELECT digest FROM part_segments WHERE part_id = parts.id ORDER BY ordinal DESC LIMIT 1),
            tokens_done = (SELECT coalesce(sum(segments.tokens), 0) FROM part_segments JOIN segments USING (digest)
                           WHERE part_id = parts.id)
        WHERE id = :id
        """,
        {"id": part_id},
    )
    db.execute(
        "UPDATE parts SET state = CASE WHEN tokens_done >= tokens THEN 'ready' WHEN tokens_done > 0 THEN 'reading' ELSE 'waiting' END"
        " WHERE id = ?",
        [part_id],
    )
