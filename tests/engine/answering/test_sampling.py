"""Tokens are chosen as the settings say: greedily, or from exactly the distribution that the filters leave."""

from __future__ import annotations

import math

import pytest
import torch

from engine.answering.sampling import Sampler, Sampling
from engine.errors import LongshelfError

P = [0.5, 0.25, 0.15, 0.1]
LOGITS = torch.tensor(P).log()


def distribution(**settings: float) -> list[float]:
    return Sampler(Sampling(**{"temperature": 1.0, **settings})).distribution(LOGITS).tolist()


def normalised(*weights: float) -> list[float]:
    return pytest.approx([weight / sum(weights) for weight in weights], abs=1e-6)


# ---- greedy ----


def test_greedy_takes_the_likeliest() -> None:
    assert Sampler(Sampling()).choose(torch.tensor([0.0, 3.0, -1.0])) == 1


def test_greedy_ties_go_to_the_lowest_id() -> None:
    logits = torch.zeros(50_000)
    logits[[40_123, 777, 49_999, 12_345]] = 2.5
    assert Sampler(Sampling()).choose(logits) == 777


def test_greedy_ignores_the_filters_and_the_seed() -> None:
    assert {Sampler(Sampling(top_k=1, top_p=0.1, min_p=0.9, seed=seed)).choose(LOGITS) for seed in range(5)} == {0}


# ---- the distribution ----


def test_without_filters_the_distribution_is_the_softmax() -> None:
    assert distribution() == normalised(*P)


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_temperature_divides_the_logits(temperature: float) -> None:
    assert distribution(temperature=temperature) == normalised(*(p ** (1 / temperature) for p in P))


@pytest.mark.parametrize("temperature", [1e-4, 1e-310], ids=str)
def test_a_very_low_temperature_is_nearly_greedy(temperature: float) -> None:
    assert distribution(temperature=temperature) == normalised(1, 0, 0, 0)


def test_top_k_leaves_the_k_likeliest() -> None:
    assert distribution(top_k=2) == normalised(0.5, 0.25, 0, 0)


def test_a_top_k_beyond_the_vocabulary_leaves_all() -> None:
    assert distribution(top_k=100) == normalised(*P)


@pytest.mark.parametrize(("top_p", "left"), [(0.49, 1), (0.51, 2), (0.74, 2), (0.76, 3), (0.999, 4), (0.0, 1)])
def test_top_p_leaves_the_fewest_that_reach_it(top_p: float, left: int) -> None:
    assert distribution(top_p=top_p) == normalised(*P[:left], *[0.0] * (4 - left))


@pytest.mark.parametrize(("min_p", "left"), [(0.1, 4), (0.25, 3), (0.45, 2), (0.6, 1), (1.0, 1)])
def test_min_p_leaves_what_is_that_fraction_as_likely_as_the_likeliest(min_p: float, left: int) -> None:
    assert distribution(min_p=min_p) == normalised(*P[:left], *[0.0] * (4 - left))


def test_filters_apply_one_after_the_other() -> None:
    """Top-k 3 leaves .556 .278 .167; of these top-p .8 leaves two; min-p .4 of the likeliest leaves both."""
    assert distribution(top_k=3, top_p=0.8, min_p=0.4) == normalised(0.5, 0.25, 0, 0)


def test_the_order_of_the_ids_does_not_matter() -> None:
    shuffled = LOGITS[[3, 0, 2, 1]]
    assert Sampler(Sampling(temperature=1.0, top_p=0.7)).distribution(shuffled).tolist() == normalised(0, 0.5, 0, 0.25)


# ---- drawing ----


def draw(seed: int, count: int, **settings: float) -> list[int]:
    sampler = Sampler(Sampling(**{"temperature": 1.0, "seed": seed, **settings}))
    return [sampler.choose(LOGITS) for _ in range(count)]


def test_draws_follow_the_distribution() -> None:
    """Chi-square of 4,000 draws over 4 tokens: below 16.27 in 999 of 1000 cases, and the seed is fixed."""
    drawn = draw(1, 4000)
    chi = sum((drawn.count(token) - 4000 * p) ** 2 / (4000 * p) for token, p in enumerate(P))
    assert chi < 16.27


def test_what_is_filtered_out_is_never_drawn() -> None:
    assert set(draw(1, 500, top_k=2)) == {0, 1}


def test_the_same_seed_draws_the_same() -> None:
    assert draw(7, 50) == draw(7, 50)


def test_another_seed_draws_something_else() -> None:
    assert draw(7, 50) != draw(8, 50)


# ---- limits ----


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("temperature", -0.1),
        ("temperature", 11.0),
        ("temperature", math.nan),
        ("top_p", 1.5),
        ("min_p", -1.0),
        ("top_k", -3),
        ("seed", 2**64),
        ("seed", -(2**64)),
    ],
)
def test_a_setting_out_of_range_is_wrong_usage(setting: str, value: float) -> None:
    with pytest.raises(LongshelfError, match=f"--{setting.replace('_', '-')} is") as refused:
        Sampling(**{setting: value})
    assert refused.value.kind == "usage"


@pytest.mark.parametrize("seed", [0, 2**63, 2**64 - 1, -(2**63)])
def test_every_seed_in_range_can_be_used(seed: int) -> None:
    assert draw(seed, 1)[0] in range(4)
