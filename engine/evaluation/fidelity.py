"""`eval fidelity`: how near to exact reading an estimate stays, at so many bytes, on documents and on problems.

The same answer is forced on every way of reading, and its distributions are compared token by token with those of exact reading: overlap,
the sum of min(p, q); agreement, whether both think the same token likeliest; gold_loss, by how many nats less likely the right answer
is. Two protocols: the question is read exactly, as `ask` does; or it is sampled too, all but its last token, whose exact reading then
tells the compact set. Bytes are all that is read, index included, as a share of what exact reading takes row by row.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from engine.errors import LongshelfError
from engine.evaluation import cases
from engine.evaluation.behind import Behind, Compared, Way
from engine.evaluation.cases import DOCUMENT, Case
from engine.evaluation.epsilon import promises
from engine.evaluation.forced import Stage
from engine.evaluation.report import Report
from engine.model.loaded import LoadedModel
from engine.retrieval import projections

SHORT = 2048
BUDGETS = (0.1, 0.2, 0.3)
JUDGED = 0.2
SEEDS = (1, 2, 3)
TASKS = ("needle_keys", "needle_values", "variables", "common_words", "frequent_words", "relations")
AGGREGATION = "frequent_words"
AGGREGATION_SEEDS = (1, 2, 3, 4, 5)
DOCUMENTS = 8
ROOM = 512
"""Tokens that a question and its answer may take of the window."""
FLOOR = 2
"""Documents that are read once more on another number of threads."""
EPSILONS = (0.1, 0.2, 0.4)
PROMISED = 32
"""Tokens of an answer with a promised error."""
YARDSTICKS = {0.2: ("top_k", "oracle", "quest", "sign_256", "random_4_bit", "lsh_8_75"), 0.05: ("top_k", "oracle", "lsh_10_150")}
"""By budget; hash tables draw what they draw. A twentieth of the bytes is less than the default's sketches alone take."""

PAIRED = ("top_k", JUDGED)
"""What the default is compared with on every problem of aggregation."""

_T = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365}
"""Student's t at .975 for so many values."""


def eval_fidelity(model: LoadedModel, folder: Path, most_tokens: int | None, report: Report, say: Callable[[str], None]) -> None:
    """Figures overlap, agreement, gold_loss, bytes_read, rows_read: the default with the question sampled too, at a fifth of the bytes
    behind the longer texts; floor_…: exact against exact on another number of threads; aggregation_minus_topk: the lower end of the
    paired 95 % interval of the overlap on frequent words, less that of exact top-k whose choice reads nothing.

    eps_violation_rate: how often an error promised by `ask --epsilon` was broken, the worst of three epsilons, by so many
    (eps_violation_n) of layer, head and token; see `epsilon`.

    …_question_exact: the other protocol; …_5, …_10, …_30: other budgets, in percent; …_2k: behind the shorter texts; others end in the
    name of the selector. Raises LongshelfError as `cases.load` does.
    """
    longest = model.config.window - len(model.card.preamble.ids) - ROOM
    tokens = min(most_tokens or longest, longest)
    if tokens < SHORT:
        raise LongshelfError("usage", f"--max-tokens-per-file is {tokens}; fidelity is measured behind {SHORT} tokens at least.")
    report.seeds = list(SEEDS)
    report.settings |= {"model": model.name, "corpus": str(folder), "tokens": [SHORT, tokens], "budgets": list(BUDGETS)}
    report.settings |= {"tasks": list(TASKS), "top_k": "its choice reads nothing", "oracle": "its choice reads nothing"}
    seeds = dict.fromkeys(TASKS, SEEDS) | {AGGREGATION: AGGREGATION_SEEDS}
    made = projections.of(model, lambda: None)
    for length in dict.fromkeys((SHORT, tokens)):
        found = cases.load(folder, model, length, DOCUMENTS, seeds)
        for number, case in enumerate(found, 1):
            say(f"{length} tokens: {case.source} ({number} of {len(found)})")
            behind = Behind(Stage(model, case.text), case, made)
            for way in _ways(case, length == tokens):
                _add(report, case, length, way, behind.compared(way))
            if length == tokens and case.kind == DOCUMENT and number <= FLOOR:
                _add_floor(report, model, behind, length)
                for kept in promises(behind.stage, case.prompt, EPSILONS, PROMISED, made):
                    report.add(kind=case.kind, source=case.source, tokens=length, selector="promise", **kept.as_row())
    _summarise(report, tokens)


