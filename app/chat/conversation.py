"""A chat as a tree of messages: editing a question or asking again adds a branch, and nothing is ever lost. Knows no widget."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]
MessageId = int | str  # the engine counts; a message it hasn't saved yet has a name of ours


@dataclass
class Message:
    id: MessageId
    parent_id: MessageId | None
    role: str  # "user" | "assistant"
    text: str
    status: str = "complete"  # "pending" | "complete" | "stopped" | "failed"
    meta: Row = field(default_factory=dict)
    citations: list[Row] = field(default_factory=list)

    @staticmethod
    def of(row: Row) -> Message:
        return Message(
            id=row["id"],
            parent_id=row.get("parent_id"),
            role=row["role"],
            text=row.get("text") or "",
            status=row.get("status") or "complete",
            meta=row.get("meta") or {},
            citations=row.get("citations") or [],
        )


class Conversation:
    def __init__(self, id: str = "", title: str = "", documents: Iterable[str] = (), model: str = "") -> None:
        self.id = id  # "" until the engine has saved the first question
        self.title = title
        self.documents = list(documents)
        self.model = model
        self._messages: dict[MessageId, Message] = {}
        self._children: dict[MessageId | None, list[MessageId]] = {}
        self._chosen: dict[MessageId | None, MessageId] = {}

    @staticmethod
    def of(shown: Row) -> Conversation:
        """From the result of `chats.show`; the branch of the latest message is the open one."""
        conversation = Conversation(str(shown["id"]), shown.get("title") or "", shown.get("documents") or (), shown.get("model") or "")
        for row in sorted(shown.get("messages", []), key=lambda row: row.get("created_at") or 0):
            conversation.add(Message.of(row))
        return conversation

    def __contains__(self, id: MessageId) -> bool:
        return id in self._messages

    def __getitem__(self, id: MessageId) -> Message:
        return self._messages[id]

    def add(self, message: Message) -> None:
        """Add a message and open the branch that leads to it."""
        self._messages[message.id] = message
        self._children.setdefault(message.parent_id, []).append(message.id)
        self.choose(message.id)

    def rename(self, old: MessageId, new: MessageId) -> None:
        """A message sent from here gets the id under which the engine saved it."""
        message = self._messages.pop(old)
        message.id = new
        self._messages[new] = message
        siblings = self._children[message.parent_id]
        siblings[siblings.index(old)] = new
        if self._chosen.get(message.parent_id) == old:
            self._chosen[message.parent_id] = new
        for child in self._children.pop(old, []):
            self._messages[child].parent_id = new
            self._children.setdefault(new, []).append(child)
        if old in self._chosen:
            self._chosen[new] = self._chosen.pop(old)

    def discard(self, id: MessageId) -> None:
        """Take out a message that was never saved, and what hangs on it; the sibling before it opens."""
        message = self._messages.pop(id)
        for child in list(self._children.get(id, [])):
            self.discard(child)
        self._children.pop(id, None)
        siblings = self._children[message.parent_id]
        siblings.remove(id)
        self._chosen.pop(id, None)
        if self._chosen.get(message.parent_id) == id:
            del self._chosen[message.parent_id]
            if siblings:
                self._chosen[message.parent_id] = siblings[-1]

    def choose(self, id: MessageId) -> None:
        """Open the branch on which this message lies; below it, whatever was open there before."""
        message: Message | None = self._messages[id]
        while message is not None:
            self._chosen[message.parent_id] = message.id
            message = self._messages.get(message.parent_id) if message.parent_id is not None else None

    def path(self) -> list[Message]:
        """The open branch from the first question to its last message."""
        result: list[Message] = []
        id = self._chosen.get(None)
        while id is not None:
            result.append(self._messages[id])
            id = self._chosen.get(id)
        return result

    def siblings(self, id: MessageId) -> list[MessageId]:
        """The alternatives at this place, oldest first, the message itself among them."""
        return self._children[self._messages[id].parent_id]

    @property
    def last_question(self) -> Message | None:
        return next((message for message in reversed(self.path()) if message.role == "user"), None)

    @property
    def last_answer(self) -> Message | None:
        return next((message for message in reversed(self.path()) if message.role == "assistant"), None)
