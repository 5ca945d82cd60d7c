"""`models calibrate`: what is measured of a model once, on texts of our own, and kept with it.

How large its parts are to be, what a row of a question costs it, how the signs of support are to be weighed, and what sampled attention
is to do. Nothing is added to the library: what is read here lives in memory. The texts and their questions are in resources/calibration,
laid out as a corpus.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

import resources
from engine.answering.choosing import likelihood
from engine.answering.prompt import Prompts
from engine.answering.support import Evidence, Rule, coverage
from engine.attention.in_memory import InMemory
from engine.attention.sequence import KV, Rows, Tail
from engine.attention.sequence import Sequence as Read
from engine.evaluation import corpus
from engine.evaluation.bearing import BEHIND, CONTEXT, Bearing, measure
from engine.evaluation.corpus import CorpusFile, Question, elsewhere
from engine.evaluation.report import auc
from engine.model import calibration
from engine.model.calibration import Calibration
from engine.model.loaded import LoadedModel
from engine.reading.memory import Watcher, compute_segments, preamble_chain
from engine.reading.parts import ROOM

if TYPE_CHECKING:
    from engine.shelf import Shelf

SMALLEST_PART = 1024
MOST_TOKENS = 40_000
"""Tokens that may be read to find the part size; larger parts than that allows are not tried."""

WITHIN = 0.1
"""Nats a token by which the right answers may be less likely in larger parts than in the best size."""

PRESENT_KEPT = 0.95
"""Share of the questions that their own text answers that is to count as supported."""

SIGNS = ("coverage", "explained")
"""What the rule weighs: what shows before there is an answer. The share of the question's attention that falls on the text, tried as a
third, added nothing to them (AUC .99 with and without), and depends on how long the text is."""

_RIDGE = 1.0
Floats = npt.NDArray[np.float64]


def calibrate(shelf: Shelf, model: LoadedModel, say: Callable[[str], None], before_layer: Callable[[], None]) -> Calibration:
    """Measure and keep. On the model thread; about a minute for the default model."""
    files, _ = corpus.load(resources.calibration(), model.tokenizer, None)
    languages = model.card.languages
    known = [file for file in files if not languages or file.questions[0].language in languages] or files
    work = _Calibrating(shelf, model, before_layer)
    say("what a row costs")
    row_s = work.row_seconds(known[0])
    say("how large parts are to be")
    sizes = work.answers_by_size(known, say)
    say("what shows that a question is answered")
    rule, found = fit(work.signs(files, say))
    say("what sampling does to each layer")
    bearing = work.bearing(known)
    made = Calibration(
        part_tokens=choose_size(sizes),
        row_s=row_s,
        support={"weights": dict(rule.weights), "bias": rule.bias, "least": rule.least},
        found={"log_p_by_part_tokens": {str(size): round(value, 4) for size, value in sizes.items()}, **found, "sampling": bearing.found},
        dense_layers=bearing.dense,
        sampled_from=bearing.sampled_from,
    )
    calibration.save(model.installed, made)
    return made


def choose_size(log_p: dict[int, float]) -> int:
    """The largest part size in which the right answers are about as likely as in the best."""
    best = max(log_p.values())
    return max(size for size, value in log_p.items() if value >= best - WITHIN)


@dataclass(frozen=True)
class Sign:
    """What reading a question behind a text showed; present: the text answers it."""

    file: str
    present: bool
    evidence: Evidence


def fit(signs: Sequence[Sign]) -> tuple[Rule, dict[str, Any]]:
    """The rule that tells present from absent best, and how well it does on each text when it was found on the others."""
    left_out: list[tuple[float, bool]] = []
    for file in dict.fromkeys(sign.file for sign in signs):
        others = [sign for sign in signs if sign.file != file]
        if len({sign.present for sign in others}) == 2:
            rule = _fitted(others, 0.5)
            left_out += [(rule.support(sign.evidence), sign.present) for sign in signs if sign.file == file]
    present, absent = ([support for support, there in left_out if there == wanted] for wanted in (True, False))
    least = min(0.5, float(np.quantile(present, 1 - PRESENT_KEPT))) if present else 0.5
    found = {
        "n_present": len(present),
        "n_absent": len(absent),
        "auc": auc(present, absent),
        "refused_present": float(np.mean([support < least for support in present])) if present else None,
        "refused_absent": float(np.mean([support < least for support in absent])) if absent else None,
    }
    return _fitted(signs, least), {name: round(value, 4) if value is not None else None for name, value in found.items()}


def _fitted(signs: Sequence[Sign], least: float) -> Rule:
    """Logistic regression with a ridge on standardised signs, by Newton's method."""
    x = np.array([[getattr(sign.evidence, name) for name in SIGNS] for sign in signs], float)
    y = np.array([sign.present for sign in signs], float)
    mean, spread = x.mean(0), x.std(0) + 1e-6
    z = np.c_[(x - mean) / spread, np.ones(len(x))]
    penalty = np.diag([_RIDGE] * len(SIGNS) + [0.0])
    w = np.zeros(len(SIGNS) + 1)
    for _ in range(50):
        p = 1 / (1 + np.exp(-z @ w))
        hessian = (z * (p * (1 - p))[:, None]).T @ z + penalty + 1e-9 * np.eye(len(w))
        w -= np.linalg.solve(hessian, z.T @ (p - y) + penalty @ w)
    weights: Floats = w[:-1] / spread
    named = {name: round(float(value), 4) for name, value in zip(SIGNS, weights, strict=True)}
    return Rule(named, round(float(w[-1] - weights @ mean), 4), round(least, 4))


