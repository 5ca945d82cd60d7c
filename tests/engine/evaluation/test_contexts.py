"""Timing modes behind contexts: as many tokens as asked, of shapes with random weights, wherever they lie."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from engine.errors import LongshelfError
from engine.evaluation import contexts
from engine.evaluation.contexts import bench_modes, of_shape, sampled_decoding
from engine.evaluation.report import Report
from engine.evaluation.shapes import SHAPES, random_tensors, shape, weights_bytes, words_as_ids
from engine.model.weights import build
from engine.shelf import Shelf
from tests.engine.on_device import KIND


def bench(device: str, kv: str = "auto", context: int = 600, steps: int = 4) -> Report:
    subject = of_shape("tiny", device, [context], context // 3, kv)
    return bench_modes(subject, [context], ("exact", "sampled"), lambda said: None, 1, steps)


def rows(report: Report) -> dict[str, dict[str, Any]]:
    return {row["mode"]: row for row in report.rows}


# ---- shapes ----


@pytest.mark.parametrize(("name", "gigabytes"), [("llama-3.1-8b", 16.1), ("llama-3.2-1b", 2.5), ("smollm2-135m", 0.27)])
def test_a_shape_takes_the_bytes_of_the_model_it_is_named_after(name: str, gigabytes: float) -> None:
    assert weights_bytes(shape(name)) / 1e9 == pytest.approx(gigabytes, rel=0.02)


def test_random_weights_have_the_shapes_that_the_decoder_wants() -> None:
    config = SHAPES["tiny"]
    made = build(random_tensors(config), config, torch.bfloat16)
    assert made.layers[0].qkv.weight(torch.bfloat16).float().std().item() == pytest.approx(config.hidden**-0.5, rel=0.05)
    assert not torch.equal(made.layers[0].out.weight(torch.bfloat16), made.layers[1].out.weight(torch.bfloat16))


def test_an_unknown_shape_is_refused_with_those_there_are() -> None:
    with pytest.raises(LongshelfError) as error:
        shape("gpt-7")
    assert "llama-3.1-8b" in error.value.hint


def test_words_become_ids_that_recur_as_they_do() -> None:
    ids = words_as_ids("The lamp, the lamp.", 300)
    assert len(ids) == 6
    assert ids[1] == ids[4]
    assert max(ids) < 300


# ---- what is timed ----


def test_every_mode_is_timed_behind_as_many_tokens_as_asked() -> None:
    report = bench("cpu")
    assert {"exact_ms_1k", "sampled_ms_1k", "sampled_vs_exact_1k", "prefill_tokens_per_s"} <= report.figures.keys()
    assert rows(report)["exact"]["bytes_fraction"] == 1
    assert 0 < rows(report)["sampled"]["error"] < 0.5
    assert (report.settings["device"], report.settings["model"]) == ("cpu", "tiny")


def test_sampled_decoding_forgets_its_tokens_so_that_it_can_be_timed_again(tiny_shelf: Shelf) -> None:
    model = tiny_shelf.model()[0]

    def twice() -> None:
        run = sampled_decoding(model, 500)
        run()
        run()

    tiny_shelf.model_thread.run(twice)


@pytest.mark.parametrize(("kv", "sampled"), [("ram", True), ("device", False)])
def test_on_a_device_only_what_lies_in_memory_is_sampled(kv: str, sampled: bool) -> None:
    found = rows(bench(KIND, kv, context=120, steps=1))
    assert found["exact"]["bytes_fraction"] == 1
    assert (found["sampled"]["bytes_fraction"] != 1) is sampled


def test_what_memory_does_not_hold_is_refused_with_the_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contexts, "memory_here", lambda: (20_000_000_000, 32_000_000_000))
    with pytest.raises(LongshelfError, match=r"98304 tokens takes 3\d\.\d GB of memory \(13\.\d GB of KV\); 20\.0 GB are free") as error:
        of_shape("llama-3.1-8b", "cpu", [98304], 2048)
    assert error.value.kind == "not_enough_memory"
