"""Sampled attention draws what it says it draws, and equals the reference and, where all is read, plain attention."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from kernels import cpu, reference, sampling
from kernels.cpu import sampled
from kernels.sketch import Layout
from tests.kernels.attention_case import needs_library, off
from tests.kernels.sampled_case import KV_HEADS, SampledCase

ROOT = Path(__file__).parents[2]
DTYPES = pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=["bf16", "fp32"])


def same(case: SampledCase, near: float = 3e-6) -> None:
    """The native answer is the reference's, draw for draw."""
    got = case.native()
    expected = case.reference(got.thresholds, double=True)
    assert torch.equal(got.read, expected.read)
    assert off(got.out, expected.out) < near
    assert off(got.lse, expected.lse) < near


@DTYPES
@pytest.mark.parametrize("dim", [16, 64, 80, 96, 128, 256])
def test_every_head_size_equals_the_reference(isa: str, dim: int, dtype: torch.dtype) -> None:
    same(SampledCase(dim=dim, dtype=dtype, layout=Layout(1, 0, 0) if dim < 48 else Layout(2, 2, 0)))


@pytest.mark.parametrize("group", range(1, 9))
def test_every_group_of_query_heads_equals_the_reference(isa: str, group: int) -> None:
    same(SampledCase(group=group, certain=0.02))


@pytest.mark.parametrize("layout", [Layout(2, 0, 0), Layout(0, 3, 0), Layout(0, 0, 2), Layout(1, 1, 1), Layout(8, 0, 0)], ids=str)
def test_every_layout_equals_the_reference(isa: str, layout: Layout) -> None:
    same(SampledCase(layout=layout))


@pytest.mark.parametrize("lengths", [(1,), (15, 16, 17), (1024, 1024, 5), (2500,), (3, 1040)], ids=str)
def test_ragged_blocks_equal_the_reference(isa: str, lengths: tuple[int, ...]) -> None:
    same(SampledCase(lengths, certain=0.1))


def test_capped_logits_equal_the_reference(isa: str) -> None:
    case = SampledCase()
    case.softcap = 1.5
    same(case)


def test_thresholds_are_those_of_the_reference(isa: str) -> None:
    case = SampledCase((1024, 1024, 700), certain=0.05)
    assert (case.native().thresholds - case.reference().thresholds).abs().max() < 2e-3


@pytest.mark.parametrize("rows", [1, 3])
def test_with_a_budget_for_all_keys_it_is_plain_attention(isa: str, rows: int) -> None:
    case = SampledCase(rows=rows, budget=1e6)
    blocks = [*case.whole[:1], *(each.block for each in case.sketched), *case.whole[1:]]
    plain = reference.attend(case.q.double(), case.positions, [reference.Block(b.k, b.v, b.position, 0, rows) for b in blocks], case.scale)[
        0
    ]
    assert off(case.native().out, plain) < 3e-6


def test_certain_keys_are_read_once_and_never_weighed_up(isa: str) -> None:
    case = SampledCase((512,), certain=0.2, budget=1e-3)
    got, expected = case.native(), case.sketched[0].is_certain().sum(1)
    assert (got.read[..., 0] - expected).abs().max() <= 1  # a draw at such a budget is rare
    everything = case.everything()
    assert (got.lse < everything.lse).all()


def test_what_draws_nothing_leaves_what_is_read_whole(isa: str) -> None:
    case = SampledCase((512,), budget=1e-6)
    got = case.native()
    assert not got.read.any()
    whole = [reference.Block(b.k, b.v, b.position, 0, 2) for b in case.whole]
    assert off(got.out, reference.attend(case.q.double(), case.positions, whole, case.scale)[0]) < 3e-6


def test_with_nothing_to_read_the_answer_is_zero_with_no_mass(isa: str) -> None:
    case = SampledCase((512,), budget=1e-6)
    case.whole = []
    got = case.native()
    assert not got.out.any()
    assert torch.isneginf(got.lse).all()


def test_zero_queries_and_keys_are_no_trouble(isa: str) -> None:
    case = SampledCase((300,))
    case.q.zero_()
    case.sketched[0].block.k.zero_()
    got = case.native()
    assert torch.isfinite(got.out).all()
    assert torch.isfinite(got.lse).all()


# ---- how keys are drawn ----


def test_a_key_is_drawn_as_often_as_its_probability_says() -> None:
    case = SampledCase((256,), rows=1, group=1)
    guessed = sampling.guess(case.q.view(1, KV_HEADS, 1, -1), case.sketched[0].sketch, case.projection)[..., :256] * case.scale
    limits = case.reference().thresholds.view(1, KV_HEADS, 1, 1)
    probability = sampling.probability(limits - guessed)[0, :, 0]
    trials = 4000
    rows = torch.arange(trials)
    drawn = sampling.margins(5, rows, KV_HEADS, torch.arange(4, 260))[:, :, None] > limits - guessed
    often = drawn[:, :, 0].double().mean(0)
    spread = (probability * (1 - probability) / trials).sqrt()
    assert ((often - probability).abs() <= 4.5 * spread + 1e-9).all()
    assert abs(often.sum() - probability.sum()) < 5 * spread.square().sum().sqrt()


