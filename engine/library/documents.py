"""Rows of documents: what was added, where it came from, its text, and what became of it."""

from __future__ import annotations

import json
import secrets
import time
import unicodedata
from dataclasses import dataclass
from typing import Any

from blake3 import blake3

from engine.errors import LongshelfError
from engine.library.catalog import Catalog, Row, damaged
from engine.library.texts import TextRecord, Texts

STATES = ("queued", "reading", "remembering", "ready", "no_text", "damaged", "skipped", "paused", "failed")

_COLUMNS = (
    "id, title, path, format, encoding, encoding_confident, source_digest, state, reason, spans, skipped, tokens, added_at, updated_at,"
    " encoding_named"
)


@dataclass(frozen=True)
class DocumentRow:
    """A document without its text. state: one of STATES; reason: why, for people, may be empty; tokens: 0 until counted.

    spans, skipped: JSON values as the reader gave them; encoding_named: what a person said it is, None if nobody did. Times in Unix
    seconds.
    """

    id: str
    title: str
    path: str
    format: str
    encoding: str | None
    encoding_confident: bool
    source_digest: str
    state: str
    reason: str
    spans: Any
    skipped: Any
    tokens: int
    added_at: float
    updated_at: float
    encoding_named: str | None


@dataclass(frozen=True)
class NewDocument:
    """What a reader found, ready to be kept. spans and skipped: JSON values."""

    title: str
    path: str
    format: str
    encoding: str | None
    encoding_confident: bool
    source_digest: str
    text: str
    spans: Any
    skipped: Any
    encoding_named: str | None = None


