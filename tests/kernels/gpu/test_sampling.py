"""Keys are drawn on the GPU as the reference draws them."""

from __future__ import annotations

import pytest

pytest.importorskip("triton")

import torch

from kernels import gpu, sampling
from kernels.gpu.sampling import draw, thresholds
from tests.kernels.gpu.device import there
from tests.kernels.sampled_case import KV_HEADS, SampledCase

GROUPED = 2


class Guessed:
    """Guesses for keys [n, Hq, T] of one block at position 4, and what the reference makes of them."""

    def __init__(self, tokens: int = 300, rows: int = 1, certain: float = 0.0, budget: float = 40.0) -> None:
        self.case = SampledCase((tokens,), dim=16, group=GROUPED, rows=rows, certain=certain, budget=budget)
        self.block, self.tokens = self.case.sketched[0], tokens
        grouped = self.case.q.view(rows, KV_HEADS, GROUPED, -1)
        self.guesses = sampling.guess(grouped, self.block.sketch, self.case.projection)[..., :tokens].flatten(1, 2).contiguous()
        self.certain = None if self.block.certain is None else there(self.block.certain)

    def thresholds(self) -> torch.Tensor:
        return thresholds(there(self.guesses), there(self.case.budgets), self.certain, self.case.scale, KV_HEADS)

    def draw(self, limits: torch.Tensor, seed: int = 77) -> torch.Tensor:
        how = seed, there(self.case.positions), self.case.scale, KV_HEADS, self.block.block.position
        return draw(there(self.guesses), limits, self.certain, *how).cpu()

    def expected(self, limits: torch.Tensor, seed: int = 77) -> torch.Tensor:
        lacking = limits[..., None] - self.guesses * self.case.scale
        at = torch.arange(self.block.block.position, self.block.block.position + self.tokens)
        margins = sampling.margins(seed, self.case.positions, KV_HEADS, at).repeat_interleave(GROUPED, 1)
        weights = torch.where(margins > lacking, -sampling.probability(lacking).log(), -torch.inf)
        return torch.where(self.block.is_certain().repeat_interleave(GROUPED, 0), 0.0, weights)


@pytest.mark.parametrize("certain", [0.0, 0.1])
@pytest.mark.parametrize("tokens", [1, 40, 2500])
def test_thresholds_are_those_of_the_reference(tokens: int, certain: float) -> None:
    case = Guessed(tokens, certain=certain)
    apart = (case.thresholds().cpu() - case.case.reference().thresholds.view(1, -1)).abs()
    assert apart.max() < 1e-4


def test_with_a_budget_for_all_keys_every_one_is_certain() -> None:
    case = Guessed(budget=1e6)
    assert (case.thresholds() == sampling.EVERYTHING).all()
    assert not case.draw(case.thresholds()).any()


@pytest.mark.parametrize("certain", [0.0, 0.1])
@pytest.mark.parametrize("seed", [77, 2**32 - 5])
def test_draws_and_weights_are_those_of_the_reference(certain: float, seed: int) -> None:
    case = Guessed(rows=2, certain=certain)
    limits = case.case.reference().thresholds
    got, expected = case.draw(there(limits.view(2, -1)), seed), case.expected(limits.view(2, -1), seed)
    assert torch.equal(torch.isneginf(got), torch.isneginf(expected))
    assert (got - expected)[~torch.isneginf(expected)].abs().max() < 1e-5


def test_choosing_takes_about_the_budget() -> None:
    case = Guessed(2500, rows=1, budget=100)
    chosen = gpu.choose(there(case.guesses), there(case.case.budgets), None, 3, there(case.case.positions), case.case.scale, KV_HEADS, 4)
    assert (chosen > -torch.inf).sum(-1).float().mean().item() == pytest.approx(100, rel=0.3)


def test_chosen_keys_are_attended_to_as_the_reference_does() -> None:
    case = Guessed(certain=0.05)
    sampled = case.case
    limits = there(sampled.reference().thresholds.view(1, -1))
    k, v = there(case.block.block.k), there(case.block.block.v)
    every = torch.arange(case.tokens, dtype=torch.int32).expand(KV_HEADS, -1)
    out, _ = gpu.attend_gathered(there(sampled.q), k, v, there(every), there(case.draw(limits)), sampled.scale)
    sampled.whole = []
    assert (out.cpu() - sampled.reference(limits.cpu()).out).abs().max() < 1e-3
