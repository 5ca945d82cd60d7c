"""Asking: the method `ask`, from the question to an answer with its sources, saved.

    documents → finished parts → (choose) → chain → prompt onto the tail → decode → citations → saved

The question is saved before anything else happens. All model work of one question is one piece of urgent work on the model
thread, so that it goes before reading and nothing else touches the model meanwhile.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from engine.answering.answer import Answer, Asking, Counts
from engine.answering.citations import Passage
from engine.answering.modes import Mode
from engine.answering.prompt import Turn
from engine.answering.reader import Reader
from engine.answering.sampling import Sampling
from engine.answering.selectors import SKETCH
from engine.answering.sources import Asked, Source, asked_documents, of_library, places
from engine.documents.document import Document
from engine.errors import LongshelfError, Stopped
from engine.library.conversation import Chat, Citation, Message
from engine.library.documents import DocumentRow
from engine.model.loaded import LoadedModel
from engine.reading.rows import stored_document

if TYPE_CHECKING:
    from engine.attention.estimated import Estimated
    from engine.shelf import Call, Shelf

MAX_TOKENS = 256


def ask(shelf: Shelf, params: dict[str, Any], call: Call) -> dict[str, Any]:
    """The method `ask`; see DESIGN for its result."""
    return Question(shelf, params, call).answer()


def _sampling(params: dict[str, Any]) -> Sampling:
    seed = params.get("seed")
    temperature = float(params.get("temperature") or 0.0)
    return Sampling(
        temperature=temperature,
        top_k=int(params.get("top_k") or 0),
        top_p=float(params["top_p"]) if params.get("top_p") is not None else 1.0,
        min_p=float(params.get("min_p") or 0.0),
        seed=int(seed) if seed is not None else secrets.randbelow(2**31) if temperature else 0,
    )


def _mode(params: dict[str, Any]) -> Mode:
    budget, epsilon = params.get("budget"), params.get("epsilon")
    return Mode(
        params.get("mode") or "exact",
        1.0 if budget is None else float(budget),
        params.get("selector") or SKETCH,
        None if epsilon is None else float(epsilon),
    )


class Question:
    """One question under way, from its checking to its saved answer. Raises LongshelfError("usage") for what can't be asked."""

    def __init__(self, shelf: Shelf, params: dict[str, Any], call: Call) -> None:
        self.shelf, self.params, self.call = shelf, params, call
        self.asked_before = self._asked_before()
        self.question = self.asked_before.text if self.asked_before else str(params.get("question", "")).strip()
        if not self.question:
            raise LongshelfError("usage", "The question is empty.", "Ask something.")
        self.sampling = _sampling(params)
        self.mode = _mode(params)
        self.max_tokens = int(params["max_tokens"]) if params.get("max_tokens") is not None else MAX_TOKENS
        if self.max_tokens < 1:
            raise LongshelfError("usage", f"--max-tokens is {self.max_tokens}; it is at least 1.")
        self.model_name = shelf.models.open().name
        self.counts = Counts()
        self.reader: Reader | None = None

    def answer(self) -> dict[str, Any]:
        """Save the question, answer it, save the answer; gives the result object."""
        chats = self.shelf.library.chats
        rows, chat_id, history, parent = self._conversation()
        asked_message = self.asked_before or chats.add_user_message(chat_id, parent, self.question)
        answer_message = chats.add_assistant_message(chat_id, asked_message.id, {"model": self.model_name})
        ids = {"chat": chat_id, "user_message": asked_message.id, "assistant_message": answer_message.id}
        self.call.emit("started", ids)
        self._tell_chat(chat_id)
        self.shelf.publish("status", {"state": "answering", "model": self.model_name})
        try:
            result, citations = self._answered(rows, history)
        except BaseException as error:
            reason = (
                error.message if isinstance(error, LongshelfError) else "stopped" if isinstance(error, Stopped) else "a fault of Longshelf"
            )
            said = self.reader.said if self.reader is not None else ""
            chats.finish_message(answer_message.id, said, "stopped" if isinstance(error, Stopped) else "failed", {"reason": reason})
            self._tell_chat(chat_id)
            raise
        finally:
            self.shelf.publish("status", {"state": "ready"})
        status = "stopped" if result["stopped"] else "complete"
        kept = {name: value for name, value in result.items() if name not in ("answer", "citations", "token_ids")}
        chats.finish_message(answer_message.id, result["answer"], status, kept, citations)
        self._tell_chat(chat_id)
        return {**result, **ids}

    def _asked_before(self) -> Message | None:
        """The question that is answered once more, where `parent` names one; its earlier answers stay."""
        parent = self.params.get("parent")
        if not self.params.get("chat") or parent is None:
            return None
        message = self.shelf.library.chats.message(int(parent))
        return message if message.role == "user" else None

    def _conversation(self) -> tuple[list[str], str, list[Turn], int | None]:
        """(document ids, chat id, earlier turns, message to answer under); a new chat where none is named."""
        library, params = self.shelf.library, self.params
        names = [str(name) for name in params.get("documents") or []]
        if not params.get("chat"):
            rows = of_library(self.shelf, self.question) if params.get("all") else [library.documents.find(name) for name in names]
            self._check_parts(rows)
            chat = library.chats.create(self.model_name, [(row.id, row.title) for row in rows])
            return [row.id for row in rows], chat.id, [], None
        chat = library.chats.get(str(params["chat"]))
        if params.get("all"):
            rows = of_library(self.shelf, self.question)
        else:
            rows = [library.documents.find(name) for name in names] if names else self._left_of(chat)
        self._check_parts(rows)
        library.chats.set_documents(chat.id, [(row.id, row.title) for row in rows])
        if "parent" in params:
            path = library.chats.path(params["parent"]) if params["parent"] is not None else []
        else:
            path = library.chats.newest_path(chat.id)
        if self.asked_before:
            path.pop()
        turns = [
            Turn(asked.text, reply.text)
            for asked, reply in pairwise(path)
            if asked.role == "user" and reply.role == "assistant" and reply.text
        ]
        return [row.id for row in rows], chat.id, turns, path[-1].id if path else None

    def _check_parts(self, rows: Sequence[DocumentRow]) -> None:
        """Before anything is saved. Raises LongshelfError("usage") where numbers of parts could be those of several documents."""
        if not isinstance(self.params.get("parts") or "auto", str) and len({row.id for row in rows}) > 1:
            raise LongshelfError("usage", "Parts can be named for one document at a time; leave --parts out to ask several.")

    def _left_of(self, chat: Chat) -> list[DocumentRow]:
        """The chat's documents that are still there. Raises LongshelfError("not_found") if all it had are gone."""
        there = {row.id: row for row in self.shelf.library.documents.all()}
        rows = [there[document] for document, _ in chat.documents if document in there]
        if chat.documents and not rows:
            titles = ", ".join(f"“{title}”" for _, title in chat.documents)
            raise LongshelfError("not_found", f"What this chat is about is no longer here: {titles}.", "Name documents to go on with.")
        return rows

    def _tell_chat(self, chat_id: str) -> None:
        self.shelf.publish("chats", {"chats": [self.shelf.library.chats.get(chat_id).as_row()]})

    def _answered(self, rows: list[str], history: list[Turn]) -> tuple[dict[str, Any], list[Citation]]:
        self.call.emit("phase", {"name": "loading"})
        model, self.counts.load_s = self.shelf.model(device=self.params.get("device"))  # told apart from the time to the first token
        parts = self.params.get("parts") or "auto"
        if isinstance(parts, str) and parts not in ("auto", "all"):
            raise LongshelfError("usage", f"Parts are auto, all or a list of numbers, not {parts!r}.")
        asking = Asking(
            question=self.question,
            history=tuple(history),
            sampling=self.sampling,
            max_tokens=self.max_tokens,
            parts=parts if isinstance(parts, str) else tuple(dict.fromkeys(int(number) for number in parts)),
            everything=bool(self.params.get("all")),
            mode=self.mode,
            emit=self.call.emit,
            stop=self.call.stop,
        )
        asked = asked_documents(self.shelf, rows, asking.everything, model.namespace)
        self.reader = Reader(self.shelf, model, asked, asking, self.counts)
        answer = self.shelf.model_thread.run(self.reader.run, urgent=True)
        parts_of = self.shelf.library.parts
        parts_of.touch(digest for source in answer.sources for digest in parts_of.segments(source.part.id))
        documents = {row.id: stored_document(self.shelf, row) for row in {source.row.id: source.row for source in answer.sources}.values()}
        citations = [_citation(n, source, passage, documents[source.row.id]) for n, (source, passage) in enumerate(answer.cited, 1)]
        return self._result(model, asked, answer, citations, documents), citations

    def _result(
        self, model: LoadedModel, asked: Asked, answer: Answer, citations: Sequence[Citation], documents: dict[str, Document]
    ) -> dict[str, Any]:
        generated, counts = answer.generated, self.counts
        sampled = self.reader.sampled if self.reader is not None else []
        return {
            "answer": generated.text,
            "token_ids": generated.ids,
            "supported": answer.supported,
            "support": round(answer.support, 4),
            "approximate": answer.approximate,
            "cut": generated.ending == "limit",
            "stopped": generated.ending == "stopped",
            "mode": "sampled" if sampled else "exact",
            "mode_asked": self.mode.name,
            "exact_because": self.reader.exact_because if self.reader is not None and not sampled else None,
            "model": model.name,
            "trial_model": model.card.trial,
            "device": model.placement.device.kind,
            "dtype": "bfloat16",
            "seed": self.sampling.seed,
            "parts_read": [
                {"document": source.row.id, "part": source.number, **places(documents[source.row.id], source.part)}
                for source in answer.sources
            ],
            "parts_total": asked.parts_total,
            "parts_ready": len(asked.sources),
            **{name: round(value, 4) if isinstance(value, float) else value for name, value in asdict(counts).items()},
            "generated_tokens": len(generated.ids),
            "tokens_per_s": round(len(generated.ids) / counts.decode_s, 2) if counts.decode_s else 0.0,
            "acceptance_rate": None,
            "keys_read_fraction": _mean([each.keys_read_fraction for each in sampled], 1.0),
            "rows_read_fraction": _mean([each.rows_read_fraction for each in sampled], 1.0),
            "error_measured": _error(sampled),
            **self.mode.promised,
            "eps_violation_rate": _broken(sampled),
            "citations": [citation_json(citation) for citation in citations],
        }