def _ways(case: Case, long: bool) -> Iterator[Way]:
    draws = SEEDS if case.kind == DOCUMENT else (case.seed,)
    for sampled in (False, True):
        for budget in BUDGETS:
            for seed in draws if budget == JUDGED else draws[:1]:
                yield Way("default", budget, sampled, seed)
    aggregation = case.kind == AGGREGATION
    for budget, selectors in YARDSTICKS.items() if long else ():
        for selector in selectors:
            if case.seed <= SEEDS[0] or (aggregation and (selector, budget) == PAIRED):  # they take long
                yield Way(selector, budget, aggregation, draws[0])


def _add(report: Report, case: Case, length: int, way: Way, compared: Compared) -> None:
    report.add(
        kind=case.kind,
        source=case.source,
        language=case.language,
        tokens=length,
        selector=way.selector,
        budget=way.budget,
        question="sampled" if way.question_sampled else "exact",
        seed=way.seed,
        **compared.as_row(),
    )


def _add_floor(report: Report, model: LoadedModel, behind: Behind, length: int) -> None:
    with _other_threads():
        again = behind.read_again(Stage(model, behind.case.text))
    report.add(kind=behind.case.kind, source=behind.case.source, tokens=length, selector="exact", **again.as_row())


@contextmanager
def _other_threads() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1 if threads > 1 else 2)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _summarise(report: Report, tokens: int) -> None:
    def mean(name: str, **where: Any) -> float | None:
        rows = [
            row[name] for row in report.rows if all(row.get(key) == value for key, value in where.items()) and row.get(name) is not None
        ]
        return statistics.fmean(rows) if rows else None

    judged: dict[str, Any] = {"selector": "default", "tokens": tokens, "budget": JUDGED, "question": "sampled"}
    groups: dict[str, dict[str, Any]] = {
        "": judged,
        "_documents": judged | {"kind": DOCUMENT},
        "_question_exact": judged | {"question": "exact"},
        "_2k": judged | {"tokens": SHORT},
        **{_percent(budget): judged | {"budget": budget} for budget in BUDGETS if budget != JUDGED},
        **{f"_{task}": judged | {"kind": task} for task in TASKS},
        **{
            f"_{selector}{_percent(budget) if budget != JUDGED else ''}": judged
            | {"selector": selector, "question": "exact", "budget": budget}
            for budget, selectors in YARDSTICKS.items()
            for selector in selectors
        },
    }
    for suffix, where in groups.items():
        for name in ("overlap", "agreement", "gold_loss", "bytes_read", "rows_read", "output_error"):
            if (value := mean(name, **where)) is not None:
                report.figures[f"{name}{suffix}"] = value
    for name in ("overlap", "agreement"):
        if (value := mean(name, selector="exact")) is not None:
            report.figures[f"floor_{name}"] = value
    report.figures |= _aggregation(report.rows, tokens) | _promised(report.rows)


def _percent(share: float) -> str:
    return f"_{share:.0%}".removesuffix("%")


def _aggregation(rows: Sequence[dict[str, Any]], tokens: int) -> dict[str, float]:
    """The paired difference on frequent words, its mean and the lower end of its interval."""
    of: dict[str, dict[str, float]] = {"default": {}, "top_k": {}}
    for row in rows:
        wanted = row["kind"] == AGGREGATION and row["tokens"] == tokens and row.get("budget") == JUDGED and row["question"] == "sampled"
        if wanted and row["selector"] in of:
            of[row["selector"]][row["source"]] = row["overlap"]
    gains = [of["default"][source] - of["top_k"][source] for source in of["default"].keys() & of["top_k"].keys()]
    if len(gains) < 2:
        return {}
    mean, spread = statistics.fmean(gains), statistics.stdev(gains) / math.sqrt(len(gains))
    return {"aggregation_minus_topk": mean - _T[len(gains)] * spread, "aggregation_minus_topk_mean": mean}


def _promised(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """For each epsilon the share of errors above it and of bytes read; the worst of the former beside what chance allows."""
    figures: dict[str, float] = {}
    for epsilon in EPSILONS:
        of = [row for row in rows if row.get("epsilon") == epsilon]
        if of:
            n, name = sum(row["n"] for row in of), _percent(epsilon)
            figures[f"eps_violation_rate{name}"] = sum(row["eps_violation_rate"] * row["n"] for row in of) / n
            figures[f"bytes_read_eps{name}"] = statistics.fmean(row["bytes_read"] for row in of)
            figures |= {"eps_violation_n": n, "eps_violation_sigma": (of[0]["delta"] * (1 - of[0]["delta"]) / n) ** 0.5}
    rates = [value for name, value in figures.items() if name.startswith("eps_violation_rate_")]
    return figures | ({"eps_violation_rate": max(rates)} if rates else {})
