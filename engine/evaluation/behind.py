"""Ways of reading behind one text, each compared with exact reading on the same forced answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from engine.answering.modes import COMPACT, Afforded, as_bits, compact_set
from engine.attention.exact import Exact
from engine.attention.sampled import Sampled
from engine.attention.selected import Selected
from engine.evaluation.cases import DOCUMENT, Case
from engine.evaluation.forced import Beside, Stage
from engine.retrieval import sketches
from engine.retrieval.candidates import Candidates
from engine.retrieval.guesses import Rotated
from engine.retrieval.lsh import Lsh
from engine.retrieval.oracle import Oracle
from engine.retrieval.priority import Priority
from engine.retrieval.projections import Projections
from engine.retrieval.quest import PAGE, Quest
from engine.retrieval.selection import Selector
from engine.retrieval.top_k import TopK

ANSWER = 17
"""Tokens of an answer, at most: the first stands behind the question, and 16 rows make one call."""


@dataclass(frozen=True)
class Way:
    """selector: "default", or a yardstick; budget: share of the bytes; question_sampled: see `eval_fidelity`."""

    selector: str
    budget: float
    question_sampled: bool
    seed: int


@dataclass(frozen=True)
class Compared:
    """Means over the tokens of an answer. output_errors: of each layer, where measured."""

    overlap: float
    agreement: float
    gold_loss: float | None
    bytes_read: float
    rows_read: float
    output_errors: list[float]

    def as_row(self) -> dict[str, Any]:
        values: dict[str, Any] = {name: round(getattr(self, name), 5) for name in ("overlap", "agreement", "bytes_read", "rows_read")}
        values["gold_loss"] = None if self.gold_loss is None else round(self.gold_loss, 5)
        if self.output_errors:
            values |= {"output_error": sum(self.output_errors) / len(self.output_errors), "output_errors": self.output_errors}
        return values


Estimate = Sampled | Selected


class Behind:
    """stage: has read the case's text. The answer is the right one; of a document, whose right answer may be a word, what exact
    reading says."""

    def __init__(self, stage: Stage, case: Case, projections: Projections) -> None:
        self.stage, self.case, self._projections = stage, case, projections
        self._sequence = stage.sequence(len(case.prompt) + ANSWER)
        first = stage.ask(self._sequence, case.prompt, Exact(stage.model.config))
        self.answer = self._greedy(first) if case.kind == DOCUMENT else case.gold[:ANSWER]
        self._exact = self._say_exactly(stage)

    def _greedy(self, logits: torch.Tensor) -> list[int]:
        said, exact = [int(logits.argmax())], Exact(self.stage.model.config)
        while len(said) < ANSWER:
            said.append(int(self.stage.say(self._sequence, said[-1:], exact)[-1].argmax()))
        return said

    def _say_exactly(self, stage: Stage) -> torch.Tensor:
        """Logits [n, V] before each token of the answer."""
        sequence = stage.sequence(len(self.case.prompt) + ANSWER)
        exact = Exact(stage.model.config)
        first = stage.ask(sequence, self.case.prompt, exact)
        return torch.cat([first[None], stage.say(sequence, self.answer[:-1], exact)])

    def read_again(self, stage: Stage) -> Compared:
        """Exact reading, of the same text read anew."""
        return self._compare(self._say_exactly(stage), 0, 1.0, 1.0, [])

    def compared(self, way: Way) -> Compared:
        """The way's answer beside that of exact reading. Where the question is read exactly, the first token tells nothing."""
        stage, sequence, prompt = self.stage, self._sequence, self.case.prompt
        sequence.tail.cut(0)
        start, parts, before = sequence.length, [], 0
        if way.question_sampled:
            begun = self._estimate(way, None)
            stage.say(sequence, prompt[:-1], begun)
            exact = stage.watching(sequence)
            first = stage.say(sequence, prompt[-1:], exact)[-1]
            parts.append((begun, len(prompt) - 1))
            before = exact.bytes_read
        else:
            exact = stage.watching(sequence)
            first = stage.ask(sequence, prompt, exact)
            start = sequence.length
        reading = self._estimate(way, exact)
        beside = Beside(reading, Exact(stage.model.config))
        logits = torch.cat([first[None], stage.say(sequence, self.answer[:-1], beside)])
        parts.append((reading, len(self.answer) - 1))
        rows = sum(each.rows_read_fraction * count for each, count in parts) / max(1, sum(count for _, count in parts))
        if way.selector in ("top_k", "oracle"):
            share = rows
        else:
            share = (sum(each.bytes_read for each, _ in parts) + before) / stage.everything(start, sequence.length - start)
        return self._compare(logits, 0 if way.question_sampled else 1, share, rows, beside.means())

    def _compare(self, logits: torch.Tensor, start: int, share: float, rows: float, errors: list[float]) -> Compared:
        p, q = self._exact[start:].softmax(-1), logits[start:].softmax(-1)
        said = torch.tensor(self.answer[start:])[:, None]
        lost = (p.gather(1, said).log() - q.gather(1, said).log()).mean()
        return Compared(
            overlap=float(torch.minimum(p, q).sum(-1).mean()),
            agreement=float((p.argmax(-1) == q.argmax(-1)).float().mean()),
            gold_loss=None if self.case.kind == DOCUMENT else float(lost),
            bytes_read=share,
            rows_read=rows,
            output_errors=errors,
        )

    def _estimate(self, way: Way, asked: Exact | None) -> Estimate:
        """asked: what has read the question exactly, or its last token; None: nothing has, and there is no compact set."""
        stage, config = self.stage, self.stage.model.config
        budget = way.budget
        if way.question_sampled:  # one row is read exactly
            rows = len(self.case.prompt) + len(self.answer) - 1
            budget = max(0.0, (budget * rows - 1) / (rows - 1))
        index_bytes, make = _YARDSTICKS.get(way.selector, (None, None))
        of_key = self._projections.layout.bytes_per_key * _LOOKED_AT if index_bytes is None else index_bytes(config.head_dim)
        afforded = Afforded.within(budget, config, of_key, stage.tokens, COMPACT if asked else 0)
        closed = compact_set(asked or Exact(config), stage.chain, afforded.compact)
        if make is None:
            certain = as_bits(closed, stage.chain, self._sketches)
            return Sampled(Exact(config), self._projections.layers, self._sketches, afforded.keys, way.seed, certain, audit_every=0)
        closed[..., : stage.chain[0].tokens] = True  # as the default reads the preamble
        candidates = Candidates(self._keys, ~closed, config.scale, config.attention_softcap)
        selector = make(candidates, _Wanted(int(afforded.keys), stage.tokens - stage.chain[0].tokens, way.seed))
        return Selected(Exact(config), selector, ~closed, audit_every=0)

    @cached_property
    def _sketches(self) -> dict[int, sketches.Sketch]:
        made = self._projections.layers
        return {id(kv): sketches.Sketch(list(sketches.make(kv, made))) for kv in self.stage.chain[1:]}

    @cached_property
    def _keys(self) -> list[torch.Tensor]:
        return [torch.cat([kv.key(layer) for kv in self.stage.chain], 1) for layer in range(self.stage.model.config.layers)]


