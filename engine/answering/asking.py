"""Asking: the method `ask`, from the question to an answer with its sources, saved.

    documents → finished parts → (choose) → chain → prompt onto the tail → decode → citations → saved

The question is saved before anything else happens. All model work of one question is one piece of urgent work on the model
thread, so that it goes before reading and nothing else touches the model meanwhile.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from engine.answering.choosing import fuse, likelihood_gains
from engine.answering.citations import Passage, cite, middle_layers, verbatim_share
from engine.answering.generate import Generated, generate
from engine.answering.prompt import Prompts, Turn
from engine.answering.sampling import Sampler, Sampling
from engine.answering.sources import Asked, Chains, Source, asked_documents, part_offsets, places, segment_tokens
from engine.attention.exact import Exact
from engine.attention.sequence import Sequence as Read
from engine.attention.sequence import Tail
from engine.documents.document import Document
from engine.errors import LongshelfError, Stopped
from engine.library.chats import Citation
from engine.model.loaded import LoadedModel
from engine.reading.memory import Chain
from engine.reading.rows import stored_document

if TYPE_CHECKING:
    from engine.shelf import Call, Shelf

log = logging.getLogger("longshelf")

CANDIDATES = 12
"""Parts whose likelihood is measured; a document with no more has all of them measured."""

MAX_TOKENS = 256


@dataclass
class Counts:
    """What one question cost and read; the numbers of the result."""

    document_tokens_prefilled: int = 0
    prompt_tokens_prefilled: int = 0
    reused_tokens: int = 0
    routing_tokens: int = 0
    routing_bytes: int = 0
    kv_bytes_read: int = 0
    load_s: float = 0.0
    routing_s: float = 0.0
    ttft_s: float = 0.0
    decode_s: float = 0.0


@dataclass
class Answer:
    """What one reading gave: the text, and where in the sources it comes from."""

    generated: Generated
    sources: tuple[Source, ...]
    cited: list[tuple[Source, Passage]] = field(default_factory=list)
    supported: bool = False


def ask(shelf: Shelf, params: dict[str, Any], call: Call) -> dict[str, Any]:
    """The method `ask`; see DESIGN for its result."""
    question = str(params.get("question", "")).strip()
    if not question:
        raise LongshelfError("usage", "The question is empty.", "Ask something.")
    if params.get("mode", "exact") != "exact":
        raise LongshelfError("usage", f"This version answers in exact mode only, not {params['mode']!r}.", "Leave --mode out.")
    sampling = _sampling(params)
    model_name = shelf.models.open().name
    return Question(shelf, params, call, question, sampling, model_name).answer()


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


class Question:
    """One question under way."""

    def __init__(self, shelf: Shelf, params: dict[str, Any], call: Call, question: str, sampling: Sampling, model_name: str) -> None:
        self.shelf, self.params, self.call = shelf, params, call
        self.question, self.sampling, self.model_name = question, sampling, model_name
        self.counts = Counts()
        self.started = time.perf_counter()
        self.said = ""
        self.max_tokens = int(params.get("max_tokens") or MAX_TOKENS)
        if self.max_tokens < 1:
            raise LongshelfError("usage", f"--max-tokens is {self.max_tokens}; it is at least 1.")

    def answer(self) -> dict[str, Any]:
        """Save the question, answer it, save the answer; gives the result object."""
        chats = self.shelf.library.chats
        rows, chat_id, history, parent = self._conversation()
        asked_message = chats.add_user_message(chat_id, parent, self.question)
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
            chats.finish_message(answer_message.id, self.said, "stopped" if isinstance(error, Stopped) else "failed", {"reason": reason})
            self._tell_chat(chat_id)
            raise
        finally:
            self.shelf.publish("status", {"state": "ready"})
        status = "stopped" if result["stopped"] else "complete"
        kept = {name: value for name, value in result.items() if name not in ("answer", "citations", "token_ids")}
        chats.finish_message(answer_message.id, result["answer"], status, kept, citations)
        self._tell_chat(chat_id)
        return {**result, **ids}

    def _conversation(self) -> tuple[list[str], str, list[Turn], int | None]:
        """(document ids, chat id, earlier turns, message to answer under); a new chat where none is named."""
        library, params = self.shelf.library, self.params
        names = [str(name) for name in params.get("documents") or []]
        if not params.get("chat"):
            rows = [library.documents.find(name) for name in names]
            chat = library.chats.create(self.model_name, [(row.id, row.title) for row in rows])
            return [row.id for row in rows], chat.id, [], None
        chat = library.chats.get(str(params["chat"]))
        rows = [library.documents.find(name) for name in names or [document for document, _ in chat.documents]]
        library.chats.set_documents(chat.id, [(row.id, row.title) for row in rows])
        if "parent" in params:
            path = library.chats.path(params["parent"]) if params["parent"] is not None else []
        else:
            path = library.chats.newest_path(chat.id)
        turns = [
            Turn(asked.text, reply.text)
            for asked, reply in pairwise(path)
            if asked.role == "user" and reply.role == "assistant" and reply.text
        ]
        return [row.id for row in rows], chat.id, turns, path[-1].id if path else None

    def _tell_chat(self, chat_id: str) -> None:
        from engine.service.methods import chat_row

        self.shelf.publish("chats", {"chats": [chat_row(self.shelf.library.chats.get(chat_id))]})

    def _answered(self, rows: list[str], history: list[Turn]) -> tuple[dict[str, Any], list[Citation]]:
        self.call.emit("phase", {"name": "loading"})
        model, self.counts.load_s = self.shelf.model()
        self.started = time.perf_counter()  # waiting for the model to load is told apart
        asked = asked_documents(self.shelf, rows, bool(self.params.get("all")), model.namespace)
        answer = self.shelf.model_thread.run(lambda: Reading(self, model, asked, history).run(), urgent=True)
        documents = {row.id: stored_document(self.shelf, row) for row in {source.row.id: source.row for source in answer.sources}.values()}
        citations = [_citation(n, source, passage, documents[source.row.id]) for n, (source, passage) in enumerate(answer.cited, 1)]
        return self._result(model, asked, answer, citations, documents), citations

    def before_layer(self) -> None:
        if self.call.stop.is_set():
            raise Stopped

    def _result(
        self, model: LoadedModel, asked: Asked, answer: Answer, citations: Sequence[Citation], documents: dict[str, Document]
    ) -> dict[str, Any]:
        generated, counts = answer.generated, self.counts
        return {
            "answer": generated.text,
            "token_ids": generated.ids,
            "supported": answer.supported,
            "cut": generated.ending == "limit",
            "stopped": generated.ending == "stopped",
            "mode": "exact",
            "model": model.name,
            "trial_model": model.card.trial,
            "device": "cpu",
            "dtype": "bfloat16",
            "seed": self.sampling.seed,
            "parts_read": [
                {"document": source.row.id, "part": source.number, **places(documents[source.row.id], source.part)}
                for source in answer.sources
            ],
            "parts_total": asked.parts_total,
            **{name: round(value, 4) if isinstance(value, float) else value for name, value in asdict(counts).items()},
            "generated_tokens": len(generated.ids),
            "tokens_per_s": round(len(generated.ids) / counts.decode_s, 2) if counts.decode_s else 0.0,
            "acceptance_rate": None,
            "keys_read_fraction": 1.0,
            "rows_read_fraction": 1.0,
            "error_measured": 0.0,
            "citations": [citation_json(citation) for citation in citations],
        }


class Reading:
    """The model work of one question; runs on the model thread."""

    def __init__(self, question: Question, model: LoadedModel, asked: Asked, history: list[Turn]) -> None:
        self.question, self.model, self.asked, self.history = question, model, asked, history
        self.shelf, self.counts, self.emit = question.shelf, question.counts, question.call.emit
        self.prompts = Prompts(model.card, model.tokenizer)
        self.chains = Chains(question.shelf, model, question.before_layer)
        self.room = model.config.window - self.prompts.least(question.question)

    def run(self) -> Answer:
        try:
            return self._read()
        finally:
            self.counts.document_tokens_prefilled = self.chains.document_tokens_prefilled

    def _read(self) -> Answer:
        chosen = self._named_parts()
        if chosen is None:
            together = self._together()
            if together is not None:
                return self._answer(
                    self.chains.joined(together, self._say_join) if len(together) > 1 else self.chains.of(together[0]), together
                )
            chosen = [self._best()]
        if len(chosen) == 1:
            return self._answer(self.chains.of(chosen[0]), chosen)
        return self._one_by_one(chosen)

    def _named_parts(self) -> list[Source] | None:
        """The parts the person named; None for "auto"."""
        wanted = self.question.params.get("parts") or "auto"
        if wanted == "auto":
            return None
        if wanted == "all":
            return list(self.asked.sources)
        by_number = {source.number: source for source in self.asked.sources}
        numbers = [int(number) for number in wanted]
        if len(self.asked.rows) > 1 or not all(number in by_number for number in numbers):
            raise LongshelfError(
                "usage",
                f"There are no finished parts {', '.join(map(str, numbers))} to read.",
                f"One document at a time; its finished parts are {_numbers(sorted(by_number))}.",
            )
        return [by_number[number] for number in numbers]

    def _together(self) -> list[Source] | None:
        """All parts as one chain, in the order added, where the documents have one part each and fit the window together."""
        sources = sorted(self.asked.sources, key=lambda source: (source.row.added_at, source.row.id))
        single = all(count == 1 for count in _per_document(sources).values()) and self.asked.parts_total == len(sources)
        fits = sum(source.part.tokens for source in sources) + self.chains.preamble.length <= self.room
        if len(sources) == 1 or (single and fits and not self.question.params.get("all")):
            return sources
        return None

    def _say_join(self, tokens: int) -> None:
        self.emit("phase", {"name": "joining", "tokens": tokens, "seconds": round(tokens / self.shelf.queue.usual_speed, 1)})

    def _best(self) -> Source:
        """The part that the question most likely asks about."""
        started = time.perf_counter()
        sources = {source.part.id: source for source in self.asked.sources}
        self.emit("phase", {"name": "choosing", "parts_total": self.asked.parts_total})
        search_for = " ".join([*(turn.question for turn in self.history[-1:]), self.question.question])
        ranked = self.shelf.library.search.rank_parts(
            search_for, [row.id for row in self.asked.rows], limit=len(sources), namespace=self.model.namespace
        )
        order = [part_id for part_id, _ in ranked if part_id in sources]
        ranks = {part_id: rank for rank, part_id in enumerate(order)}
        candidates = (order + [part_id for part_id in sources if part_id not in ranks])[:CANDIDATES]
        chains = [self.chains.of(sources[part_id]) for part_id in candidates]
        measured = likelihood_gains(self.model, self.prompts, self.chains.preamble, chains, search_for, self.question.before_layer)
        scores = fuse(measured.gains, [ranks.get(part_id) for part_id in candidates])
        self.counts.routing_tokens, self.counts.routing_bytes = measured.tokens, measured.bytes
        self.counts.routing_s = time.perf_counter() - started
        return sources[candidates[max(range(len(scores)), key=scores.__getitem__)]]

    def _answer(self, chain: Chain, sources: Sequence[Source], last: bool = True) -> Answer:
        """Answer behind one chain. last: this is the answer the person sees as it comes."""
        question, model = self.question, self.model
        prompt = self.prompts.after_document(question.question, self.history, model.config.window - chain.length - 1)
        self.emit(
            "phase",
            {"name": "reading_question", "parts_read": [source.number for source in sources], "parts_total": self.asked.parts_total},
        )
        attention = Exact(middle_layers(model.config.layers))
        sequence = Read(chain.segments, Tail(model.config, model.decoder.dtype, len(prompt) + question.max_tokens))
        generated = generate(
            model.decoder,
            model.tokenizer,
            sequence,
            prompt,
            Sampler(question.sampling),
            attention,
            question.max_tokens,
            self._emit_text if last else (lambda text: None),
            question.before_layer,
        )
        self._count(generated, attention, chain.length, len(prompt), last)
        answer = Answer(generated, tuple(sources))
        self._find_sources(answer, chain, attention)
        return answer

    def _emit_text(self, text: str) -> None:
        if not self.question.said:
            self.emit("phase", {"name": "answering"})
            self.counts.ttft_s = time.perf_counter() - self.question.started
        self.question.said += text
        self.emit("token", {"text": text})

    def _count(self, generated: Generated, attention: Exact, reused: int, prompt: int, last: bool) -> None:
        counts = self.counts
        counts.prompt_tokens_prefilled += prompt
        counts.reused_tokens += reused
        counts.kv_bytes_read += attention.bytes_read
        counts.decode_s += generated.decode_s
        if last and not counts.ttft_s:
            counts.ttft_s = time.perf_counter() - self.question.started - generated.decode_s

    def _one_by_one(self, sources: Sequence[Source]) -> Answer:
        """Each part answers by itself; then one answer is made of what the supported ones said."""
        answers: list[Answer] = []
        for done, source in enumerate(sources):
            self.emit("phase", {"name": "reading_parts", "parts_done": done, "parts_total": len(sources)})
            answers.append(self._answer(self.chains.of(source), [source], last=False))
            if answers[-1].generated.ending == "stopped":
                break
        useful = [answer for answer in answers if answer.supported] or sorted(answers, key=lambda a: -a.generated.log_probability)[:1]
        if len(useful) == 1:
            self._emit_text(useful[0].generated.text)
            useful[0].sources = tuple(sources)
            return useful[0]
        return self._combined(useful, sources)

    def _combined(self, answers: Sequence[Answer], sources: Sequence[Source]) -> Answer:
        model, question = self.model, self.question
        notes = [answer.generated.text for answer in answers]
        chain = self.chains.preamble
        prompt = self.prompts.notes(question.question, notes)
        while len(prompt) + question.max_tokens > model.config.window - chain.length and len(notes) > 1:
            notes.pop()
            prompt = self.prompts.notes(question.question, notes)
        attention = Exact()
        sequence = Read(chain.segments, Tail(model.config, model.decoder.dtype, len(prompt) + question.max_tokens))
        sampler = Sampler(question.sampling)
        generated = generate(
            model.decoder,
            model.tokenizer,
            sequence,
            prompt,
            sampler,
            attention,
            question.max_tokens,
            self._emit_text,
            question.before_layer,
        )
        self._count(generated, attention, chain.length, len(prompt), True)
        best = sorted((cited for answer in answers for cited in answer.cited[:1]), key=lambda cited: -cited[1].score)
        return Answer(generated, tuple(sources), best[:5], any(answer.supported for answer in answers))

    def _find_sources(self, answer: Answer, chain: Chain, attention: Exact) -> None:
        """Fill in what the answer cites and whether the documents support it."""
        watched = attention.watched()
        steps = max(1, len(answer.generated.ids))
        paid = (watched / steps).tolist() if watched.numel() else [0.0] * chain.length
        at = self.chains.preamble.length
        found: list[tuple[Source, Passage]] = []
        texts: list[str] = []
        for source in answer.sources:
            document = stored_document(self.shelf, source.row)
            ids = segment_tokens(self.chains.of(source), self.chains.preamble)
            offsets = part_offsets(self.model, document, source.part, ids)
            attended = paid[at : at + source.part.tokens]
            at += source.part.tokens
            passages = cite(
                document.text, (source.part.start, source.part.end), offsets, attended, answer.generated.text, self.question.question
            )
            found += [(source, passage) for passage in passages]
            texts.append(document.text[source.part.start : source.part.end])
        found.sort(key=lambda cited: -cited[1].score)
        answer.cited = found[:3]
        answer.supported = verbatim_share(answer.generated.text, "\n".join(texts)) >= 0.5


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


def _per_document(sources: Sequence[Source]) -> dict[str, int]:
    counted: dict[str, int] = {}
    for source in sources:
        counted[source.row.id] = counted.get(source.row.id, 0) + 1
    return counted


def _numbers(numbers: list[int]) -> str:
    """1-5, 7: runs written short."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(f"{low}-{high}" if high > low else str(low) for low, high in runs)
