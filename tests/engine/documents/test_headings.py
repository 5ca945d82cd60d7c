"""Headings of plain text: what opens a section, what looks like one and doesn't."""

from __future__ import annotations

import pytest

from engine.documents.headings import headings
from engine.documents.sections import Heading, nest
from engine.documents.text import pages


def labels(text: str) -> list[str]:
    return [heading.label for heading in headings(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "CHAPTER I. Down the Hole\n\nAlice was.\n\nCHAPTER II. The Pool\n\nShe was.\n",
            ["CHAPTER I. Down the Hole", "CHAPTER II. The Pool"],
        ),
        ("Chapter 1\n\n\nIt is a truth\nuniversally known.\n\nChapter 2\n\nHe was.\n", ["Chapter 1", "Chapter 2"]),
        ("CHAPTER I.\nThe Start\n\nIt was.\n\nCHAPTER TWO\n\n“Hello!”\n\nhe said.\n", ["CHAPTER I The Start", "CHAPTER TWO"]),
        ("PART ONE\n\nChapter 1\n\nx\n\nBOOK THE SECOND\n\nx\n", ["PART ONE", "Chapter 1", "BOOK THE SECOND"]),
        ("제1장 총칙\n\n글이다.\n\n제2장\n\n용어의 정의\n\n글이다.\n", ["제1장 총칙", "제2장 용어의 정의"]),
        ("第一章 はじまり\n\n本文。\n\n第二章\n\n終わり\n\n本文。\n", ["第一章 はじまり", "第二章 終わり"]),
        ("머리말\n\n글이다.\n\n1\n\n글이다.\n\n2\n\n글이다.\n", ["머리말", "1", "2"]),
        ("PREFACE.\n\nText here.\n\nVENTILATION AND WARMING.\n\nText here.\n", ["PREFACE", "VENTILATION AND WARMING."]),
        ("1. Introduction\n\nText.\n\n1.1. Transport\n\nText.\n", ["1. Introduction", "1.1. Transport"]),
        ("Title\n=====\n\nText.\n\nPart\n----\n\nText.\n", ["Title", "Part"]),
    ],
)
def test_headings_are_found(text: str, expected: list[str]) -> None:
    assert labels(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Chapter 3 of this book is long,\nand so on.\n",
        "Text.\n\nSection 4.1 says that it holds.\n\nText.\n",
        "part of it is mine\n\nText.\n",
        "Text.\n\nI\n\nwas there.\n",
        "One line\n12\nanother\n\n12\n\nmore\n",
        "1. Buy milk, bread and eggs.\n\n2. Go home.\n",
        "Introduction . . . . . . . . . 5\n\nText.\n",
        "제3조의 규정에 따라 이를 정한다\n",
    ],
)
def test_prose_and_lists_open_no_section(text: str) -> None:
    assert labels(text) == []


def test_articles_of_a_contract_are_found_without_blank_lines() -> None:
    text = "제1조(목적) 이 계약은 그렇다.\n제2조(기간) 1년으로 한다.\n제2조(기간)에 따른 것은 다르다.\n제4조의2(휴가)\n휴가는 15일.\n"
    assert labels(text) == ["제1조(목적)", "제2조(기간)", "제4조의2(휴가)"]


def test_lines_in_capitals_are_mottoes_where_there_are_chapters() -> None:
    text = "".join(f"CHAPTER {n}.\n\nText.\n\nEDW. GARDINER.\n\nText.\n\n" for n in ("I", "II", "III"))
    assert labels(text) == ["CHAPTER I", "CHAPTER II", "CHAPTER III"]


def test_a_list_of_chapters_is_no_chapter() -> None:
    text = "CONTENTS\n\nCHAPTER I. Ann\n\nCHAPTER II. Ben\n\nCHAPTER III. Cid\n\n\n"
    text += "CHAPTER I. Ann\n\nText.\n\nMore.\n\nCHAPTER II. Ben\n\nText.\n"
    found = headings(text)
    assert [heading.label for heading in found] == ["CONTENTS", "CHAPTER I. Ann", "CHAPTER II. Ben"]
    assert found[1].start == text.rindex("CHAPTER I. Ann")


def test_numbers_on_pages_with_form_feeds_are_page_numbers() -> None:
    assert labels("Text.\n\n1\n\f\nText.\n\n2\n\f\nText.\n") == []


def test_a_section_runs_until_the_next_of_its_level_or_further_out() -> None:
    found = nest([Heading(1, "A", 0), Heading(2, "a", 5), Heading(2, "b", 8), Heading(1, "B", 10)], 20)
    assert [(span.label, span.start, span.end) for span in found] == [("A", 0, 10), ("a", 5, 8), ("b", 8, 10), ("B", 10, 20)]


def test_pages_lie_between_form_feeds_and_an_empty_last_one_is_none() -> None:
    assert [(span.label, span.start, span.end) for span in pages("one\ftwo\f")] == [("1", 0, 4), ("2", 4, 8)]
    assert pages("no form feed") == []
