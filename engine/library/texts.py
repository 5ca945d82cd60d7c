"""Every document once more as a file of its own, texts/ID.json, from which the catalog can be made again.

Written durably before the document's row, and before rows for its parts. It holds what can't be had from elsewhere when the
source is gone: text, spans, where it came from, and how it is cut into parts, with the digests of the segments each part expects.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from engine.library.records import Records


@dataclass(frozen=True)
class TextRecord:
    """document: columns of the documents table, JSON columns as values; assignments: namespace → {"model", "parts": [...]}."""

    document: dict[str, Any]
    assignments: dict[str, Any] = field(default_factory=dict)


class Texts(Records):
    """One file for each document."""

    kind, name, parts = "text", "kept text", ("document", "assignments")
    lost = "Run `longshelf doctor --repair`; add the document again."

    def save(self, record: TextRecord) -> None:
        """Write or replace a document's file. Raises LongshelfError("disk_full" or "store_unavailable")."""
        self._write({"document": record.document, "assignments": record.assignments})

    def load(self, document_id: str) -> TextRecord:
        """Raises LongshelfError("text_missing" or "text_damaged")."""
        return TextRecord(**self._read(document_id))
