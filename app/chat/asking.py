"""One question on its way, from Enter until the answer is saved: it keeps its conversation up to date even when that isn't on screen."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QObject, Signal

from app import words
from app.chat import modes
from app.chat.conversation import Conversation, Message, MessageId
from app.engine_client import Engine
from engine.errors import LongshelfError

Row = dict[str, Any]
_LOCAL = "local-"  # ids of messages that the engine hasn't saved yet


class Asking(QObject):
    saved = Signal()  # the engine has the question on disk
    phase = Signal(str)
    text = Signal(str)
    ended = Signal()

    _count = 0

    def __init__(
        self,
        engine: Engine,
        conversation: Conversation,
        question: str,
        parent_id: MessageId | None,
        documents: list[str],
        all: bool = False,
        mode: str = modes.EXACT,
        again: Message | None = None,
        temperature: float = 0.0,
    ) -> None:
        """again: a saved question that is to get another answer. temperature: 0 for the likeliest answer, else one is drawn."""
        super().__init__()
        Asking._count += 1
        self.conversation = conversation
        self.question = again or Message(f"{_LOCAL}{Asking._count}-question", parent_id, "user", question)
        self.answer = Message(f"{_LOCAL}{Asking._count}-answer", self.question.id, "assistant", "", "pending")
        self.error: LongshelfError | None = None
        if again is None:
            conversation.add(self.question)
        conversation.add(self.answer)
        conversation.documents = list(documents)
        params: Row = {"documents": documents, "all": all, "question": question, "mode": mode, "parts": "auto"}
        if conversation.id:
            params |= {"chat": conversation.id, "parent": again.id if again else parent_id}
        if temperature:
            params["temperature"] = temperature
        self._reply = engine.request("ask", params, done=self._on_done, failed=self._on_failed, event=self._on_event)
        self._reply.tokens.connect(self._on_tokens)

    @property
    def is_saved(self) -> bool:
        return is_saved(self.question) and is_saved(self.answer)

    def stop(self) -> None:
        self._reply.stop()

    def _on_event(self, name: str, data: Row) -> None:
        if name == "started":
            self._save_as(data)
        elif name == "phase":
            self.phase.emit(self._phase_words(data))

    def _on_tokens(self, text: str) -> None:
        self.answer.text += text
        self.text.emit(text)

    def _on_done(self, result: Row) -> None:
        self._save_as(result)
        self.answer.text = result.get("answer") or self.answer.text
        self.answer.status = "stopped" if result.get("stopped") else "complete"
        self.answer.meta = {name: value for name, value in result.items() if name not in ("answer", "citations", "token_ids")}
        self.answer.citations = [{"number": number, **citation} for number, citation in enumerate(result.get("citations") or [], 1)]
        self.conversation.model = result.get("model") or self.conversation.model
        self.ended.emit()

    def _on_failed(self, error: LongshelfError) -> None:
        self.error = error
        self.answer.status = "failed"
        if error.kind != "engine_lost":
            self.answer.meta = {"reason": words.join(error.message, error.hint)}
        self.ended.emit()

    def _save_as(self, data: Row) -> None:
        if not self.is_saved and data.get("chat") and data.get("user_message"):
            self.conversation.id = str(data["chat"])
            if self.question.id != data["user_message"]:
                self.conversation.rename(self.question.id, data["user_message"])
            self.conversation.rename(self.answer.id, data["assistant_message"])
            self.saved.emit()

    def _phase_words(self, data: Row) -> str:
        total = words.number(data.get("parts_total") or 0)
        match data.get("name"):
            case "loading":
                return self.tr("Opening the memory…")
            case "choosing":
                return self.tr("Choosing among {0} parts…").format(total) if data.get("parts_total") else self.tr("Choosing parts…")
            case "joining":
                cost = words.join(
                    words.tokens(data["tokens"]) if data.get("tokens") else "",
                    words.duration(data["seconds"]) if data.get("seconds") else "",
                )
                return words.join(self.tr("Reading these documents together for the first time…"), cost)
            case "reading_parts":
                return self.tr("Reading part {0} of {1}…").format(words.number((data.get("parts_done") or 0) + 1), total)
            case "preparing_sampling":
                return self.tr("Preparing this model for Fast answers, once; it takes some seconds…")
            case "reading_question":
                return self.tr("Reading your question…")
        return self.tr("Answering…")


def is_saved(message: Message) -> bool:
    return not str(message.id).startswith(_LOCAL)
