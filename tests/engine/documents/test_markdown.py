"""Markdown headings: which lines are headings, what their words are."""

from __future__ import annotations

import pytest

from engine.documents import markdown


def labels(text: str) -> list[str]:
    return [heading.label for heading in markdown.headings(text)]


def test_hash_and_underlined_headings_have_their_levels() -> None:
    found = markdown.headings("Title\n=====\n\n## Two ##\n\ntext\n\nSub\n---\n")
    assert [(heading.level, heading.label) for heading in found] == [(1, "Title"), (2, "Two"), (2, "Sub")]


def test_a_hash_in_a_code_block_or_comment_is_no_heading() -> None:
    assert labels("# A\n\n```sh\n# comment\n```\n\n<!--\n# hidden\n-->\n\n    # indented\n") == ["A"]


def test_front_matter_is_no_heading() -> None:
    text = "---\ntitle: x\n# note\n---\n\n# A\n"
    assert [(heading.label, heading.start) for heading in markdown.headings(text)] == [("A", text.index("# A"))]


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ('5 <a name="AAL"></a>Requirements', "5 Requirements"),
        ("**Bold** and `code` and *it*", "Bold and code and it"),
        ("See [the docs](https://x.test) now", "See the docs now"),
        ("snake_case_name stays", "snake_case_name stays"),
        (r"1\. First", "1. First"),
        ("Title {#anchor}", "Title"),
    ],
)
def test_a_label_has_the_words_and_not_the_marks(written: str, words: str) -> None:
    assert labels(f"## {written}\n") == [words]


def test_the_heading_that_holds_all_others_is_the_title() -> None:
    assert markdown.title(markdown.read_spans("# Lease\n\n## One\n\n## Two\n")) == "Lease"
    assert markdown.title(markdown.read_spans("# One\n\ntext\n\n# Two\n")) is None


def test_a_very_long_text_is_scanned_line_by_line_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "---\na: b\n---\n# A\n\n```\n# no\n```\n\n## B ##\n"
    parsed = markdown.headings(text)
    monkeypatch.setattr(markdown, "PARSED", 1)
    assert markdown.headings(text) == parsed
