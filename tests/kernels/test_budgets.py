"""A pilot tells how many keys a promised error takes; the draw that follows keeps the promise, and reads what it says."""

from __future__ import annotations

import math

import pytest
import torch

from kernels import budgets
from kernels.budgets import PILOT, Promise
from kernels.sampling import EVERYTHING, Drawn
from kernels.sketch import Layout
from tests.kernels.attention_case import off
from tests.kernels.sampled_case import KV_HEADS, SampledCase

LOOSE = Promise(0.4, 0.1)


def same(case: SampledCase, promise: Promise = LOOSE) -> None:
    """From the same pilot the native draw is the reference's, key for key."""
    thresholds = case.reference().thresholds
    got, expected = case.within(promise, thresholds), case.reference_within(promise, thresholds)
    all_read = expected.thresholds == EVERYTHING
    assert torch.equal(got.thresholds == EVERYTHING, all_read)
    assert off(got.thresholds.masked_fill(all_read, 1), expected.thresholds.masked_fill(all_read, 1)) < 1e-4
    drawn = case.reference(got.thresholds, double=True)
    assert off(got.out, drawn.out) < 3e-6
    assert off(got.lse, drawn.lse) < 3e-6
    assert torch.equal(got.read, drawn.read + pilot(case, thresholds).read - certain(case))


def pilot(case: SampledCase, thresholds: torch.Tensor | None = None) -> Drawn:
    """What the pilot draws."""
    seed, case.seed = case.seed, case.seed ^ PILOT
    drawn = case.reference(thresholds, double=True)
    case.seed = seed
    return drawn


