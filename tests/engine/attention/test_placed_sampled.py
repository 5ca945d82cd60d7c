"""Sampling where some of a chain lies on a device: only what lies in memory is sampled, the rest is read whole."""

from __future__ import annotations

import pytest
import torch

from engine.attention.exact import Exact
from engine.attention.placed_sampled import PlacedSampled
from engine.attention.sequence import Rows
from tests.engine.attention.test_exact import CONFIG, LAYERS, Step, sequence
from tests.engine.attention.test_placed import NEAR, StepThere, placed
from tests.engine.attention.test_sampled import CHAIN, PROJECTION, sketches


def sampling(keys: float, room: int = 0, audit_every: int = 0) -> PlacedSampled:
    return PlacedSampled(placed(room), [PROJECTION] * LAYERS, sketches(*CHAIN[1:]), keys, 5, audit_every=audit_every)


def errors(attention: PlacedSampled, steps: int, count: int = 1) -> list[float]:
    """Of each call, relative to what exact reading gives."""
    ours, theirs, exact, found = sequence(*CHAIN), sequence(*CHAIN), Exact(CONFIG), []
    for seed in range(steps):
        got = StepThere(count, seed).read(attention, Rows([(ours, count)]), (0, 1))
        expected = Step(count, seed).read(exact, Rows([(theirs, count)]), (0, 1))
        found.append(float((got - expected).norm() / expected.norm()))
    assert torch.equal(ours.tail.kv, theirs.tail.kv)
    return found


@pytest.mark.parametrize("room", [0, 100], ids=["in memory", "partly on the device"])
def test_with_keys_for_all_it_is_exact(room: int) -> None:
    attention = sampling(1e6, room)
    assert max(errors(attention, 2, 2)) < NEAR
    assert attention.keys_read_fraction == 1


def test_a_sample_is_near_and_reads_less() -> None:
    attention = sampling(40)
    off = errors(attention, 4)
    assert 0 < sum(off) / len(off) < 0.3
    assert 0 < attention.keys_read_fraction < attention.rows_read_fraction < 0.8


def test_what_is_held_on_the_device_is_read_whole() -> None:
    attention = sampling(1e-6, room=100)  # the first and the last of 4, 200 and 90 tokens
    errors(attention, 2)
    assert attention.rows_read_fraction == pytest.approx((2 * 94 + 3) / (2 * 294 + 3), abs=0.01)


def test_with_all_of_it_on_the_device_nothing_is_sampled() -> None:
    attention = sampling(1e-6, room=1000)
    assert max(errors(attention, 2)) < NEAR
    assert attention.keys_read_fraction == 1


def test_every_so_many_tokens_one_is_exact_and_tells_the_error() -> None:
    attention = sampling(40, audit_every=3)
    off = errors(attention, 4)
    assert [each < NEAR for each in off] == [True, False, False, True]
    assert attention.error_measured is not None
    assert 0 < attention.error_measured < 0.3


def test_many_rows_are_read_exactly() -> None:
    assert max(errors(sampling(1e-6), 1, 20)) < NEAR