_LOOKED_AT = 1 + 1 / 7
"""How often a sketch is looked at, for the threshold and for the draw, behind some thousands of tokens."""


@dataclass(frozen=True)
class _Wanted:
    """keys: of each query head; text: tokens behind the preamble."""

    keys: int
    text: int
    seed: int


def _hashed(bits: int, tables: int) -> tuple[Callable[[int], float], Callable[[Candidates, _Wanted], Selector]]:
    """What tables draw isn't told them, and what they read of themselves is hardly anything."""
    return lambda dim: 0, lambda candidates, wanted: Lsh(candidates, [wanted.text], bits, tables, wanted.seed)


_YARDSTICKS: dict[str, tuple[Callable[[int], float], Callable[[Candidates, _Wanted], Selector]]] = {
    "top_k": (lambda dim: 0, lambda candidates, wanted: TopK(candidates, wanted.keys)),
    "oracle": (lambda dim: 0, lambda candidates, wanted: Oracle(candidates, wanted.keys, wanted.seed)),
    "quest": (lambda dim: 2 * 2 * dim / PAGE, lambda candidates, wanted: Quest(candidates, wanted.keys)),
    "sign_256": (
        lambda dim: 256 / 8 + 4,
        lambda candidates, wanted: Priority(Rotated(candidates, 256, 1, wanted.seed), wanted.keys, wanted.seed),
    ),
    "random_4_bit": (
        lambda dim: dim / 2 + 4,
        lambda candidates, wanted: Priority(Rotated(candidates, candidates.keys[0].shape[2], 4, wanted.seed), wanted.keys, wanted.seed),
    ),
    "lsh_8_75": _hashed(8, 75),
    "lsh_10_150": _hashed(10, 150),
}
"""Bytes of a key's index, and what makes a selector; top-k and the oracle choose for nothing."""
