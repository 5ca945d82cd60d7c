"""Draws are the same everywhere, and fair."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from engine.evaluation.tasks.draws import Draws


def test_a_stream_is_the_same_on_every_machine() -> None:
    draws = Draws("needle", "en", 1, 7)
    assert [draws.below(1000) for _ in range(12)] == PINNED


def test_streams_with_other_labels_differ() -> None:
    streams = [Draws("a", 12), Draws("a1", 2), Draws("a", "1", "2"), Draws("a", 12).branch(1)]
    assert len({tuple(stream.below(1 << 60) for _ in range(2)) for stream in streams}) == 4


def test_a_branch_takes_no_notice_of_what_was_drawn() -> None:
    drawn, fresh = Draws("a"), Draws("a")
    drawn.below(10)
    assert drawn.branch("b").below(1 << 60) == fresh.branch("b").below(1 << 60)


def test_every_number_is_as_likely() -> None:
    draws = Draws("fair")
    counts = Counter(draws.below(6) for _ in range(6000))
    assert set(counts) == set(range(6))
    assert all(abs(count - 1000) < 150 for count in counts.values())  # five standard deviations


def test_every_order_is_as_likely() -> None:
    draws = Draws("orders")
    counts = Counter("".join(draws.shuffled("abc")) for _ in range(6000))
    assert len(counts) == 6
    assert all(abs(count - 1000) < 150 for count in counts.values())


@given(st.integers(-50, 50), st.integers(0, 40), st.integers(0, 2**40))
def test_distinct_numbers_lie_within_their_bounds(least: int, more: int, seed: int) -> None:
    drawn = Draws("distinct", seed).distinct(least, least + more, more + 1)
    assert sorted(drawn) == list(range(least, least + more + 1))


@given(st.integers(1, 2**64), st.integers(0, 2**40))
def test_a_number_lies_below_its_bound(bound: int, seed: int) -> None:
    assert 0 <= Draws(seed).below(bound) < bound


PINNED = [350, 114, 71, 172, 866, 588, 879, 801, 728, 62, 562, 441]
