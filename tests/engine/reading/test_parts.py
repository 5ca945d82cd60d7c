"""Parts cover a document without gap or overlap, and start where the document itself does."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import LongshelfError
from engine.reading.parts import Part, cut, part_limit


@st.composite
def documents(draw: st.DrawFn) -> tuple[list[int], list[tuple[int, int]], int]:
    """(token starts, breaks, length) of a document; some characters are split over several tokens, some have none."""
    steps = draw(st.lists(st.integers(0, 5), min_size=1, max_size=300))
    starts, at = [], 0
    for step in steps:
        starts.append(at)
        at += step
    length = max(at, 1)
    offsets = draw(st.lists(st.integers(0, length), max_size=40, unique=True).map(sorted))
    return starts, [(offset, draw(st.integers(1, 3))) for offset in offsets], length


@given(documents(), st.integers(1, 120))
@settings(max_examples=150, deadline=None)
def test_parts_follow_one_another_without_gap_or_overlap(document: tuple[list[int], list[tuple[int, int]], int], limit: int) -> None:
    starts, breaks, length = document
    parts = cut(starts, breaks, length, limit)
    assert (parts[0].start, parts[0].first_token) == (0, 0)
    for before, after in pairwise(parts):
        assert before.end == after.start
        assert before.first_token + before.tokens == after.first_token
    assert (parts[-1].end, parts[-1].first_token + parts[-1].tokens) == (length, len(starts))
    assert [part.ordinal for part in parts] == list(range(len(parts)))


@given(documents(), st.integers(1, 120))
@settings(max_examples=150, deadline=None)
def test_no_part_is_empty_or_larger_than_the_limit(document: tuple[list[int], list[tuple[int, int]], int], limit: int) -> None:
    assert all(1 <= part.tokens <= limit for part in cut(*document, limit))


@given(documents(), st.integers(1, 120))
@settings(max_examples=150, deadline=None)
def test_a_part_starts_with_its_first_token(document: tuple[list[int], list[tuple[int, int]], int], limit: int) -> None:
    starts = document[0]
    assert all(part.start == starts[part.first_token] for part in cut(*document, limit)[1:])


def parts_of(tokens: int, breaks: Sequence[tuple[int, int]], limit: int = 100) -> list[Part]:
    """Parts of a document whose tokens are ten characters long."""
    return cut(range(0, 10 * tokens, 10), breaks, 10 * tokens, limit)


def sizes(parts: list[Part]) -> list[int]:
    return [part.tokens for part in parts]


def test_a_document_that_fits_is_one_part() -> None:
    assert parts_of(100, [(500, 3)]) == [Part(0, 0, 1000, 0, 100)]


def test_a_document_without_tokens_has_no_parts() -> None:
    assert cut([], [(0, 3)], 5, 100) == []


def test_without_breaks_parts_are_as_large_as_allowed() -> None:
    assert sizes(parts_of(250, [])) == [100, 100, 50]


def test_a_chapter_that_starts_late_enough_starts_a_part() -> None:
    assert sizes(parts_of(150, [(410, 3)])) == [41, 100, 9]


def test_a_chapter_that_starts_too_early_does_not() -> None:
    assert sizes(parts_of(150, [(390, 3)])) == [100, 50]


def test_the_last_of_several_chapters_is_taken() -> None:
    assert sizes(parts_of(150, [(500, 3), (700, 3), (1010, 3)])) == [70, 80]


def test_a_chapter_is_preferred_to_a_later_section_and_a_section_to_a_later_paragraph() -> None:
    assert sizes(parts_of(120, [(500, 3), (800, 2), (950, 1)])) == [50, 70]
    assert sizes(parts_of(120, [(800, 2), (950, 1)])) == [80, 40]
    assert sizes(parts_of(120, [(950, 1)])) == [95, 25]


@pytest.mark.parametrize(("strength", "least"), [(3, 40), (2, 60), (1, 80)])
def test_a_weaker_break_needs_a_fuller_part(strength: int, least: int) -> None:
    assert sizes(parts_of(190, [(10 * least, strength)]))[0] == least
    assert sizes(parts_of(190, [(10 * (least - 1), strength)]))[0] == 100


def test_a_break_exactly_at_the_limit_is_taken() -> None:
    assert sizes(parts_of(150, [(1000, 1)])) == [100, 50]


def test_a_break_inside_a_token_takes_effect_at_the_next() -> None:
    assert parts_of(150, [(705, 3)])[1] == Part(1, 710, 1500, 71, 79)


def test_breaks_at_the_very_ends_cut_nothing() -> None:
    assert sizes(parts_of(150, [(0, 3), (1500, 3)])) == [100, 50]


# ---- how large a part may be ----


def test_the_default_size_is_the_models() -> None:
    assert part_limit(None, 2048, 8192) == 2048


def test_a_small_window_makes_the_default_smaller() -> None:
    assert part_limit(None, 2048, 2048) == 2048 - 512


@pytest.mark.parametrize("wanted", [64, 1000, 8192 - 512])
def test_a_size_that_fits_is_taken(wanted: int) -> None:
    assert part_limit(wanted, 2048, 8192) == wanted


@pytest.mark.parametrize("wanted", [-5, 1, 63, 8192 - 511, 100_000])
def test_a_size_that_does_not_fit_is_refused_with_the_ones_that_do(wanted: int) -> None:
    with pytest.raises(LongshelfError, match=f"{wanted} tokens.*holds 8192") as refused:
        part_limit(wanted, 2048, 8192)
    assert refused.value.kind == "usage"
    assert "between 64 and 7680" in refused.value.hint
