"""A document cut into sheets, and offsets found in them."""

from __future__ import annotations

import pytest

from app.reader import sheets as module
from app.reader.sheets import Sheets

FOLDER = "=== a.py ===\nx = 1\ny = 2\n\n=== sub/b.py ===\nz = 3\n\n"
FILES = [{"label": "a.py", "start": 13, "end": 25}, {"label": "sub/b.py", "start": 43, "end": 49}]


def shown(text: str, **more: object) -> Sheets:
    return Sheets({"id": "d", "title": "t", "text": text, **more})


def test_a_text_is_one_sheet() -> None:
    sheets = shown("one\ntwo\n")
    assert [sheets.text_of(sheet) for sheet in sheets.all] == ["one\ntwo\n"]


def test_a_folder_shows_a_file_at_a_time() -> None:
    sheets = shown(FOLDER, files=FILES)
    assert [(sheet.label, sheets.text_of(sheet)) for sheet in sheets.all] == [("a.py", "x = 1\ny = 2\n"), ("sub/b.py", "z = 3\n")]
    assert sheets.at(FOLDER.index("z = 3")) == 1


def test_lines_of_a_folder_are_counted_in_their_file() -> None:
    sheets = shown(FOLDER, files=FILES)
    assert sheets.place(FOLDER.index("y = 2")) == "a.py · line 2"
    assert sheets.place(FOLDER.index("z = 3")) == "sub/b.py · line 1"


def test_a_place_names_section_page_and_line() -> None:
    text = "CHAPTER I\n\none\n\fCHAPTER II\n\ntwo\n"
    sections = [{"label": "CHAPTER I", "start": 0, "end": 15}, {"label": "CHAPTER II", "start": 16, "end": len(text)}]
    pages = [{"n": 1, "label": "i", "start": 0, "end": 15}, {"n": 2, "label": "ii", "start": 16, "end": len(text)}]
    assert shown(text, sections=sections, pages=pages).place(text.index("two")) == "CHAPTER II · page ii · line 6"


def test_positions_count_as_qt_counts() -> None:
    sheets = shown("a😀b한글")
    assert [sheets.position(sheets.all[0], offset) for offset in range(6)] == [0, 1, 3, 4, 5, 6]


def test_characters_that_would_break_a_line_do_not() -> None:
    text = "a\fb\u2029c"
    sheets = shown(text)
    assert sheets.text_of(sheets.all[0]) == "a b c"


@pytest.mark.parametrize("length", [10, 12, 25])
def test_a_very_long_text_is_cut_at_line_ends_and_loses_nothing(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST", length)
    text = "".join(f"line {number}\n" for number in range(20))
    sheets = shown(text)
    assert "".join(sheets.text_of(sheet) for sheet in sheets.all) == text
    assert all(sheets.text_of(sheet).endswith("\n") for sheet in sheets.all)
    assert sheets.place(text.index("line 17")) == f"{sheets.all[sheets.at(text.index('line 17'))].label} · line 18"


def test_a_line_without_end_is_cut_where_it_must_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST", 10)
    sheets = shown("x" * 25)
    assert [sheet.end - sheet.start for sheet in sheets.all] == [10, 10, 5]
