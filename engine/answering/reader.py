"""The model work of one question: choosing parts, reading the question behind them, decoding, finding the sources.

Documents that have one part each and fit the window together are read as one chain. Otherwise the likeliest part answers: from the
two best it named the wanted words no more often (`eval qa`, 19 English questions: alone .37, the two joined .37, each answering and
then combined .16). Parts that the person named are quickly joined where they fit the window, which is said; else, and for all of them, each
answers by itself and one answer is made of what they said. Everything here runs on the model thread.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from engine.answering.answer import Answer, Asking, Counts
from engine.answering.choosing import likelihood
from engine.answering.citations import Passage, cite, verbatim_share
from engine.answering.generate import Attended, Generated, generate
from engine.answering.modes import Decoding
from engine.answering.prompt import Prompt, Prompts
from engine.answering.routing import Routed, route
from engine.answering.sampling import Chooser, Sampler
from engine.answering.sources import Asked, Chains, Source, part_offsets, segment_tokens
from engine.answering.support import Evidence, coverage, rule_of
from engine.attention.estimated import Estimated
from engine.attention.sequence import KV, Tail
from engine.attention.sequence import Sequence as Read
from engine.errors import LongshelfError, Stopped
from engine.model.loaded import LoadedModel
from engine.reading.rows import stored_document

if TYPE_CHECKING:
    from engine.shelf import Shelf


class Reader:
    """Answers one question; all of it on the model thread. counts and said (the text given out so far) hold even where it ends early."""

    def __init__(self, shelf: Shelf, model: LoadedModel, documents: Asked, asking: Asking, counts: Counts) -> None:
        self.shelf, self.model, self.documents, self.asking, self.counts = shelf, model, documents, asking, counts
        self.said = ""
        self._started = time.perf_counter()
        self._prompts = Prompts(model.card, model.tokenizer)
        self._measured: dict[int, float] = {}
        self.sampled: list[Estimated] = []  # what sampled, one for each answer
        self.exact_because: str | None = None  # see `Decoding`; of the last answer that says why

    @cached_property
    def chains(self) -> Chains:
        """The chains this question is read behind."""
        return Chains(self.shelf, self.model, self._before_layer)

    def run(self) -> Answer:
        """Raises LongshelfError; Stopped if it was stopped before the answer began."""
        chains = self.chains
        try:
            return self._read()
        finally:
            self.counts.document_tokens_prefilled = chains.document_tokens_prefilled

    def _before_layer(self) -> None:
        if self.asking.stop.is_set():
            raise Stopped

    def _read(self) -> Answer:
        chosen = self._named_parts()
        if chosen is None:
            together = self._together()
            if together is not None:
                chain = self.chains.joined(together, self._say_join) if len(together) > 1 else self.chains.of(together[0])
                return self._answer(chain.segments, together)
            chosen = [self._best()]
        if len(chosen) == 1:
            return self.alone(chosen[0])
        return self.joined(chosen) if self.asking.parts != "all" and self._fit(chosen) else self.each(chosen)

    def alone(self, source: Source, chooser: Chooser | None = None) -> Answer:
        """Answered from one part. chooser: says every token of the answer instead of the model."""
        return self._answer(self.chains.of(source).segments, [source], chooser=chooser)

    def joined(self, sources: Sequence[Source]) -> Answer:
        """Answered from several parts put behind one another in this order without reading them again: an approximation.

        Raises LongshelfError("too_long") where they don't fit the window together.
        """
        chain, made = self.chains.quickly_joined(sources)
        answer = self._answer(chain, sources)
        self.chains.keep(made)
        answer.approximate = True
        return answer

    def _named_parts(self) -> list[Source] | None:
        """The parts the person named; None for "auto"."""
        if self.asking.parts == "auto":
            return None
        if isinstance(self.asking.parts, str):
            return list(self.documents.sources)
        by_number = {source.number: source for source in self.documents.sources}
        numbers = self.asking.parts
        if not all(number in by_number for number in numbers):
            raise LongshelfError(
                "usage",
                f"There are no finished parts {', '.join(map(str, numbers))} to read.",
                f"The finished parts are {_numbers(sorted(by_number))}.",
            )
        return [by_number[number] for number in numbers]

    def _together(self) -> list[Source] | None:
        """All parts as one chain, in the order added, where the documents have one part each and fit the window together."""
        sources = sorted(self.documents.sources, key=lambda source: (source.row.added_at, source.row.id))
        single = all(count == 1 for count in _per_document(sources).values()) and self.documents.parts_total == len(sources)
        room = self.model.config.window - self._prompts.least(self.asking.question) - self.chains.preamble.length
        fits = sum(source.part.tokens for source in sources) < room
        if len(sources) == 1 or (single and fits and not self.asking.everything):
            return sources
        return None

    def _fit(self, sources: Sequence[Source]) -> bool:
        """Whether these parts fit the window as one chain, with room for the question and an answer."""
        window = self.model.config.window
        room = window - window // 8 - self._prompts.least(self.asking.question) - self.chains.preamble.length
        return sum(source.part.tokens for source in sources) <= room

    def _say_join(self, tokens: int) -> None:
        self.asking.emit("phase", {"name": "joining", "tokens": tokens, "seconds": round(tokens / self.shelf.queue.usual_speed, 1)})

    def _say_preparing(self, size: int | None) -> None:
        """size: bytes of the hash tables that are made, where it is these."""
        self.asking.emit("phase", {"name": "preparing_sampling", **({} if size is None else {"bytes": size})})

    def _best(self) -> Source:
        """The part that the question most likely asks about."""
        self.asking.emit("phase", {"name": "choosing", "parts_total": self.documents.parts_total})
        return self.routed().sources[0]

    def routed(self) -> Routed:
        """The parts in the order in which they suit the question, together with the one asked before it."""
        asked = " ".join([*(turn.question for turn in self.asking.history[-1:]), self.asking.question])
        routed = route(self.shelf, self.model, self._prompts, self.chains, self.documents, asked, self._before_layer)
        self.counts.routing_tokens, self.counts.routing_bytes = routed.tokens, routed.bytes
        self.counts.routing_s = routed.seconds
        if not self.asking.history:
            self._measured = routed.explained
        return routed

    def _answer(self, chain: Sequence[KV], sources: Sequence[Source], last: bool = True, chooser: Chooser | None = None) -> Answer:
        """Answer behind one chain. last: this is the answer the person sees as it comes. chooser: says its tokens instead of the model."""
        asking, model = self.asking, self.model
        length = sum(kv.tokens for kv in chain)
        for_answer = min(asking.max_tokens, model.config.window // 8)
        prompt = self._prompts.after_document(asking.question, asking.history, model.config.window - length - 1, for_answer)
        self.asking.emit(
            "phase",
            {"name": "reading_question", "parts_read": [source.number for source in sources], "parts_total": self.documents.parts_total},
        )
        attention = model.exact(asking.mode.watched_layers(model.config))
        sequence = Read(chain, self._tail(length, prompt))
        seed = asking.sampling.seed
        decoding = Decoding(model, self.shelf, chain, attention, asking.mode, seed, self._before_layer, self._say_preparing)
        generated = generate(
            model.decoder,
            model.tokenizer,
            sequence,
            prompt,
            chooser or Sampler(asking.sampling),
            attention,
            asking.max_tokens,
            self._emit_text if last else (lambda text: None),
            self._before_layer,
            decoding.start,
        )
        self.sampled += [decoding.sampled] if decoding.sampled is not None else []
        self.exact_because = decoding.exact_because or self.exact_because
        self._count(generated, decoding.bytes_read, length, len(prompt), last)
        answer = Answer(generated, tuple(sources))
        self._find_sources(answer, chain)
        return answer

    def _tail(self, length: int, prompt: Prompt) -> Tail:
        """Room for prompt and answer behind a chain of that length, which ends with the window at the latest."""
        config = self.model.config
        return Tail(config, self.model.decoder.dtype, min(len(prompt) + self.asking.max_tokens, config.window - length))

    def _emit_text(self, text: str) -> None:
        if not self.said:
            self.asking.emit("phase", {"name": "answering"})
            self.counts.ttft_s = time.perf_counter() - self._started
        self.said += text
        self.asking.emit("token", {"text": text})

    def _count(self, generated: Generated, bytes_read: int, reused: int, prompt: int, last: bool) -> None:
        counts = self.counts
        counts.prompt_tokens_prefilled += prompt
        counts.reused_tokens += reused
        counts.kv_bytes_read += bytes_read
        counts.decode_s += generated.decode_s
        if last and not counts.ttft_s:
            counts.ttft_s = time.perf_counter() - self._started - generated.decode_s

    def each(self, sources: Sequence[Source]) -> Answer:
        """Each part answers by itself; then one answer is made of what the supported ones said."""
        answers: list[Answer] = []
        for done, source in enumerate(sources):
            self.asking.emit("phase", {"name": "reading_parts", "parts_done": done, "parts_total": len(sources)})
            answers.append(self._answer(self.chains.of(source).segments, [source], last=False))
            if answers[-1].generated.ending == "stopped":
                break
        useful = [answer for answer in answers if answer.supported] or sorted(answers, key=lambda a: -a.generated.log_probability)[:1]
        if len(useful) == 1:
            self._emit_text(useful[0].generated.text)
            useful[0].sources = tuple(sources)
            return useful[0]
        return self._combined(useful, sources)

    def _combined(self, answers: Sequence[Answer], sources: Sequence[Source]) -> Answer:
        model, asking = self.model, self.asking
        notes = [answer.generated.text for answer in answers]
        chain = self.chains.preamble
        prompt = self._prompts.notes(asking.question, notes)
        while len(prompt) + asking.max_tokens > model.config.window - chain.length and len(notes) > 1:
            notes.pop()
            prompt = self._prompts.notes(asking.question, notes)
        attention = model.exact()
        sequence = Read(chain.segments, self._tail(chain.length, prompt))
        sampler = Sampler(asking.sampling)
        generated = generate(
            model.decoder,
            model.tokenizer,
            sequence,
            prompt,
            sampler,
            attention,
            asking.max_tokens,
            self._emit_text,
            self._before_layer,
        )
        self._count(generated, attention.bytes_read, chain.length, len(prompt), True)
        best = sorted((cited for answer in answers for cited in answer.cited[:1]), key=lambda cited: -cited[1].score)
        likeliest = max(answers, key=lambda answer: answer.support)
        return Answer(generated, tuple(sources), best[:5], likeliest.evidence, likeliest.support, likeliest.supported)

    def _find_sources(self, answer: Answer, chain: Sequence[KV]) -> None:
        """Fill in what the answer cites and whether the documents support it."""
        attended = answer.generated.attended
        length = sum(kv.tokens for kv in chain)
        paid = surplus(attended, length) if attended else [0.0] * length
        at = self.chains.preamble.length
        found: list[tuple[Source, Passage]] = []
        texts: list[str] = []
        for source in answer.sources:
            document = stored_document(self.shelf, source.row)
            ids = segment_tokens(self.chains.of(source), self.chains.preamble)
            offsets = part_offsets(self.model, document, source.part, ids)
            of_part = paid[at : at + source.part.tokens]
            at += source.part.tokens
            passages = cite(
                document.text, (source.part.start, source.part.end), offsets, of_part, answer.generated.text, self.asking.question
            )
            found += [(source, passage) for passage in passages]
            texts.append(document.text[source.part.start : source.part.end])
        found.sort(key=lambda cited: -cited[1].score)
        answer.cited = found[:3]
        answer.evidence = Evidence(
            coverage=coverage(self.asking.question, texts),
            explained=0.0 if answer.generated.ending == "stopped" else self._explained(chain, answer.sources),
            verbatim=verbatim_share(answer.generated.text, "\n".join(texts)),
        )
        rule = rule_of(self.model.installed)
        answer.support = rule.support(answer.evidence)
        answer.supported = answer.support >= rule.least

    def _explained(self, chain: Sequence[KV], sources: Sequence[Source]) -> float:
        """How much of the question's improbability goes behind a chain; measured now where choosing did not."""
        if len(sources) == 1 and (known := self._measured.get(sources[0].part.id)) is not None:
            return known
        preamble = self.chains.preamble
        measured = likelihood(self.model, self._prompts, preamble.segments, [chain], self.asking.question, self._before_layer)
        self.counts.routing_tokens += measured.tokens
        self.counts.routing_bytes += measured.bytes
        return measured.explained(measured.gains[0])


def surplus(attended: Attended, length: int) -> list[float]:
    """Attention that question and answer gave to each of the first `length` positions beyond what the prompt's opening gave them.

    Some places are looked at whatever is asked; the fixed opening tells which.
    """
    asked, said, usual = (taken[:length] for taken in (attended.question, attended.answer, attended.opening))
    said = said if said.any() else asked
    gained: list[float] = ((asked + said) / 2 - usual).clamp_min(0).tolist()
    return gained


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
