"""How hard each segment was to read for its model: sums that reading gives on the way, kept by digest."""

from __future__ import annotations

from dataclasses import dataclass

from engine.library.catalog import Catalog


@dataclass(frozen=True)
class ReadingLoss:
    """Of one document and model, over the tokens looked at. tokens, characters: of the parts that these are from."""

    nats: float
    count: int
    letters: int
    tokens: int
    characters: int


class Losses:
    """Rows are written once a segment and go with it; a catalog made again from the files has none."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def record(self, digest: str, nats: float, count: int, letters: int) -> None:
        """Keep what was seen while a segment was read. Nothing if the segment is gone by now."""
        with self._catalog.transaction() as db:
            db.execute(
                "INSERT INTO losses (digest, nats, count, letters) SELECT digest, ?, ?, ? FROM segments WHERE digest = ?"
                " ON CONFLICT (digest) DO UPDATE SET nats = excluded.nats, count = excluded.count, letters = excluded.letters",
                [nats, count, letters, digest],
            )

    def of(self, document_id: str, namespace: str) -> ReadingLoss | None:
        """Sums over a document's segments; None if nothing was looked at."""
        sql = """
            SELECT sum(losses.nats) AS nats, sum(losses.count) AS count, sum(losses.letters) AS letters,
                sum(segments.tokens) AS tokens,
                (SELECT sum("end" - start) FROM parts AS own WHERE own.document_id = :document AND own.namespace = :namespace
                    AND own.tokens_done = own.tokens) AS characters
            FROM parts JOIN part_segments ON part_segments.part_id = parts.id JOIN losses USING (digest) JOIN segments USING (digest)
            WHERE parts.document_id = :document AND parts.namespace = :namespace AND parts.tokens_done = parts.tokens
        """
        row = self._catalog.row(sql, {"document": document_id, "namespace": namespace})
        return ReadingLoss(**row) if row is not None and row["count"] else None
