"""Conversations. A chat is a tree of messages: editing a question or asking again adds a branch, nothing is overwritten.

A question is saved before the engine sees it. Its answer begins as a "pending" message, so that one that a crash cut off is shown
as failed with what it had said so far, and the question stands. Every change is in the chat's file (see `transcripts`) before its
rows are final.
"""

from __future__ import annotations

import json
import secrets
import time
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from engine.errors import LongshelfError
from engine.library import transcripts
from engine.library.catalog import Catalog, Row
from engine.library.conversation import Chat, Citation, Message
from engine.library.transcripts import Transcript, Transcripts

TITLE_LENGTH = 60
INTERRUPTED = "interrupted"
_CITATION = ", ".join(f'"{column.name}"' for column in fields(Citation))


class Chats:
    """Methods that name a chat or message raise LongshelfError("not_found") if it isn't there; changes also what saving its file does."""

    def __init__(self, catalog: Catalog, files: Transcripts) -> None:
        self._catalog = catalog
        self._files = files

    def create(self, model: str, documents: Sequence[tuple[str, str]] = (), title: str = "") -> Chat:
        """A new chat over documents (id, title). Without a title it takes one from its first question."""
        now = time.time()
        chat_id = secrets.token_hex(4)
        with self._catalog.transaction() as db:
            db.execute(
                "INSERT INTO chats (id, title, model, created_at, updated_at) VALUES (?, ?, ?, ?, ?)",
                [chat_id, title, model, now, now],
            )
            return self.set_documents(chat_id, documents)

    def get(self, chat_id: str) -> Chat:
        row = self._catalog.row("SELECT * FROM chats WHERE id = ?", [chat_id])
        if row is None:
            raise LongshelfError("not_found", f"There is no chat {chat_id!r}.", "`longshelf chats list` shows the chats that are there.")
        return self._chat(row)

    def all(self) -> list[Chat]:
        """Most recently used first."""
        return [self._chat(row) for row in self._catalog.rows("SELECT * FROM chats ORDER BY updated_at DESC, id")]

    def rename(self, chat_id: str, title: str) -> Chat:
        with self._catalog.transaction() as db:
            db.execute("UPDATE chats SET title = ? WHERE id = ?", [unicodedata.normalize("NFC", title.strip()), chat_id])
            return self.keep(chat_id)

    def set_documents(self, chat_id: str, documents: Sequence[tuple[str, str]]) -> Chat:
        """Choose the documents (id, title) that the next question is about."""
        with self._catalog.transaction() as db:
            self.get(chat_id)
            db.execute("DELETE FROM chat_documents WHERE chat_id = ?", [chat_id])
            for ordinal, (document_id, title) in enumerate(documents):
                db.execute(
                    "INSERT INTO chat_documents (chat_id, ordinal, document_id, title) VALUES (?, ?, ?, ?)",
                    [chat_id, ordinal, document_id, title],
                )
            return self.keep(chat_id)

    def set_model(self, chat_id: str, model: str) -> Chat:
        """The model that answers from now on."""
        with self._catalog.transaction() as db:
            db.execute("UPDATE chats SET model = ? WHERE id = ?", [model, chat_id])
            return self.keep(chat_id)

    def remove(self, chat_id: str) -> None:
        """Remove a chat with all its messages."""
        with self._catalog.transaction() as db:
            if db.execute("DELETE FROM chats WHERE id = ?", [chat_id]).rowcount == 0:
                self.get(chat_id)
            self._files.remove(chat_id)  # before the rows are gone for good, so that no recovery ever brings it back

    def keep(self, chat_id: str) -> Chat:
        """Write a chat's file from its rows."""
        with self._catalog.transaction():  # so that of two threads the later one writes what both changed
            chat = self.get(chat_id)
            self._files.save(transcripts.transcribe(chat, self.messages(chat_id)))
            return chat

    def restore(self, transcript: Transcript) -> Chat:
        """Rows for what a chat's file holds, in place of those that are there.

        The file is written anew where messages had to be numbered otherwise.
        """
        chat_id = str(transcript.chat["id"])
        with self._catalog.transaction() as db:
            db.execute("DELETE FROM chats WHERE id = ?", [chat_id])
            transcripts.insert(db, transcript)
            chat = self.get(chat_id)
            if transcripts.transcribe(chat, self.messages(chat_id)) != transcript:
                self.keep(chat_id)
            return chat

    def add_user_message(self, chat_id: str, parent_id: int | None, text: str) -> Message:
        """Save a question under the message it follows; None begins the chat, or a new branch from its beginning."""
        with self._catalog.transaction() as db:
            if not self.get(chat_id).title:
                db.execute("UPDATE chats SET title = ? WHERE id = ?", [title_from(text), chat_id])
            return self._add(chat_id, parent_id, "user", text, "complete", {})

    def add_assistant_message(self, chat_id: str, parent_id: int, meta: Mapping[str, Any] | None = None) -> Message:
        """The place where the answer to a question will stand, "pending" until it is finished."""
        return self._add(chat_id, parent_id, "assistant", "", "pending", dict(meta or {}))

    def keep_text(self, message_id: int, text: str) -> None:
        """Save what a pending answer has said so far; the file gets it when the answer is done."""
        with self._catalog.transaction() as db:
            db.execute("UPDATE messages SET text = ? WHERE id = ? AND status = 'pending'", [text, message_id])

    def finish_message(
        self,
        message_id: int,
        text: str,
        status: str,
        meta: Mapping[str, Any] | None = None,
        citations: Sequence[Citation] = (),
    ) -> Message:
        """An answer is done: "complete", "stopped" or "failed". meta is added to what the message has."""
        with self._catalog.transaction() as db:
            message = self.message(message_id)
            db.execute(
                "UPDATE messages SET text = ?, status = ?, meta = ? WHERE id = ?",
                [text, status, json.dumps(message.meta | dict(meta or {}), ensure_ascii=False), message_id],
            )
            db.execute("DELETE FROM citations WHERE message_id = ?", [message_id])
            for citation in citations:
                db.table("citations").insert({"message_id": message_id, **asdict(citation)})
            db.execute("UPDATE chats SET updated_at = ? WHERE id = ?", [time.time(), message.chat_id])
            self.keep(message.chat_id)
            return self.message(message_id)

    def message(self, message_id: int) -> Message:
        found = self._messages("id = ?", [message_id])
        if not found:
            raise LongshelfError("not_found", f"There is no message {message_id}.", "")
        return found[0]

    def messages(self, chat_id: str) -> list[Message]:
        """All messages of a chat, every branch, oldest first."""
        return self._messages("chat_id = ?", [chat_id])

    def children(self, chat_id: str, parent_id: int | None) -> list[Message]:
        """What follows a message (the first questions for None), oldest branch first."""
        return self._messages("chat_id = ? AND parent_id IS ?", [chat_id, parent_id])

    def path(self, message_id: int) -> list[Message]:
        """From the chat's beginning to this message, inclusive."""
        self.message(message_id)
        return self._messages(
            """id IN (WITH RECURSIVE up (id, parent_id) AS (
                SELECT id, parent_id FROM messages WHERE id = ?
                UNION SELECT messages.id, messages.parent_id FROM messages JOIN up ON messages.id = up.parent_id
            ) SELECT id FROM up)""",
            [message_id],
        )

    def newest_path(self, chat_id: str) -> list[Message]:
        """The branch that was written to last; empty for a chat without messages."""
        row = self._catalog.row("SELECT max(id) AS id FROM messages WHERE chat_id = ?", [chat_id])
        return self.path(int(row["id"])) if row and row["id"] is not None else []

    def fail_interrupted(self) -> list[Message]:
        """At the start of the one engine: answers that were under way when the last one ended have failed."""
        with self._catalog.transaction():
            pending = self._messages("status = 'pending'", [])
            return [self.finish_message(message.id, message.text, "failed", {"reason": INTERRUPTED}) for message in pending]

    def _add(self, chat_id: str, parent_id: int | None, role: str, text: str, status: str, meta: dict[str, Any]) -> Message:
        now = time.time()
        with self._catalog.transaction() as db:
            if parent_id is not None and self.message(parent_id).chat_id != chat_id:
                raise LongshelfError("not_found", f"There is no message {parent_id} in chat {chat_id!r}.", "")
            message_id = db.execute(
                "INSERT INTO messages (chat_id, parent_id, role, text, status, meta, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
                [chat_id, parent_id, role, text, status, json.dumps(meta, ensure_ascii=False), now],
            ).lastrowid
            db.execute("UPDATE chats SET updated_at = ? WHERE id = ?", [now, chat_id])
            self.keep(chat_id)
            return self.message(int(message_id or 0))

    def _messages(self, condition: str, values: Sequence[object]) -> list[Message]:
        rows = self._catalog.rows(f"SELECT * FROM messages WHERE {condition} ORDER BY id", values)
        sql = f"SELECT message_id, {_CITATION} FROM citations WHERE message_id IN (SELECT id FROM messages WHERE {condition})"
        cited: dict[int, list[Citation]] = {}
        for row in self._catalog.rows(sql + " ORDER BY message_id, number", values):
            cited.setdefault(row.pop("message_id"), []).append(Citation(**row))
        return [Message(**(row | {"meta": self._catalog.value(row["meta"])}), citations=tuple(cited.get(row["id"], ()))) for row in rows]

    def _chat(self, row: Row) -> Chat:
        sql = "SELECT document_id, title FROM chat_documents WHERE chat_id = ? ORDER BY ordinal"
        documents = tuple((str(found["document_id"]), str(found["title"])) for found in self._catalog.rows(sql, [row["id"]]))
        return Chat(**row, documents=documents)


def title_from(question: str) -> str:
    """A chat's title from its first question: one line, cut at a word near 60 characters."""
    line = " ".join(unicodedata.normalize("NFC", question).split())
    if len(line) <= TITLE_LENGTH:
        return line
    cut = line[:TITLE_LENGTH]
    at_word = cut.rpartition(" ")[0]
    return (at_word if len(at_word) > TITLE_LENGTH // 2 else cut) + "…"