def certain(case: SampledCase) -> torch.Tensor:
    """[Hkv, 2]: certain rows, and keys of all heads."""
    rows = torch.stack([each.is_certain().sum(1) for each in case.sketched]).sum(0)
    return torch.stack([rows, rows * (case.q.shape[1] // KV_HEADS)], -1)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=["bf16", "fp32"])
@pytest.mark.parametrize("dim", [16, 64, 80, 256])
def test_every_head_size_equals_the_reference(isa: str, dim: int, dtype: torch.dtype) -> None:
    same(SampledCase(dim=dim, dtype=dtype, layout=Layout(1, 0, 0) if dim < 48 else Layout(2, 2, 0)))


@pytest.mark.parametrize("group", range(1, 9))
def test_every_group_of_query_heads_equals_the_reference(isa: str, group: int) -> None:
    same(SampledCase(group=group, certain=0.02))


@pytest.mark.parametrize("lengths", [(100,), (15, 16, 170), (1024, 1024, 5), (2500,)], ids=str)
def test_ragged_blocks_equal_the_reference(isa: str, lengths: tuple[int, ...]) -> None:
    same(SampledCase(lengths, certain=0.1, budget=30), Promise(0.3, 0.1))


@pytest.mark.parametrize("promise", [Promise(0.01, 0.1), Promise(0.1, 0.1, most=200), Promise(0.05, 0.1, everything=400)], ids=str)
def test_every_bound_equals_the_reference(isa: str, promise: Promise) -> None:
    same(SampledCase(rows=3), promise)


def test_capped_logits_equal_the_reference(isa: str) -> None:
    case = SampledCase()
    case.softcap = 1.5
    same(case)


# ---- what the pilot tells ----


def lowered(keys: list[tuple[float, float]], target: float, promise: Promise = LOOSE) -> float:
    """What the weight at the threshold is multiplied by; keys: (probability, what it adds to the variance, its probability aside)."""
    u, b = torch.tensor(keys, dtype=torch.float64).T
    return float(budgets._lower(u, b, torch.tensor(target, dtype=torch.float64), promise))


def test_a_pilot_that_is_good_enough_is_repeated() -> None:
    assert lowered([(0.25, 1.0), (0.5, 2.0)], 0.75 + 1.0) == 1


def test_the_variance_is_brought_down_to_the_target() -> None:
    assert lowered([(0.25, 1.0)], 0.1) == pytest.approx(0.35)
    assert lowered([(0.25, 1.0), (0.5, 2.0)], 0.05) == pytest.approx(0.3)
    assert lowered([(0.25, 1.0), (0.5, 2.0)], 0.55) == pytest.approx(0.6)  # 0.35 and 2 x 0.1


def test_a_variance_of_nothing_takes_all_the_pilots_keys_for_certain() -> None:
    assert lowered([(0.25, 1.0), (0.5, 2.0)], 0.0) == pytest.approx(0.25)


def test_a_head_that_would_need_too_many_keys_reads_all() -> None:
    keys = [(0.01, 1.0)] * 10  # ten that stand for a thousand; at t = 0.11 for ten times nine
    assert lowered(keys, 1.0, Promise(0.4, 0.1, everything=100)) == pytest.approx(0.11)
    assert lowered(keys, 1.0, Promise(0.4, 0.1, everything=90)) == 0


def test_no_more_keys_are_drawn_than_are_allowed() -> None:
    keys = [(0.01, 1.0)] * 10 + [(0.5, 0.0)] * 2
    assert lowered(keys, 1.0, Promise(0.4, 0.1, most=54)) == pytest.approx(0.2)  # ten times five, and two twice
    assert lowered(keys, 1.0, Promise(0.4, 0.1, most=3)) == 1


def test_the_tolerated_deviation_is_epsilon_by_the_quantile_of_a_normal_variable() -> None:
    assert Promise(0.2, 0.1).tolerance * math.sqrt(budgets.SAFETY) == pytest.approx(0.2 / 1.644854)
    assert Promise(0.2, 0.05).tolerance * math.sqrt(budgets.SAFETY) == pytest.approx(0.2 / 1.959964)


def test_the_error_is_what_the_pilot_was_asked_for(isa: str) -> None:
    """By the mean square over draws, which is the trace itself, not its bound."""
    case = wide(budget=80)
    exact = case.everything().out
    for epsilon in (0.15, 0.3):
        promise = Promise(epsilon, 0.1)
        found = ((case.within(promise).out - exact).norm(dim=-1) / exact.norm(dim=-1)).square().mean().sqrt().item()
        assert found == pytest.approx(promise.tolerance, rel=0.3)


# ---- what comes of it ----


def wide(budget: float = 60.0, rows: int = 200) -> SampledCase:
    """Many rows, values that don't cancel out."""
    case = SampledCase((1024, 800), rows=rows, budget=budget)
    for each in [*case.whole, *(each.block for each in case.sketched)]:
        each.v.add_(1)
    return case


@pytest.mark.parametrize("epsilon", [0.1, 0.2, 0.4])
def test_promises_are_broken_no_more_often_than_they_may(isa: str, epsilon: float) -> None:
    case = wide()
    exact = case.everything().out
    error = (case.within(Promise(epsilon, 0.1)).out - exact).norm(dim=-1) / exact.norm(dim=-1)
    assert (error > epsilon).double().mean() <= 0.1 + 2 * (0.09 / error.numel()) ** 0.5


def test_a_smaller_error_takes_more_keys(isa: str) -> None:
    case = wide(rows=20)
    read = [int(case.within(Promise(epsilon, 0.1)).read[..., 1].sum()) for epsilon in (0.4, 0.2, 0.1, 0.05)]
    assert read == sorted(read)
    assert read[0] < read[-1] / 3


def test_with_all_keys_for_dear_heads_it_is_exact(isa: str) -> None:
    case = SampledCase((600,), rows=2)
    got = case.within(Promise(0.001, 0.1, everything=1.0))
    assert (got.thresholds == EVERYTHING).all()
    assert off(got.out, case.everything().out) < 3e-6


def test_no_head_draws_fewer_keys_than_its_pilot(isa: str) -> None:
    case = SampledCase()
    assert off(case.within(Promise(100.0, 0.1)).thresholds, case.native().thresholds) < 1e-6


def test_the_draw_is_not_its_pilots(isa: str) -> None:
    case = SampledCase()
    got = case.within(Promise(100.0, 0.1))
    assert off(got.out, case.native().out.double()) < 1e-5
    assert not torch.equal(got.out.double(), pilot(case, got.thresholds).out)


# ---- what doesn't change a bit ----


def test_neighbours_change_no_bit_of_a_row(isa: str) -> None:
    case = SampledCase((1024, 1024, 300), rows=3, certain=0.01)
    together = case.within(LOOSE)
    for row in range(3):
        alone = SampledCase((1024, 1024, 300), rows=3, certain=0.01)
        alone.q, alone.positions = case.q[row : row + 1].contiguous(), case.positions[row : row + 1].contiguous()
        alone.budgets = case.budgets[:1].contiguous()
        got = alone.within(LOOSE)
        assert torch.equal(got.out[0], together.out[row])
        assert torch.equal(got.thresholds[0], together.thresholds[row])


def test_the_number_of_threads_changes_no_bit(isa: str) -> None:
    case, before = SampledCase((1024, 1024, 300), rows=2), torch.get_num_threads()
    outs = []
    try:
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            outs.append(case.within(LOOSE).out)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(outs[0], outs[1])
    assert torch.equal(outs[0], outs[2])