class _Calibrating:
    def __init__(self, shelf: Shelf, model: LoadedModel, before_layer: Callable[[], None]) -> None:
        self._model, self._before_layer = model, before_layer
        self._prompts = Prompts(model.card, model.tokenizer)
        self._preamble = preamble_chain(model, shelf.library)

    def row_seconds(self, file: CorpusFile) -> float:
        """Seconds a row of a question takes behind many chains at once: the least of three tries."""
        chain = self._read(self._model.tokenizer.encode_ids(file.text)[:SMALLEST_PART])
        took: list[float] = []
        for _ in range(3):
            started = time.perf_counter()
            measured = likelihood(
                self._model, self._prompts, self._preamble.segments, [chain] * 16, file.questions[0].question, self._before_layer
            )
            took.append((time.perf_counter() - started) / measured.tokens)
        return round(min(took), 6)

    def answers_by_size(self, files: Sequence[CorpusFile], say: Callable[[str], None]) -> dict[int, float]:
        """Part size → mean log p of a token of the right answers, each text in the middle of a part filled up with the others."""
        found: dict[int, float] = {}
        size, left = SMALLEST_PART, MOST_TOKENS
        while size <= max(SMALLEST_PART, self._model.config.window // 2 - ROOM // 2) and left >= 0:
            say(f"parts of {size} tokens")
            values: list[float] = []
            for file in files:
                fill = [token for other in files if other is not file for token in self._model.tokenizer.encode_ids(other.text)]
                for ids, questions in self._runs(file, size):
                    around = size - len(ids)
                    chain = self._read([*_cycled(fill, around // 2), *ids, *_cycled(fill, around - around // 2)])
                    left -= size
                    values += [self._answer_log_p(chain, question) for question in questions]
            found[size] = float(np.mean(values))
            size *= 2
        return found

    def _runs(self, file: CorpusFile, size: int) -> list[tuple[list[int], list[Question]]]:
        """A text in runs of at most `size` tokens: (ids, the questions whose answers lie whole in them)."""
        encoding = self._model.tokenizer.encode(file.text)
        runs = []
        for start in range(0, len(encoding), size):
            low, high = encoding.offsets[start][0], encoding.offsets[min(start + size, len(encoding)) - 1][1]
            inside = [question for question in file.questions if low <= question.start and question.end <= high]
            if inside:
                runs.append((encoding.ids[start : start + size], inside))
        return runs

    def _answer_log_p(self, chain: Sequence[KV], question: Question) -> float:
        """Mean log p of the right answer's tokens behind the program's own prompt."""
        prompt = self._prompts.after_document(question.question, (), self._model.config.window)
        answer = self._model.tokenizer.encode_ids(question.answer)
        ids = prompt.opening + prompt.asking + answer
        sequence = Read(chain, Tail(self._model.config, self._model.decoder.dtype, len(ids)))
        rows = Rows([(sequence, len(ids))])
        wanted = slice(len(ids) - len(answer) - 1, len(ids) - 1)
        logits = self._model.decoder.forward(torch.tensor(ids), rows, self._model.exact(), wanted, self._before_layer)
        log_p = logits.gather(1, torch.tensor(answer)[:, None])[:, 0] - logits.logsumexp(-1)
        return float(log_p.mean())

    def signs(self, files: Sequence[CorpusFile], say: Callable[[str], None]) -> list[Sign]:
        """What reading each text's own questions behind it shows, and as many of the others'."""
        found: list[Sign] = []
        for file in files:
            say(file.name)
            chain = self._read(self._model.tokenizer.encode_ids(file.text)[: self._model.config.window - ROOM])
            found += [Sign(file.name, True, self._evidence(chain, file, question)) for question in file.questions]
            found += [Sign(file.name, False, self._evidence(chain, file, question)) for question in elsewhere(file, list(files))]
        return found

    def bearing(self, files: Sequence[CorpusFile]) -> Bearing:
        """What sampling does to the model, behind these texts and the handbook in their languages."""
        languages = dict.fromkeys(file.questions[0].language for file in files)
        texts = [file.text for file in files] + [resources.handbook(language).read_text(encoding="utf-8") for language in languages]
        ids = [token for text in texts for token in self._model.tokenizer.encode_ids(text)]
        wanted = min(CONTEXT + BEHIND, self._model.config.window - self._preamble.length)
        ids = _cycled(ids, max(wanted, len(ids)))[-wanted:]
        return measure(self._model, self._read(ids[:-BEHIND]), ids[-BEHIND:], self._before_layer)

    def _evidence(self, chain: Sequence[KV], file: CorpusFile, question: Question) -> Evidence:
        model = self._model
        measured = likelihood(model, self._prompts, self._preamble.segments, [chain], question.question, self._before_layer)
        return Evidence(coverage(question.question, [file.text]), measured.explained(measured.gains[0]))

    def _read(self, ids: Sequence[int]) -> list[KV]:
        """A chain in memory: preamble and these tokens."""
        computed = compute_segments(self._model, self._preamble, list(ids), Watcher(self._before_layer))
        return [*self._preamble.segments, *map(InMemory, computed)]


def _cycled(ids: Sequence[int], count: int) -> list[int]:
    return list(islice(cycle(ids), count))
