"""A chat as a file for people (Markdown) or programs (JSON)."""

from __future__ import annotations

import json
import time
from dataclasses import asdict

from engine.library.chats import Chats
from engine.library.conversation import Chat, Citation, Message
from engine.library.figures import how_read


def as_markdown(chats: Chats, chat_id: str) -> str:
    """The branch written to last, with the sources under each answer; says where other branches are left out."""
    chat = chats.get(chat_id)
    lines = [f"# {chat.title or 'Untitled chat'}", "", *_about(chat)]
    for message in chats.newest_path(chat_id):
        lines += ["", *_message(message, others=len(chats.children(chat_id, message.parent_id)) - 1)]
    return "\n".join(lines) + "\n"


def as_json(chats: Chats, chat_id: str) -> str:
    """Everything: all branches, figures and citations."""
    chat = chats.get(chat_id)
    documents = [{"id": document_id, "title": title} for document_id, title in chat.documents]
    messages = [asdict(message) for message in chats.messages(chat_id)]
    return json.dumps(asdict(chat) | {"documents": documents, "messages": messages}, ensure_ascii=False, indent=2) + "\n"


def _about(chat: Chat) -> list[str]:
    lines = [f"- {time.strftime('%Y-%m-%d %H:%M', time.localtime(chat.created_at))}", f"- Model: {chat.model}"]
    if chat.documents:
        lines.append("- Documents: " + ", ".join(title for _, title in chat.documents))
    return lines


def _message(message: Message, others: int) -> list[str]:
    lines = ["## You" if message.role == "user" else "## Longshelf", "", message.text.strip()]
    if message.status == "stopped":
        lines += ["", "*(stopped)*"]
    if message.status in ("failed", "pending"):
        lines += ["", f"*(not finished: {message.meta.get('reason', message.status)})*"]
    if how := how_read(message.meta):
        lines += ["", f"*(Fast: {how})*"]
    if others:
        lines += ["", f"*({others} other version{'s' if others > 1 else ''} of this: see the JSON export)*"]
    for citation in message.citations:
        lines += ["", f"[{citation.number}] {_place(citation)}", "", *(f"> {line}" for line in citation.quote.splitlines())]
    return lines


def _place(citation: Citation) -> str:
    places = [citation.title]
    if citation.section:
        places.append(citation.section)
    if citation.page is not None:
        places.append(f"p. {citation.page}")
    if citation.line is not None:
        places.append(f"line {citation.line}")
    return " · ".join(places)
