"""How an answer's tokens are decoded: exactly, or sampled from a part of what exact reading takes.

Sampled: the question is read exactly, which also tells the compact set, the positions that it attended to most. They are read
at every token, and of all others a sample. How many keys an estimate takes for a given error doesn't grow with the chain, so
their number is fixed; a budget, a share of the bytes of exact reading, sketches included, may allow fewer. Hash tables draw what
meets the question in two of them instead, be it many or few. With an epsilon each head draws as many as keep its error below that share
of what it is to give, but for a share DELTA of all: see `kernels.budgets`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import torch

from engine.answering.citations import middle_layers
from engine.answering.selectors import LSH, SKETCH, Chosen, named
from engine.attention.estimated import AUDIT_EVERY
from engine.attention.sampled import LOCAL, Sampled, Sketched, certain_bits
from engine.errors import LongshelfError
from engine.library.figures import JOINED, ON_DEVICE, SHORT
from engine.model.config import ModelConfig
from kernels.budgets import Promise

if TYPE_CHECKING:
    from engine.attention.estimated import Estimated
    from engine.attention.exact import Exact
    from engine.attention.sequence import KV, Attention
    from engine.model.loaded import LoadedModel
    from engine.shelf import Shelf
    from engine.store.segment import Segment
    from kernels.sketch import Projection

MODES = ("exact", "sampled")

KEYS = 256
"""Keys that a query head draws, on the average."""

PILOT_KEYS = 64
"""Keys that a query head draws to tell how many it needs, where an error is promised; it needs no fewer."""

DELTA = 0.1
"""The promise may be broken for so many of the layers, heads and tokens."""

DEAR = 0.5
"""Share of a chain's keys beyond which a head reads all rather than draw so many."""

COMPACT = 256
"""Positions of the compact set, for each layer and KV head."""

LEAST = 2048
"""Tokens that could be sampled below which everything is read exactly, where calibration hasn't measured from how many sampling pays."""

QUESTION = 1
"""The group of the prompt's rows whose attention tells the compact set: see `generate`."""


@dataclass(frozen=True)
class Mode:
    """name: one of MODES. selector: what draws the keys of sampled answers, see `selectors`. epsilon: the error promised, if
    one is. Raises LongshelfError("usage") for what is none, a budget or an epsilon that is no share, and what doesn't go together."""

    name: str = "exact"
    budget: float = 1.0
    selector: str = SKETCH
    epsilon: float | None = None

    def __post_init__(self) -> None:
        if self.name not in MODES:
            raise LongshelfError("usage", f"There is no mode {self.name!r}.", f"There are {', '.join(MODES)}.")
        if not 0 < self.budget <= 1:
            raise LongshelfError("usage", f"--budget is {self.budget:g}; it is a share, above 0 and at most 1.")
        if self.name != "sampled" and self.selector != SKETCH:
            raise LongshelfError("usage", f"--selector is for sampled answers; the mode is {self.name}.", "Add --mode sampled.")
        if self.tables and self.budget < 1:
            raise LongshelfError(
                "usage",
                "--budget says how many keys sketches draw; hash tables draw what meets the question in two of them.",
                f"Leave --budget out; {LSH}:11,150, say, draws fewer keys than {LSH}.",
            )

        self._check_promise()

    def _check_promise(self) -> None:
        if self.epsilon is None:
            return
        if not 0 < self.epsilon < 1:
            raise LongshelfError("usage", f"--epsilon is {self.epsilon:g}; it is a share, above 0 and below 1.")
        if self.name != "sampled":
            message = f"--epsilon promises an error of sampled answers; the mode is {self.name}."
            raise LongshelfError("usage", message, "Add --mode sampled, or leave --epsilon out.")
        if self.tables:
            message = "--epsilon says how many keys sketches draw; hash tables draw what meets the question in two of them."
            raise LongshelfError("usage", message, f"Leave --selector {LSH} out.")

    @property
    def promised(self) -> dict[str, float | None]:
        """What an answer says was promised."""
        return {"epsilon": self.epsilon, "delta": None if self.epsilon is None else DELTA}

    @property
    def tables(self) -> Chosen | None:
        """The hash tables that draw, where they do."""
        chosen = named(self.selector)
        return chosen if chosen.name == LSH else None

    def watched_layers(self, config: ModelConfig) -> Sequence[int]:
        """The layers in which the attention of the prompt's rows is wanted."""
        return range(config.layers) if self.name == "sampled" else middle_layers(config.layers)


EXACT = Mode()


