"""What sampling does to a model: which layers don't bear it, and from which length it is faster. A part of calibration.

A context of our own texts is read once. A run of tokens behind it is read exactly, as a question is, and the tokens that follow it
again and again: exactly, then with one layer sampled and all others exact. How far that moves what the model says next, 1 - Σ min(p, q)
on the average, is the layer's shift. Time is that of attention alone within steps of the decoder, since all else is the same, behind
as many of the context's segments as make several lengths; a line through them for each way tells where they cross.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from engine.answering.modes import COMPACT, EXACT, KEYS, as_bits, compact_set
from engine.attention.estimated import AUDIT_EVERY
from engine.attention.exact import Exact
from engine.attention.sampled import Sampled
from engine.attention.sequence import KV, Attention, Rows, Tail
from engine.attention.sequence import Sequence as Read
from engine.model.loaded import LoadedModel
from engine.retrieval import projections, sketches
from kernels.sketch import Projection

CONTEXT = 3072
"""Tokens of the context: three segments, and so three lengths that are timed."""
QUESTION, FORCED = 32, 64
"""Tokens behind it: those that tell the compact set, and those at which what the model says next is compared."""
BEHIND = QUESTION + FORCED

FAR, MORE = 2.0, 0.02
"""A layer is read whole whose shift is so many times the median of all layers, and so much above it: a part of each is the rounding that
any change of a layer brings about, the same for all (with the default model .011 to .021 a layer, .026 for all of them together)."""

STEPS = 9
"""Timed for each way and length; the median counts."""
GRID = 256
LEAST = 2 * (KEYS + COMPACT)
"""Of fewer tokens a sample would be most of them."""


@dataclass(frozen=True)
class Bearing:
    """dense: the layers that are to be read whole; sampled_from: tokens from which sampling is faster, the model's window where it is
    not within that; found: the figures behind them."""

    dense: tuple[int, ...]
    sampled_from: int
    found: dict[str, Any]


def measure(model: LoadedModel, chain: Sequence[KV], following: Sequence[int], before_layer: Callable[[], None]) -> Bearing:
    """chain: the preamble, then the segments of a context; following: ids of the BEHIND tokens behind it."""
    layers = [layer for layer in range(model.config.layers) if not model.config.window_of(layer)]
    made = projections.of(model, before_layer).layers
    behind = _Behind(model, chain, following, made, before_layer)
    said = behind.said(Exact(model.config))

    def shift(whole: Collection[int]) -> float:
        return round(1 - float(torch.minimum(said, behind.said(behind.sampled(whole))).sum(-1).mean()), 5)

    shifts = {layer: shift({*layers} - {layer}) for layer in layers}
    dense = far_above(shifts)
    times = {}
    for count in range(2, len(chain) + 1):
        shorter = _Behind(model, chain[:count], following, made, before_layer)
        times[shorter.sampled_tokens] = shorter.attention_s(dense)
    found = {
        "shift_by_layer": {str(layer): value for layer, value in shifts.items()},
        "shift_of_all": shift(()),
        "shift": shift(dense),
        "exact_ms": {str(tokens): round(1e3 * exact, 3) for tokens, (exact, _) in times.items()},
        "sampled_ms": {str(tokens): round(1e3 * sampled, 3) for tokens, (_, sampled) in times.items()},
    }
    return Bearing(dense, crossing(times, model.config.window), found)


def far_above(shifts: Mapping[int, float]) -> tuple[int, ...]:
    """The layers whose shift is far above the others'."""
    usual = statistics.median(shifts.values()) if shifts else 0.0
    return tuple(layer for layer, shift in shifts.items() if shift > max(usual + MORE, FAR * usual))


def crossing(times: Mapping[int, tuple[float, float]], window: int) -> int:
    """Tokens from which a sampled step is faster, `window` at most; times: tokens → seconds of (an exact, a sampled) step.

    One step of AUDIT_EVERY is an audit, which takes both. Past what was measured the line through it holds.
    """
    if len(times) < 2:
        return window
    tokens = np.array(list(times), float)
    exact, sampled = np.array(list(times.values()), float).T
    gain_a_token, gain = np.polyfit(tokens, exact - (sampled + exact / AUDIT_EVERY), 1)
    if gain_a_token <= 0:  # the longer, the worse, which only noise can say
        return window
    return min(window, int(np.ceil(max(LEAST, -gain / gain_a_token) / GRID)) * GRID)


class _Clocked:
    """Reads as `inner` does, and adds up the time that takes."""

    def __init__(self, inner: Attention) -> None:
        self._inner, self.seconds = inner, 0.0

    def attend(self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rows: Rows) -> torch.Tensor:
        """See `engine.attention.sequence.Attention`."""
        started = time.perf_counter()
        out = self._inner.attend(layer, q, k, v, rows)
        self.seconds += time.perf_counter() - started
        return out


class _Behind:
    """A question that was read exactly behind a chain, and the tokens that follow it."""

    def __init__(
        self, model: LoadedModel, chain: Sequence[KV], following: Sequence[int], made: list[Projection], before_layer: Callable[[], None]
    ) -> None:
        self._model, self._before_layer, self._projections = model, before_layer, made
        self._forced = torch.tensor(following[QUESTION:])
        self._sequence = Read(chain, Tail(model.config, model.decoder.dtype, BEHIND))
        self._length = sum(kv.tokens for kv in chain)
        self.sampled_tokens = self._length - chain[0].tokens
        self._sketches = {id(kv): sketches.Sketch(list(sketches.make(kv, made, before_layer))) for kv in chain[1:]}
        exact = Exact(model.config, range(model.config.layers))
        exact.watch((self._length, self._length))  # its rows are of the group QUESTION of `modes`
        self._read(torch.tensor(following[:QUESTION]), exact, None)
        self._certain = as_bits(compact_set(exact, chain, COMPACT), chain, self._sketches)

    def sampled(self, dense: Collection[int]) -> Sampled:
        """Without audits."""
        exact = Exact(self._model.config)
        return Sampled(exact, self._projections, self._sketches, KEYS, 1, self._certain, dense, audit_every=0)

    def said(self, attention: Attention) -> torch.Tensor:
        """[FORCED, V]: the probabilities behind each of the tokens that follow."""
        logits = self._read(self._forced, attention, slice(None))
        self._sequence.tail.cut(QUESTION)
        return torch.softmax(logits, -1)

    def attention_s(self, dense: Collection[int]) -> tuple[float, float]:
        """Seconds of attention in (an exact, a sampled) step."""
        exact = Exact(self._model.config, EXACT.watched_layers(self._model.config))
        exact.watch((self._length,))
        ways: tuple[Attention, Attention] = exact, self.sampled(dense)
        took: tuple[list[float], list[float]] = [], []
        for token in self._forced[: STEPS + 1]:
            for way, seconds in zip(ways, took, strict=True):
                clocked = _Clocked(way)
                self._read(token[None], clocked, slice(-1, None))
                self._sequence.tail.cut(self._sequence.tail.length - 1)
                seconds.append(clocked.seconds)
        first, second = (statistics.median(seconds[1:]) for seconds in took)  # lists of blocks are made in the first
        return first, second

    def _read(self, ids: torch.Tensor, attention: Attention, logits_of: slice | None) -> torch.Tensor:
        rows = Rows([(self._sequence, len(ids))])
        logits = self._model.decoder.forward(ids, rows, attention, logits_of, self._before_layer)
        rows.advance()
        return logits
