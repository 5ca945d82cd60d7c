"""How numbers, times and states are said."""

from __future__ import annotations

import pytest

from app import words
from tests.app.fake_engine import book, citation

pytestmark = pytest.mark.usefixtures("english")


@pytest.mark.parametrize(
    ("count", "said"),
    [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (93_400_000, "93 MB"), (999_700_000, "1.0 GB"), (3_870_000_000, "3.9 GB")],
)
def test_sizes(count: int, said: str) -> None:
    assert words.size(count) == said


@pytest.mark.parametrize(
    ("fraction", "said"),
    [(0, "0 %"), (0.0004, "under 0.1 %"), (0.0617, "6.2 %"), (0.0996, "10 %"), (0.123, "12 %"), (1.0, "100 %")],
)
def test_shares(fraction: float, said: str) -> None:
    assert words.share(fraction) == said.replace(" %", "\N{NO-BREAK SPACE}%")


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.2, "1 s"), (42, "42 s"), (60, "1 min"), (185, "3 min"), (5340, "89 min"), (5400, "1 h 30 min"), (90_000, "25 h")],
)
def test_times(seconds: float, said: str) -> None:
    assert words.duration(seconds) == said


@pytest.mark.parametrize(("value", "said"), [(0, "0.0 %"), (42.71, "42.7 %"), (99.97, "99.9 %"), (100, "100.0 %")])
def test_a_percentage_is_a_hundred_only_at_the_end(value: float, said: str) -> None:
    assert words.percent(value) == said


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (book(state="ready", reads_poorly={"language": "Korean"}), "Ready · the model reads Korean poorly · 168,000 tokens · 3.9 GB"),
        (book(state="ready", reads_poorly={"language": None}), "Ready · the model reads it poorly · 168,000 tokens · 3.9 GB"),
        (book(state="queued", bytes=0), "Queued · 168,000 tokens · about 3.9 GB · 9 min"),
        (book(state="queued", tokens=None, estimate_bytes=None), "Queued"),
        (book(state="reading", place="engine/cli.py"), "Reading the text · engine/cli.py"),
        (book(state="remembering", percent=42.7, place="Chapter 12", seconds_left=190), "Remembering 42.7 % · Chapter 12 · 3 min left"),
        (book(state="remembering", percent=None), "Remembering 0.0 %"),
        (book(state="paused", percent=12, reason="cancelled"), "Paused · 12.0 % · reading was cancelled"),
        (book(state="paused", percent=0, tokens_done=0, reason="the disk is full"), "Paused · the disk is full"),
        (book(), "Ready · 168,000 tokens · 3.9 GB"),
        (book(source_missing=True), "Ready · the source file is gone, its text is kept"),
        (book(state="no_text", reason="looks scanned"), "No text · looks scanned"),
        (book(state="failed", reason="binary"), "Failed · not a text"),
        (book(state="skipped", reason="too_large"), "Skipped · too large"),
        (book(state="damaged", reason="segment 3"), "Damaged · segment 3"),
        (book(state="invented later"), "invented later"),
    ],
)
def test_states(row: words.Row, said: str) -> None:
    assert words.state(row) == said


def test_the_place_of_a_citation() -> None:
    assert words.place(citation(section="Chapter 3", page=12, page_label="xii", line=1180)) == "Chapter 3 · page xii · line 1,180"


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"first": "Chapter 1", "last": "Chapter 1"}, "Chapter 1"),
        ({"first": "Chapter 1", "last": "Chapter 3"}, "Chapter 1 – Chapter 3"),
        ({"first": None, "last": None}, ""),
        ({"first": "12", "last": None}, "12"),
    ],
)
def test_where_a_part_lies(part: words.Row, said: str) -> None:
    assert words.stretch(part) == said


@pytest.mark.parametrize(
    ("row", "askable"),
    [(book(), True), (book(state="remembering", parts_ready=1), True), (book(state="remembering", parts_ready=0), False)],
)
def test_a_document_can_be_asked_from_its_first_part(row: words.Row, askable: bool) -> None:
    assert words.is_askable(row) is askable
