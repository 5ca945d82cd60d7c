"""Every chat once more as a file of its own, chats/ID.json: what people asked and were told outlives a catalog that is destroyed.

Written durably before the rows it is about are final, and removed before they are gone. So a process killed at any instant leaves
a file that is newer than its rows, never an older one, and a chat that was removed leaves none.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlite_utils import Database

from engine.library.conversation import Chat, Message
from engine.library.records import Records


@dataclass(frozen=True)
class Transcript:
    """chat: columns of the chats table; documents: [[id, title], …] in order; messages: every branch, oldest first, each with the
    columns of the messages table but its chat's (meta as a value), and "citations": columns of the citations table."""

    chat: dict[str, Any]
    documents: list[list[str]]
    messages: list[dict[str, Any]]


class Transcripts(Records):
    """One file for each chat."""

    kind, name, parts = "chat", "kept chat", ("chat", "documents", "messages")

    def save(self, transcript: Transcript) -> None:
        """Write or replace a chat's file. Raises LongshelfError("disk_full" or "store_unavailable")."""
        self._write({"chat": transcript.chat, "documents": transcript.documents, "messages": transcript.messages})

    def load(self, chat_id: str) -> Transcript:
        """Raises LongshelfError("chat_missing" or "chat_damaged")."""
        return Transcript(**self._read(chat_id))


def transcribe(chat: Chat, messages: Sequence[Message]) -> Transcript:
    """What the file of a chat should hold."""
    columns = asdict(chat)
    documents = [list(document) for document in columns.pop("documents")]
    return Transcript(columns, documents, [_columns(message) for message in messages])


def _columns(message: Message) -> dict[str, Any]:
    columns = asdict(message) | {"citations": [asdict(citation) for citation in message.citations]}
    del columns["chat_id"]
    return columns


def insert(db: Database, transcript: Transcript) -> None:
    """Inside a transaction: the rows of a chat that has none.

    Messages are numbered across chats. A number that a message of another chat has taken since is replaced by a new one.
    """
    db.table("chats").insert(transcript.chat)
    chat_id = transcript.chat["id"]
    for ordinal, (document_id, title) in enumerate(transcript.documents):
        db.table("chat_documents").insert({"chat_id": chat_id, "ordinal": ordinal, "document_id": document_id, "title": title})
    numbers: dict[int | None, int | None] = {None: None}
    for message in transcript.messages:
        parent, meta = numbers[message["parent_id"]], json.dumps(message["meta"], ensure_ascii=False)
        columns = message | {"chat_id": chat_id, "parent_id": parent, "meta": meta}
        citations = columns.pop("citations")
        if db.execute("SELECT 1 FROM messages WHERE id = ?", [message["id"]]).fetchone():
            del columns["id"]
        names, places = ", ".join(columns), ", ".join(f":{name}" for name in columns)
        number = db.execute(f"INSERT INTO messages ({names}) VALUES ({places})", columns).lastrowid
        numbers[message["id"]] = number
        for citation in citations:
            db.table("citations").insert({"message_id": number, **citation})