def _error(sampled: Sequence[Estimated]) -> float | None:
    """None where nothing was measured: it was stopped before the first token that is."""
    measured = [each.error_measured for each in sampled if each.error_measured is not None]
    return _mean(measured, 0.0) if measured or not sampled else None


def _broken(sampled: Sequence[Estimated]) -> float | None:
    """None where nothing was promised, or nothing measured."""
    rates = [each.violation_rate for each in sampled if each.violation_rate is not None]
    return _mean(rates, 0.0) if rates else None


def _mean(values: Sequence[float], without: float) -> float:
    return round(sum(values) / len(values), 4) if values else without


def _citation(number: int, source: Source, passage: Passage, document: Document) -> Citation:
    place = document.place(passage.start)
    return Citation(
        number=number,
        document_id=source.row.id,
        title=source.row.title,
        part=source.part.ordinal,
        start=passage.start,
        end=passage.end,
        page=place.page,
        section=place.section,
        line=place.line,
        quote=document.text[passage.start : passage.end],
        score=round(passage.score, 4),
    )


def citation_json(citation: Citation) -> dict[str, Any]:
    """A citation as clients see it; part counts from 1."""
    fields = asdict(citation)
    fields["document"] = fields.pop("document_id")
    return fields | {"part": None if citation.part is None else citation.part + 1}