class Documents:
    """Methods that name one document raise LongshelfError("not_found") if it isn't there; changes return the new row."""

    def __init__(self, catalog: Catalog, texts: Texts) -> None:
        self._catalog = catalog
        self._texts = texts

    def add(self, new: NewDocument, state: str = "queued", reason: str = "") -> DocumentRow:
        """Keep a document: first its file in texts/, then its row."""
        now = time.time()
        fields = _fields(new) | {
            "id": self._fresh_id(),
            "state": state,
            "reason": reason,
            "tokens": 0,
            "added_at": now,
            "updated_at": now,
        }
        self._texts.save(TextRecord(fields))
        return self.restore(fields)

    def restore(self, fields: dict[str, Any]) -> DocumentRow:
        """Insert the row for what a file in texts/ holds (TextRecord.document)."""
        with self._catalog.transaction() as db:
            db.table("documents").insert(fields | _columns(fields))
        return self.get(str(fields["id"]))

    def replace_content(self, document_id: str, new: NewDocument) -> DocumentRow:
        """The source changed: take its new content. Parts stay as they are until they are assigned anew."""
        kept = self._texts.load(document_id)
        changed = _fields(new) | {"updated_at": time.time()}
        self._texts.save(TextRecord(kept.document | changed, kept.assignments))
        return self._update(document_id, changed | _columns(changed))

    def count(self) -> int:
        """How many documents there are."""
        row = self._catalog.row("SELECT count(*) AS count FROM documents")
        return int(row["count"]) if row else 0

    def get(self, document_id: str) -> DocumentRow:
        row = self._catalog.row(f"SELECT {_COLUMNS} FROM documents WHERE id = ?", [document_id])
        if row is None:
            raise _not_found(document_id)
        return self._document(row)

    def find(self, name: str) -> DocumentRow:
        """By id, else by path, else by title (any case) if only one has it.

        Raises LongshelfError("not_found" or "ambiguous").
        """
        wanted = _normal(name)
        for condition, value in (("id = ?", wanted), ("path = ?", _storable(name)), ("title = ? COLLATE NOCASE", wanted)):
            found = self._catalog.rows(f"SELECT {_COLUMNS} FROM documents WHERE {condition} ORDER BY added_at", [value])
            if len(found) > 1:
                ids = ", ".join(row["id"] for row in found)
                raise LongshelfError("ambiguous", f"Several documents are called {name!r}.", f"Name one by its id: {ids}.")
            if found:
                return self._document(found[0])
        raise _not_found(name)

    def with_path(self, path: str) -> list[DocumentRow]:
        """Documents that came from this absolute path, oldest first."""
        sql = f"SELECT {_COLUMNS} FROM documents WHERE path = ? ORDER BY added_at"
        return [self._document(row) for row in self._catalog.rows(sql, [_storable(path)])]

    def all(self) -> list[DocumentRow]:
        """Oldest first."""
        return [self._document(row) for row in self._catalog.rows(f"SELECT {_COLUMNS} FROM documents ORDER BY added_at, id")]

    def text(self, document_id: str) -> str:
        """Raises LongshelfError("catalog_damaged") if it is not the text that was kept."""
        row = self._catalog.row("SELECT title, text, text_digest FROM documents WHERE id = ?", [document_id])
        if row is None:
            raise _not_found(document_id)
        if row["text_digest"] != _digest(row["text"]):
            raise damaged(self._catalog.path, f"the text of {row['title']!r} is not the one that was kept")
        return str(row["text"])

    def set_state(self, document_id: str, state: str, reason: str = "") -> DocumentRow:
        return self._update(document_id, {"state": state, "reason": reason, "updated_at": time.time()})

    def decide(self, document_id: str, state: str, reason: str = "") -> DocumentRow:
        """Set a state that outlives the catalog, such as that a document is not to be read; in its file in texts/ first."""
        return self._change(document_id, {"state": state, "reason": reason})

    def set_tokens(self, document_id: str, tokens: int) -> DocumentRow:
        return self._update(document_id, {"tokens": tokens})

    def rename(self, document_id: str, title: str) -> DocumentRow:
        return self._change(document_id, {"title": _normal(title)})

    def name_encoding(self, document_id: str, encoding: str | None) -> DocumentRow:
        """Remember which encoding a person named, where its text is the same with it."""
        return self._change(document_id, {"encoding_named": encoding})

    def record(self, document_id: str) -> TextRecord:
        """What the row says, in the form of its file in texts/ (without assignments): to write a lost file again."""
        row = self._catalog.row(f"SELECT {_COLUMNS}, text FROM documents WHERE id = ?", [document_id])
        if row is None:
            raise _not_found(document_id)
        fields = {name: self._catalog.value(row[name]) for name in ("spans", "skipped")}
        return TextRecord(row | fields | {"encoding_confident": bool(row["encoding_confident"])})

    def _document(self, row: Row) -> DocumentRow:
        values = dict(row)
        values["encoding_confident"] = bool(row["encoding_confident"])
        for name in ("spans", "skipped"):
            values[name] = self._catalog.value(row[name])
        return DocumentRow(**values)

    def _change(self, document_id: str, changes: Row) -> DocumentRow:
        """Change what stands both in its file in texts/ and in its row."""
        kept = self._texts.load(document_id)
        self._texts.save(TextRecord(kept.document | changes, kept.assignments))
        return self._update(document_id, changes)

    def _update(self, document_id: str, changes: Row) -> DocumentRow:
        names = ", ".join(f"{name} = :{name}" for name in changes)
        with self._catalog.transaction() as db:
            if db.execute(f"UPDATE documents SET {names} WHERE id = :id", changes | {"id": document_id}).rowcount == 0:
                raise _not_found(document_id)
        return self.get(document_id)

    def _fresh_id(self) -> str:
        while True:
            chosen = secrets.token_hex(4)
            taken = self._texts.path(chosen).exists() or self._catalog.row("SELECT 1 FROM documents WHERE id = ?", [chosen])
            if not taken and not chosen.isdigit():  # an id of digits alone could be taken for something else on a command line
                return chosen


def _fields(new: NewDocument) -> dict[str, Any]:
    return {
        "title": _normal(new.title),
        "path": _storable(new.path),
        "format": new.format,
        "encoding": new.encoding,
        "encoding_confident": new.encoding_confident,
        "source_digest": new.source_digest,
        "text": new.text,
        "spans": new.spans,
        "skipped": new.skipped,
        "encoding_named": new.encoding_named,
    }


def _normal(name: str) -> str:
    """Composed characters: macOS gives file names in decomposed Hangul, people type composed."""
    return unicodedata.normalize("NFC", _storable(name))


def _storable(name: str) -> str:
    """SQLite takes Unicode only: bytes of a file name that are not UTF-8 (lone surrogates in Python) are shown as "?"."""
    return name.encode("utf-8", "replace").decode("utf-8")


def _columns(fields: Row) -> Row:
    """What of a document's fields stands otherwise in its row."""
    return {
        **{name: json.dumps(fields[name]) for name in ("spans", "skipped")},
        "encoding_confident": int(fields["encoding_confident"]),
        "text_digest": _digest(fields["text"]),
    }


def _digest(text: str) -> str:
    return blake3(text.encode()).hexdigest()


def _not_found(name: str) -> LongshelfError:
    return LongshelfError("not_found", f"There is no document {name!r}.", "`longshelf list` shows the documents that are there.")
