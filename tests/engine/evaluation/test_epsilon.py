"""How promises about errors are counted."""

from __future__ import annotations

import pytest
import torch

from engine.evaluation import fidelity
from engine.evaluation.epsilon import Kept, promises
from engine.evaluation.forced import Stage
from engine.retrieval import projections
from engine.shelf import Shelf
from tests.engine.books import chapter


def test_the_rate_is_that_of_errors_above_epsilon() -> None:
    kept = Kept(0.2, 0.1, torch.tensor([[[0.1, 0.3, 0.2], [0.25, 0.0, 0.19]]]), 0.2, 0.1)
    assert (kept.n, kept.rate) == (6, pytest.approx(2 / 6))
    assert kept.sigma == pytest.approx((0.09 / 6) ** 0.5)


def test_every_layer_head_and_token_of_an_answer_is_counted_for_each_epsilon(tiny_shelf: Shelf) -> None:
    model = tiny_shelf.model()[0]
    encode, config = model.tokenizer.encode_ids, model.config

    def made() -> list[Kept]:
        stage = Stage(model, encode(chapter(1) + chapter(2))[:400])
        return promises(stage, encode("Who is it?"), (0.1, 0.9), 5, projections.of(model, lambda: None))

    found = tiny_shelf.model_thread.run(made)
    assert [kept.epsilon for kept in found] == [0.1, 0.9]
    assert all(kept.errors.shape == (5, config.layers, config.heads) for kept in found)
    assert all(0 < kept.keys_read < 1.5 for kept in found)
    assert found[0].bytes_read >= found[1].bytes_read > 0


def test_the_figure_is_the_worst_rate_over_all_documents() -> None:
    rows = [
        {"epsilon": epsilon, "delta": 0.1, "n": n, "eps_violation_rate": rate, "bytes_read": 0.2}
        for epsilon, n, rate in ((0.1, 100, 0.1), (0.1, 300, 0.02), (0.2, 400, 0.03))
    ]
    found = fidelity._promised(rows)
    assert found["eps_violation_rate_10"] == pytest.approx(0.04)
    assert found["eps_violation_rate"] == pytest.approx(0.04)
    assert (found["eps_violation_n"], found["eps_violation_sigma"]) == (400, pytest.approx(0.015))
    assert fidelity._promised([]) == {}
