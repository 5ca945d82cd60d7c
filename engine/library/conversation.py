"""What a conversation is made of: a chat, its messages, and the places in documents that its answers stand on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Citation:
    """A place in a document that an answer stands on. start, end: code points of the document's text; part: ordinal from 0.

    title: the document's, kept for when it is gone; page and line from 1; score: how strongly the answer leans on it, 0 to 1.
    """

    number: int
    document_id: str
    title: str
    part: int | None
    start: int
    end: int
    page: int | None
    section: str | None
    line: int | None
    quote: str
    score: float


@dataclass(frozen=True)
class Message:
    """role: "user" or "assistant"; status: "pending", "complete", "stopped" or "failed" (then meta["reason"] says why)."""

    id: int
    chat_id: str
    parent_id: int | None
    role: str
    text: str
    status: str
    meta: dict[str, Any]
    created_at: float
    citations: tuple[Citation, ...] = field(default=())


@dataclass(frozen=True)
class Chat:
    """documents: (id, title) in the order they were chosen; a document may be gone. model: the one that answered last."""

    id: str
    title: str
    model: str
    created_at: float
    updated_at: float
    documents: tuple[tuple[str, str], ...]

    def as_row(self) -> dict[str, Any]:
        """A chat of a list, as clients see it; documents: ids."""
        return {
            "id": self.id,
            "title": self.title,
            "model": self.model,
            "created_at": self.created_at,
            "updated_at": self.updated_at,
            "documents": [document for document, _ in self.documents],
            "document_titles": [title for _, title in self.documents],
        }
