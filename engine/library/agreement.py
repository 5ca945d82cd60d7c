"""Rows against the files they can be made from: what a disk changed inside the catalog without SQLite noticing.

SQLite finds pages that are out of order, not a letter of a text or a digit of a number that has changed. The files of documents and
chats have checksums and are written before their rows, so where both can be read and differ, the file is right.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.errors import LongshelfError
from engine.library.library import Library
from engine.library.texts import TextRecord
from engine.library.transcripts import Transcript, transcribe

_ROW_ONLY = ("state", "reason", "tokens", "updated_at")  # what happens to a document is kept in its row alone


def differing_documents(library: Library) -> Iterator[str]:
    """Ids of documents whose rows say something else than their file, or can't be read."""
    for row in library.catalog.rows("SELECT id FROM documents ORDER BY id"):
        document_id = str(row["id"])
        if (kept := _text(library, document_id)) is not None and not _agrees(library, document_id, kept):
            yield document_id


def differing_chats(library: Library) -> Iterator[str]:
    """Ids of chats whose rows say something else than their file, or can't be read. One that is being answered is left out."""
    for row in library.catalog.rows("SELECT id FROM chats ORDER BY id"):
        chat_id = str(row["id"])
        with library.catalog.transaction():  # the file is written inside the transaction that changes the rows
            if library.catalog.row("SELECT 1 FROM messages WHERE chat_id = ? AND status = 'pending'", [chat_id]):
                continue
            if (kept := _transcript(library, chat_id)) is not None and not _tells(library, chat_id, kept):
                yield chat_id


def differing_segments(library: Library) -> Iterator[str]:
    """Digests of segments whose row says something else than the header of their file. Files that can't be read are left out."""
    rows = {str(row["digest"]): row for row in library.catalog.rows("SELECT digest, parent, namespace, start, tokens, bytes FROM segments")}
    for digest, header, _ in library.store.scan():
        if (row := rows.get(digest)) is not None:
            said = (row["parent"], row["namespace"], row["start"], row["tokens"], row["bytes"])
            if said != (header.parent, header.namespace, header.start, header.tokens, library.store.size(digest)):
                yield digest


def _text(library: Library, document_id: str) -> TextRecord | None:
    try:
        return library.texts.load(document_id)
    except LongshelfError as error:
        if error.kind not in ("text_missing", "text_damaged"):
            raise
        return None


def _agrees(library: Library, document_id: str, kept: TextRecord) -> bool:
    try:
        said = library.text_record(document_id)
        library.documents.text(document_id)
        parts = library.parts.of(document_id)
        consistent = all(library.parts.is_consistent(part) for part in parts)
    except LongshelfError as error:
        if error.kind != "catalog_damaged":
            raise
        return False
    lasting = {name: value for name, value in kept.document.items() if name not in _ROW_ONLY}
    return consistent and said.assignments == kept.assignments and {name: said.document.get(name) for name in lasting} == lasting


def _transcript(library: Library, chat_id: str) -> Transcript | None:
    try:
        return library.transcripts.load(chat_id)
    except LongshelfError as error:
        if error.kind not in ("chat_missing", "chat_damaged"):
            raise
        return None


def _tells(library: Library, chat_id: str, kept: Transcript) -> bool:
    try:
        return transcribe(library.chats.get(chat_id), library.chats.messages(chat_id)) == kept
    except LongshelfError as error:
        if error.kind != "catalog_damaged":
            raise
        return False
