"""`bench attention`: what it compares gives the same attention, on keys that are what they are called, and its rows add up."""

from __future__ import annotations

from functools import cache

import pytest
import torch

from engine.attention.sequence import Rows, Tail
from engine.attention.sequence import Sequence as Read
from engine.errors import LongshelfError
from engine.evaluation import attention
from engine.evaluation.attention import bench_attention
from engine.evaluation.contexts import QUESTION
from engine.evaluation.layers import OneLayer, RealLayer, pinned
from engine.evaluation.report import Report
from engine.evaluation.yardsticks import Torch, readings
from engine.shelf import Shelf
from kernels import cpu
from kernels.cpu.sampled import STAGES
from tests.kernels.attention_case import needs_library

CONTEXT = 4096


@cache
def layer() -> OneLayer:
    return pinned("tiny", CONTEXT, 2)


@cache
def report() -> Report:
    return bench_attention("tiny", [CONTEXT], None, lambda said: None, quick=True)


# ---- what is timed ----


def test_pinned_logits_have_the_spread_that_they_are_said_to_have() -> None:
    one = layer()
    keys = one.packed()[0].float()
    q = one.q.view(len(one.q), one.config.kv_heads, -1, one.config.head_dim)
    logits = torch.einsum("nhgd,htd->nhgt", q, keys) * one.config.scale
    assert logits.std(-1).mean().item() == pytest.approx(2, rel=0.15)
    assert logits.mean().item() < -1  # queries look away from the cone


def test_pinned_numbers_are_the_same_every_time() -> None:
    again, other = pinned("tiny", CONTEXT, 2), pinned("tiny", CONTEXT, 2, seed=1)
    assert torch.equal(again.packed(), layer().packed())
    assert torch.equal(again.q, layer().q)
    assert not torch.equal(other.q, again.q)


def test_a_chain_is_as_long_as_asked_and_cut_as_stored_segments_are() -> None:
    sizes = [kv.tokens for kv in layer().chain]
    assert sum(sizes) == CONTEXT
    assert sizes[1:-1] == [1024] * (len(sizes) - 2)


def test_a_real_layer_stands_behind_any_context_turned_to_where_it_stands(tiny_shelf: Shelf) -> None:
    model = tiny_shelf.model()[0]
    real = tiny_shelf.model_thread.run(lambda: RealLayer(model, 2, 1500))
    near, far = real.behind(1500), real.behind(9000)
    assert sum(kv.tokens for kv in far.chain) == 9000
    assert far.q.shape == (QUESTION + 2, far.config.heads, far.config.head_dim)
    here, there = (torch.einsum("nhd,mhd->hnm", each.k.float(), each.k.float()) for each in (near, far))
    assert (here - there).norm() / here.norm() < 0.01  # how keys stand to one another doesn't depend on the place
    assert not torch.equal(near.k, far.k)


@needs_library
def test_all_packings_of_torch_give_what_ours_gives() -> None:
    one = layer()
    sequence = Read(one.chain, Tail(one.config, one.k.dtype, 1))
    blocks = cpu.BlockList([stretch.block(0) for stretch in Rows([(sequence, 1)]).stretches()[:-1]])
    ours = cpu.attend(one.q[:1].contiguous(), torch.tensor([CONTEXT - 1], dtype=torch.int32), blocks, one.config.scale)[0]
    for way, attend in Torch(one.packed()).ways(one.q[0]).items():
        off = (attend().float() - ours).norm() / ours.norm()
        assert off < (0.03 if "bf16" in way else 1e-3), way


def test_there_are_several_ways_of_reading() -> None:
    assert len(readings(torch.zeros(2, 64, 16, dtype=torch.bfloat16))) >= 2


# ---- what is said ----


def test_figures_compare_within_one_run() -> None:
    figures = report().figures
    assert figures["sampled_speedup_4k"] == pytest.approx(figures["dense_ms_4k"] / figures["sampled_ms_4k"])
    assert figures["dense_bandwidth_fraction_4k"] == pytest.approx(figures["dense_gbps_4k"] / figures["read_gbps_4k"])
    assert figures["dense_vs_torch"] == figures["dense_vs_torch_4k"]
    assert 0 < figures["sampled_output_error"] < 0.5


@needs_library
def test_every_stage_has_its_time_and_its_bytes() -> None:
    stages = {row["way"]: row for row in report().rows if row["what"] == "stage"}
    assert [*stages] == [*STAGES, "rest"]
    assert all(stages[stage]["bytes"] > 0 for stage in STAGES)
    sampled = report().median("bytes", what="sampled")
    read = sum(stages[stage]["bytes"] for stage in ("whole", "threshold", "gather")) + 4 * 2 * (CONTEXT - 4)  # a plane of 4 bytes a key
    assert read == pytest.approx(sampled, rel=0.1)


def test_every_repeat_leaves_a_row() -> None:
    mine = [row for row in report().rows if row["what"] == "sampled"]
    assert [row["repeat"] for row in mine] == [0, 1, 2]
    assert all(0 <= row["error"] < 1 for row in mine)


# ---- what is refused ----


def test_what_memory_does_not_hold_is_refused_with_the_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "memory_here", lambda: (2_000_000_000, 32_000_000_000))
    with pytest.raises(LongshelfError, match=r"131072 tokens takes 3\.\d GB; 2\.0 GB are free") as error:
        bench_attention("llama-3.1-8b", [131072], None, lambda said: None)
    assert error.value.kind == "not_enough_memory"


def test_short_contexts_are_refused() -> None:
    with pytest.raises(LongshelfError, match="1024 tokens or more"):
        bench_attention("tiny", [100], None, lambda said: None)
