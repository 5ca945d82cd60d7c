"""How an answer was read, said from its figures."""

from __future__ import annotations

import pytest

from engine.library.figures import how_read, share

SAMPLED = {"mode": "sampled", "mode_asked": "sampled", "rows_read_fraction": 0.123, "error_measured": 0.0617}


def test_a_promised_error_is_told_beside_the_measured_one() -> None:
    assert how_read(SAMPLED | {"epsilon": 0.2}).endswith("measured error 6.2 %, at most 20 % promised for nine in ten")


def test_a_sampled_answer_says_what_was_read_and_the_error() -> None:
    assert how_read(SAMPLED) == "read 12 % of the memory for each word, measured error 6.2 %"


def test_an_exact_answer_says_nothing() -> None:
    assert how_read({"mode": "exact", "mode_asked": "exact", "error_measured": 0.0}) == ""
    assert how_read({}) == ""


@pytest.mark.parametrize(
    ("because", "said"),
    [
        ("short", "read exactly, since the part of the text that it needed is short"),
        ("joined", "read exactly, since parts that were joined without reading them together can't be sampled"),
        ("on_device", "read exactly, since the graphics card holds all of it and reads it fast"),
        (None, "read exactly"),
    ],
)
def test_an_answer_that_could_not_be_sampled_says_why(because: str | None, said: str) -> None:
    assert how_read({"mode": "exact", "mode_asked": "sampled", "exact_because": because, "error_measured": 0.0}) == said


def test_without_a_measurement_no_error_is_claimed() -> None:
    assert how_read(SAMPLED | {"error_measured": None}) == "read exactly"


@pytest.mark.parametrize(
    ("fraction", "said"), [(0, "0 %"), (0.0004, "under 0.1 %"), (0.0617, "6.2 %"), (0.0996, "10 %"), (0.123, "12 %"), (1.0, "100 %")]
)
def test_shares_are_never_nothing_of_something(fraction: float, said: str) -> None:
    assert share(fraction) == said