class Decoding:
    """What reads an answer's tokens behind one chain. exact: reads the prompt, watching `mode.watched_layers`.

    preparing(bytes) is called before what takes seconds and happens once: for a model, then without a number, or for a part, whose hash
    tables take so many bytes. exact_because: why an answer that was to be sampled is read exactly, SHORT, JOINED or ON_DEVICE; None where
    it is sampled or has no second token.
    """

    def __init__(
        self,
        model: LoadedModel,
        shelf: Shelf,
        chain: Sequence[KV],
        exact: Exact,
        mode: Mode,
        seed: int,
        before_layer: Callable[[], None],
        preparing: Callable[[int | None], None],
    ) -> None:
        self.sampled: Estimated | None = None
        self.exact_because: str | None = None
        self._model, self._shelf, self._chain = model, shelf, chain
        self._exact, self._mode, self._seed, self._before_layer = exact, mode, seed, before_layer
        self._preparing = preparing

    def start(self) -> Attention:
        """To be called when the prompt is read. Of the chain those segments are sampled that stand as they were stored and lie in memory
        alone."""
        if self._mode.name == "exact":
            return self._exact
        from engine.model import calibration
        from engine.store.segment import Segment

        measured = calibration.load(self._model.installed)
        least = measured.sampled_from or LEAST
        stored = [kv for kv in self._chain[1:] if isinstance(kv, Segment)]
        segments = [segment for segment in stored if self._exact.lies_here(segment)]
        if sum(segment.tokens for segment in segments) < least:
            on_device = sum(segment.tokens for segment in stored) >= least
            short = sum(kv.tokens for kv in self._chain[1:]) < least
            self.exact_because = SHORT if short else ON_DEVICE if on_device else JOINED
            return self._exact
        self.sampled = (self._hashed if self._mode.tables else self._sketched)(segments, measured.dense_layers)
        return self.sampled

    def _sketched(self, segments: Sequence[Segment], dense: Collection[int]) -> Estimated:
        from engine.retrieval import kept_sketches, projections

        if not projections.are_kept(self._model.installed):
            self._preparing(None)
        made = projections.of(self._model, self._before_layer)
        known = {id(segment): kept_sketches.of(self._model, self._shelf, segment, made) for segment in segments}
        return sampled_behind(self._exact, self._chain, made.layers, known, self._mode.budget, self._seed, dense, self._mode.epsilon)

    def _hashed(self, segments: Sequence[Segment], dense: Collection[int]) -> Estimated:
        from engine.attention.hashed import Hashed
        from engine.retrieval import kept_tables, lsh

        assert self._mode.tables is not None
        with_ = lsh.directions(self._model.config.head_dim, self._mode.tables.bits, self._mode.tables.tables)
        stored = {id(segment): segment for segment in segments}
        runs = [[stored[id(kv)] for kv in run] for there, run in groupby(self._chain[1:], lambda kv: id(kv) in stored) if there]
        parts = [part for run in runs for part in lsh.runs(run)]
        of_parts = [kept_tables.of(self._model, self._shelf, part, with_, self._before_layer, self._preparing) for part in parts]
        certain = as_bits(compact_set(self._exact, self._chain, COMPACT), self._chain, stored)
        return Hashed(self._exact, with_, list(zip(parts, of_parts, strict=True)), certain, dense)

    @property
    def bytes_read(self) -> int:
        """KV bytes that prompt and answer read."""
        return self._exact.bytes_read if self.sampled is None else self.sampled.bytes_read


def sampled_behind(
    exact: Exact,
    chain: Sequence[KV],
    projections: Sequence[Projection],
    sketches: Mapping[int, Sketched],
    budget: float,
    seed: int,
    dense: Collection[int] = (),
    epsilon: float | None = None,
    audit_every: int = AUDIT_EVERY,
) -> Sampled:
    """What samples a chain whose question `exact` has read, watching all layers. sketches: of its segments, by id; dense: layers that
    are read whole."""
    tokens = sum(kv.tokens for kv in chain)
    afforded = Afforded.within(budget, exact.config, projections[0].layout.bytes_per_key, tokens)
    certain = as_bits(compact_set(exact, chain, afforded.compact), chain, sketches)
    keys, promise = KEYS if epsilon is None else PILOT_KEYS, None
    if epsilon is not None and budget >= 1:
        promise = Promise(epsilon, DELTA, everything=DEAR * tokens)
    elif epsilon is not None:
        promise = Promise(epsilon, DELTA, most=max(1.0, afforded.keys - keys))
    drawn = keys if budget >= 1 else min(keys, afforded.keys)
    return Sampled(exact, projections, sketches, drawn, seed, certain, dense, audit_every, promise)


@dataclass(frozen=True)
class Afforded:
    """What a budget is spent on beside an index: a compact set, and keys that each query head draws, on the average."""

    compact: int
    keys: float

    @staticmethod
    def within(budget: float, config: ModelConfig, index_bytes: float, tokens: int, most: int = COMPACT) -> Afforded:
        """Where about a share `budget` of the bytes is read, index_bytes of each key included. At least one key; half of the rows at most
        are the compact set's, and no more than `most` of them.

        Heads of a group want partly the same rows: so many heads take about 1 + 0.5 (heads - 1) times the rows of one (measured).
        """
        rows = max(0.0, (budget - index_bytes / (2 * config.head_dim * 2)) * tokens - LOCAL)
        compact = min(most, int(rows / 2))
        return Afforded(compact, max(1.0, (rows - compact) / (1 + 0.5 * (config.group - 1))))


def compact_set(exact: Exact, chain: Sequence[KV], size: int) -> torch.Tensor:
    """[layers, Hkv, positions] bool: the `size` positions of a chain that the question attended to most, and its last ones."""
    config = exact.config
    length = sum(kv.tokens for kv in chain)
    chosen = torch.zeros(config.layers, config.kv_heads, length, dtype=torch.bool)
    for layer in range(config.layers):
        if size and not config.window_of(layer):
            most = exact.scores(layer, QUESTION)[:, :length].topk(min(size, length), dim=1)
            chosen[layer].scatter_(1, most.indices, True)
    chosen[..., max(0, length - LOCAL) :] = True
    return chosen


def as_bits(chosen: torch.Tensor, chain: Sequence[KV], among: Collection[int]) -> dict[int, torch.Tensor]:
    """Of [layers, Hkv, positions] bool, for each segment by id: [layers, Hkv, groups of 16] int16."""
    bits, position = {}, 0
    for kv in chain:
        if id(kv) in among:
            bits[id(kv)] = certain_bits(chosen[..., position : position + kv.tokens]).contiguous()
        position += kv.tokens
    return bits
