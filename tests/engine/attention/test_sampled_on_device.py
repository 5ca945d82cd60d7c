"""Sampling where some of a chain lies on a device: only what lies in memory is drawn from, the rest is read whole."""

from __future__ import annotations

import pytest
import torch

from engine.attention.estimated import Estimated
from engine.attention.exact import Exact
from engine.attention.hashed import Hashed
from engine.attention.sampled import Sampled
from engine.attention.sequence import Rows
from engine.retrieval.lsh import directions, make
from tests.engine.attention.test_exact import CONFIG, DIM, LAYERS, Step, segment, sequence
from tests.engine.attention.test_placed import NEAR, StepThere, placed
from tests.engine.attention.test_sampled import PROJECTION, sketches

CHAIN = [segment(4, 1), segment(208, 2), segment(90, 3)]
for each in CHAIN:
    each.kv[:, 1] += 2  # values that don't cancel out, as a model's don't
ROOMS = pytest.mark.parametrize("room", [0, 100], ids=["in memory", "partly on the device"])
"""100: the first and the last of 4, 208 and 90 tokens."""


def sampled(keys: float, room: int = 0, audit_every: int = 0) -> Sampled:
    return Sampled(placed(room), [PROJECTION] * LAYERS, sketches(*CHAIN[1:]), keys, 5, audit_every=audit_every)


def hashed(bits: int, tables: int, room: int = 0, one_part: bool = True) -> Hashed:
    made_with = directions(DIM, bits, tables)
    parts = [CHAIN[1:]] if one_part else [[CHAIN[1]], [CHAIN[2]]]
    indexes = [[make(part, made_with, layer) for layer in range(LAYERS)] for part in parts]
    return Hashed(placed(room), made_with, list(zip(parts, indexes, strict=True)), audit_every=0)


def errors(attention: Estimated, steps: int, count: int = 1) -> list[float]:
    """Of each call, relative to what exact reading gives."""
    ours, theirs, exact, found = sequence(*CHAIN), sequence(*CHAIN), Exact(CONFIG), []
    for seed in range(steps):
        got = StepThere(count, seed).read(attention, Rows([(ours, count)]), (0, 1))  # type: ignore[arg-type]
        expected = Step(count, seed).read(exact, Rows([(theirs, count)]), (0, 1))
        found.append(float((got - expected).norm() / expected.norm()))
    assert torch.equal(ours.tail.kv, theirs.tail.kv)
    return found


@ROOMS
def test_with_keys_for_all_it_is_exact(room: int) -> None:
    attention = sampled(1e6, room)
    assert max(errors(attention, 2, 2)) < NEAR
    assert attention.keys_read_fraction == 1


@ROOMS
def test_with_tables_that_all_keys_meet_in_it_is_exact(room: int) -> None:
    attention = hashed(1, 200, room, one_part=False)
    assert max(errors(attention, 3, 2)) < NEAR
    assert attention.keys_read_fraction == 1


@pytest.mark.parametrize("attention", [sampled(40), hashed(3, 12)], ids=["sampled", "hashed"])
def test_a_sample_is_near_and_reads_less(attention: Estimated) -> None:
    off = errors(attention, 4)
    assert 0 < sum(off) / len(off) < 0.3
    assert 0 < attention.keys_read_fraction < attention.rows_read_fraction < 0.9


@pytest.mark.parametrize("attention", [sampled(1e-6, 100), hashed(11, 2, 100, one_part=False)], ids=["sampled", "hashed"])
def test_what_is_held_on_the_device_is_read_whole(attention: Estimated) -> None:
    errors(attention, 2)
    assert attention.rows_read_fraction == pytest.approx((2 * 94 + 3) / (2 * 302 + 3), abs=0.01)


def test_a_part_of_which_some_lies_on_the_device_is_read_whole() -> None:
    attention = hashed(11, 2, 100)
    assert max(errors(attention, 2)) < NEAR
    assert attention.keys_read_fraction == 1


@pytest.mark.parametrize("attention", [sampled(1e-6, 1000), hashed(11, 2, 1000)], ids=["sampled", "hashed"])
def test_with_all_of_it_on_the_device_nothing_is_sampled(attention: Estimated) -> None:
    assert max(errors(attention, 2)) < NEAR
    assert attention.keys_read_fraction == 1


def test_every_so_many_tokens_one_is_exact_and_tells_the_error() -> None:
    attention = sampled(40, audit_every=3)
    off = errors(attention, 4)
    assert [each < NEAR for each in off] == [True, False, False, True]
    assert attention.error_measured is not None
    assert 0 < attention.error_measured < 0.3


@pytest.mark.parametrize("attention", [sampled(1e-6), hashed(11, 2)], ids=["sampled", "hashed"])
def test_many_rows_are_read_exactly(attention: Estimated) -> None:
    assert max(errors(attention, 1, 20)) < NEAR
