"""What sampling does to a model: layers far above the others are found, and the length from which it is faster."""

from __future__ import annotations

import pytest
import torch

from engine.evaluation import bearing
from engine.evaluation.bearing import BEHIND, LEAST, crossing, far_above, measure
from engine.reading.memory import Chain, InMemory, Watcher, compute_segments
from engine.shelf import Shelf

WINDOW = 100_000


def test_layers_far_above_the_others_are_to_be_read_whole() -> None:
    assert far_above({0: 0.3, 1: 0.01, 2: 0.012, 3: 0.06, 4: 0.008}) == (0, 3)  # the median is .012


def test_where_none_is_far_above_none_is() -> None:
    assert far_above({0: 0.15, 1: 0.08, 2: 0.09}) == ()
    assert far_above({0: 0.02, 1: 0.001, 2: 0.001}) == ()  # far above, but it moves next to nothing
    assert far_above({}) == ()


def line(base: float, a_token: float) -> dict[int, float]:
    return {tokens: base + a_token * tokens for tokens in (1024, 2048, 3072)}


def times(exact: dict[int, float], sampled: dict[int, float]) -> dict[int, tuple[float, float]]:
    return {tokens: (exact[tokens], sampled[tokens]) for tokens in exact}


def test_sampling_begins_where_the_lines_cross_audits_included() -> None:
    # 31/32 of 1 µs a token, less 0.25 µs: 0.71875 µs a token make up for 1 ms from 1,391.3 tokens on.
    assert crossing(times(line(0, 1e-6), line(1e-3, 0.25e-6)), WINDOW) == 1536
    assert crossing(times(line(0, 1e-6), line(1e-2, 0.25e-6)), WINDOW) == 14080


def test_sampling_begins_at_a_few_times_what_is_read_at_the_earliest() -> None:
    assert crossing(times(line(1e-3, 1e-6), line(0, 0.25e-6)), WINDOW) == LEAST


def test_where_sampling_is_never_faster_it_begins_with_the_window() -> None:
    assert crossing(times(line(0, 1e-6), line(0, 2e-6)), WINDOW) == WINDOW
    assert crossing(times(line(0, 1e-6), line(1.0, 0.25e-6)), WINDOW) == WINDOW
    assert crossing({1024: (1.0, 0.5)}, WINDOW) == WINDOW


def test_each_layer_of_a_model_is_measured_alone(tiny_shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    model, _ = tiny_shelf.model()
    ids = torch.randint(3, 259, (2100 + BEHIND,), generator=torch.Generator().manual_seed(0)).tolist()
    preamble = InMemory(compute_segments(model, Chain(), model.card.preamble.ids, Watcher())[0])
    behind = Chain((preamble,), "", preamble.tokens)  # type: ignore[arg-type]
    chain = [preamble, *map(InMemory, compute_segments(model, behind, ids[:2100], Watcher()))]

    def measured(keys: int) -> bearing.Bearing:
        monkeypatch.setattr(bearing, "KEYS", keys)
        return tiny_shelf.model_thread.run(lambda: measure(model, chain, ids[2100:], lambda: None))

    few, all_keys = measured(16), measured(1_000_000)
    assert list(few.found["shift_by_layer"]) == ["0", "1"]
    assert list(few.found["exact_ms"]) == list(few.found["sampled_ms"]) == ["1024", "2048", "2100"]
    assert all(0 < shift < 1 for shift in [*few.found["shift_by_layer"].values(), few.found["shift_of_all"]])
    assert all_keys.found["shift_of_all"] < min(1e-3, few.found["shift_of_all"])
    assert all_keys.dense == ()
