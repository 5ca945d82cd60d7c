"""From documents and a question to the parts it is read from, best first: full text proposes, likelihood measures, both are fused."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.answering.choosing import fuse, likelihood
from engine.answering.prompt import Prompts
from engine.answering.sources import Asked, Chains, Source
from engine.model import calibration
from engine.model.loaded import LoadedModel

if TYPE_CHECKING:
    from engine.shelf import Shelf

BUDGET_S = 1.5
"""Seconds that measuring likelihood may take; a document whose parts need less has all of them measured."""

LEAST_CANDIDATES = 8
"""Parts that are measured however slow the model is."""


@dataclass(frozen=True)
class Routed:
    """sources: all parts, best first. by_text: those that share words with the question, best first by full text alone.

    explained: part id → how much of the question's improbability goes behind that part, of those measured.
    tokens, bytes: what was computed and what KV was read for it; seconds: all of it.
    """

    sources: tuple[Source, ...]
    by_text: tuple[Source, ...]
    explained: dict[int, float]
    tokens: int
    bytes: int
    seconds: float


def route(
    shelf: Shelf,
    model: LoadedModel,
    prompts: Prompts,
    chains: Chains,
    documents: Asked,
    question: str,
    before_layer: Callable[[], None],
) -> Routed:
    """The parts of these documents in the order in which they suit the question. On the model thread."""
    started = time.perf_counter()
    sources = {source.part.id: source for source in documents.sources}
    ranked = shelf.library.search.rank_parts(question, [row.id for row in documents.rows], limit=len(sources), namespace=model.namespace)
    order = [part_id for part_id, _ in ranked if part_id in sources]
    ranks = {part_id: rank for rank, part_id in enumerate(order)}
    proposed = order + [part_id for part_id in sources if part_id not in ranks]
    candidates = proposed[: affordable(prompts, question, calibration.load(model.installed).row_s)]
    chains.will_need([sources[part_id] for part_id in candidates])
    opened = [chains.of(sources[part_id]).segments for part_id in candidates]
    measured = likelihood(model, prompts, chains.preamble.segments, opened, question, before_layer)
    scores = fuse(measured.gains, [ranks.get(part_id) for part_id in candidates])
    best = sorted(range(len(candidates)), key=lambda i: -scores[i])
    return Routed(
        sources=tuple(sources[part_id] for part_id in [*(candidates[i] for i in best), *proposed[len(candidates) :]]),
        by_text=tuple(sources[part_id] for part_id in order),
        explained={part_id: measured.explained(gain) for part_id, gain in zip(candidates, measured.gains, strict=True)},
        tokens=measured.tokens,
        bytes=measured.bytes,
        seconds=time.perf_counter() - started,
    )


def affordable(prompts: Prompts, question: str, row_s: float) -> int:
    """How many parts can be measured within the budget, by what a row takes this model; the same on every day."""
    rows = sum(map(len, prompts.question_probe(question)))
    return max(LEAST_CANDIDATES, int(BUDGET_S / (row_s * rows)))