def test_the_probability_is_about_that_of_the_softmax_weight() -> None:
    lacking = torch.linspace(-3, 30, 2001, dtype=torch.float64)
    ratio = sampling.probability(lacking) / torch.exp(-lacking.clamp_min(0))
    assert ratio.min() > 0.999999
    assert ratio.max() < 1.0615


def test_weights_of_the_drawn_count_all_keys_on_the_average() -> None:
    """The sum of 1 / probability over the drawn is the number of keys, in expectation."""
    case = SampledCase((512,), rows=1, group=1, budget=100)
    case.whole = []
    guessed = sampling.guess(case.q.view(1, KV_HEADS, 1, -1), case.sketched[0].sketch, case.projection)[..., :512] * case.scale
    limits = case.reference().thresholds.view(1, KV_HEADS, 1, 1)
    drawn = sampling.margins(9, torch.arange(3000), KV_HEADS, torch.arange(4, 516))[:, :, None] > limits - guessed
    counts = torch.where(drawn, 1 / sampling.probability(limits - guessed), 0.0).sum(-1).double()
    assert ((counts.mean(0) - 512).abs() < 4.5 * counts.std(0) / 3000**0.5).all()


def test_the_mean_over_seeds_is_exact_attention() -> None:
    case = SampledCase((700,), rows=1, group=2, budget=80)
    expected, errors, masses = case.everything(), [], []
    for seed in range(300):
        case.seed = seed
        got = case.native()
        masses.append((got.lse.double() - expected.lse).exp())
        errors.append(got.out.double() - expected.out)
    mass = torch.stack(masses)
    assert ((mass.mean(0) - 1).abs() < 4.5 * mass.std(0) / 300**0.5).all()
    each = torch.stack(errors)
    assert (each.mean(0).norm(dim=-1) < 0.25 * each.norm(dim=-1).mean(0)).all()  # a ratio of two sums: little bias is left


def test_a_larger_budget_reads_more_and_errs_less() -> None:
    errors, read = [], []
    for budget in (20, 80, 320):
        case = SampledCase(rows=8, budget=budget)
        got = case.native()
        errors.append((got.out - case.everything().out).norm().item())
        read.append(got.read[..., 1].double().mean().item())
    assert errors[0] > errors[1] > errors[2]
    assert [count / 3 for count in read] == pytest.approx([20, 80, 320], rel=0.2)


def test_query_heads_of_a_group_want_mostly_the_same_rows() -> None:
    case = SampledCase(group=4, budget=200)
    case.q = case.q[:, ::4].repeat_interleave(4, 1) + 0.1 * torch.randn(case.q.shape, generator=case.draw)
    rows, used = case.native().read.double().mean((0, 1)).tolist()
    assert rows < 0.5 * used


def test_every_row_draws_anew(isa: str) -> None:
    case = SampledCase(rows=2)
    case.q[1] = case.q[0]
    got = case.native()
    assert not torch.equal(got.out[0], got.out[1])


# ---- what doesn't change a bit ----


def test_neighbours_change_no_bit_of_a_row(isa: str) -> None:
    case = SampledCase((1024, 1024, 300), rows=3, certain=0.01)
    together = case.native()
    for row in range(3):
        alone = SampledCase((1024, 1024, 300), rows=3, certain=0.01)
        alone.q, alone.positions = case.q[row : row + 1].contiguous(), case.positions[row : row + 1].contiguous()
        alone.budgets = case.budgets[:1].contiguous()
        assert torch.equal(alone.native().out[0], together.out[row])


def test_the_number_of_threads_changes_no_bit(isa: str) -> None:
    case, before = SampledCase((1024, 1024, 300), rows=2), torch.get_num_threads()
    outs = []
    try:
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            outs.append(case.native().out)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(outs[0], outs[1])
    assert torch.equal(outs[0], outs[2])


@needs_library
def test_without_the_library_the_answer_is_the_same_within_rounding(tmp_path: Path) -> None:
    code = "import sys, torch; from tests.kernels.sampled_case import SampledCase; torch.save(SampledCase().native().out, sys.argv[1])"
    environment = {**os.environ, "LONGSHELF_NATIVE": "0"}
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "out.pt")], check=True, env=environment, cwd=ROOT)
    assert off(torch.load(tmp_path / "out.pt"), SampledCase().native().out.double()) < 1e-4


@pytest.mark.parametrize(("lengths", "budget"), [((9000,), 40.0), ((1024, 5000, 700), 3000.0), ((6000,), 1e6)], ids=str)
def test_many_keys_of_many_chunks_equal_the_reference(isa: str, lengths: tuple[int, ...], budget: float) -> None:
    same(SampledCase(lengths, certain=0.01, budget=budget))


@needs_library
def test_stages_add_what_they_take_and_change_nothing() -> None:
    case = SampledCase((5000,))
    whole, sketched = cpu.BlockList(case.whole), sampled.SketchedList(case.sketched)
    seconds = torch.zeros(len(sampled.STAGES), dtype=torch.float64)
    by = case.projection, case.budgets, case.seed, case.scale, case.softcap
    timed = sampled.attend(case.q, case.positions, whole, sketched, *by, seconds)
    assert bool((seconds > 0).all())
    before = seconds.clone()
    assert torch.equal(sampled.attend(case.q, case.positions, whole, sketched, *by).out, timed.out)
    assert torch.equal(seconds, before)
