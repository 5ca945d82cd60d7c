"""Stored combinations of documents: parts read one behind the other as one chain, kept so that no one reads them twice.

The first part's own segments begin the chain; what follows was read behind it and has segments of its own. A join goes when any
of its parts does.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from engine.errors import LongshelfError
from engine.library.catalog import Catalog, Row
from engine.library.parts import Parts, SegmentRow


@dataclass(frozen=True)
class Join:
    """parts: part ids in chain order; segments: digests behind the first part's; tokens, tokens_done: of those segments."""

    id: int
    namespace: str
    model: str
    parts: tuple[int, ...]
    segments: tuple[str, ...]
    tip: str | None
    tokens: int
    tokens_done: int
    last_used: float

    @property
    def ready(self) -> bool:
        return self.tokens_done >= self.tokens


class Joins:
    """Methods that name a join raise LongshelfError("not_found") if it isn't there."""

    def __init__(self, catalog: Catalog, parts: Parts) -> None:
        self._catalog = catalog
        self._parts = parts

    def find(self, namespace: str, parts: Sequence[int]) -> Join | None:
        """The join of exactly these parts in this order."""
        row = self._catalog.row("SELECT * FROM joins WHERE chain = ?", [_chain(namespace, parts)])
        return self._join(row) if row else None

    def add(self, namespace: str, model: str, parts: Sequence[int], tokens: int) -> Join:
        """Begin a join, or give the one that is there. tokens: how many stand behind the first part."""
        now = time.time()
        with self._catalog.transaction() as db:
            if (present := self.find(namespace, parts)) is not None:
                return present
            join_id = db.execute(
                "INSERT INTO joins (namespace, model, chain, tokens, created_at, last_used) VALUES (?, ?, ?, ?, ?, ?)",
                [namespace, model, _chain(namespace, parts), tokens, now, now],
            ).lastrowid
            for ordinal, part_id in enumerate(parts):
                db.execute("INSERT INTO join_parts (join_id, ordinal, part_id) VALUES (?, ?, ?)", [join_id, ordinal, part_id])
            return self.get(int(join_id or 0))

    def get(self, join_id: int) -> Join:
        row = self._catalog.row("SELECT * FROM joins WHERE id = ?", [join_id])
        if row is None:
            raise LongshelfError("not_found", f"There is no stored combination {join_id}.", "")
        return self._join(row)

    def all(self) -> list[Join]:
        """Least recently used first: joins are given up before documents' own memory."""
        return [self._join(row) for row in self._catalog.rows("SELECT * FROM joins ORDER BY last_used, id")]

    def add_segment(self, join_id: int, segment: SegmentRow) -> Join:
        """The next segment of a join is on the disk. Nothing if the join has it. Raises ValueError if it doesn't follow the last."""
        with self._catalog.transaction() as db:
            join = self.get(join_id)
            if segment.digest in join.segments:
                return join
            before = join.tip or self._parts.get(join.parts[0]).tip
            if segment.parent != before:
                raise ValueError(f"segment {segment.digest[:12]} does not follow {str(before)[:12]} in join {join_id}")
            self._parts.add_row(segment)
            db.execute(
                "INSERT INTO join_segments (join_id, ordinal, digest) VALUES (?, ?, ?)", [join_id, len(join.segments), segment.digest]
            )
            db.execute(
                "UPDATE joins SET tip = ?, tokens_done = tokens_done + ?, last_used = ? WHERE id = ?",
                [segment.digest, segment.tokens, time.time(), join_id],
            )
            return self.get(join_id)

    def touch(self, join_id: int) -> None:
        """The join was used now."""
        with self._catalog.transaction() as db:
            db.execute("UPDATE joins SET last_used = ? WHERE id = ?", [time.time(), join_id])

    def remove(self, join_id: int) -> None:
        """Remove the rows; its segments are then unneeded."""
        with self._catalog.transaction() as db:
            db.execute("DELETE FROM joins WHERE id = ?", [join_id])

    def _join(self, row: Row) -> Join:
        parts = self._catalog.rows("SELECT part_id FROM join_parts WHERE join_id = ? ORDER BY ordinal", [row["id"]])
        segments = self._catalog.rows("SELECT digest FROM join_segments WHERE join_id = ? ORDER BY ordinal", [row["id"]])
        return Join(
            id=row["id"],
            namespace=row["namespace"],
            model=row["model"],
            parts=tuple(int(part["part_id"]) for part in parts),
            segments=tuple(str(segment["digest"]) for segment in segments),
            tip=row["tip"],
            tokens=row["tokens"],
            tokens_done=row["tokens_done"],
            last_used=row["last_used"],
        )


def _chain(namespace: str, parts: Sequence[int]) -> str:
    return namespace + ":" + ",".join(str(part) for part in parts)
