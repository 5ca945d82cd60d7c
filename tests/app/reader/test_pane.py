"""The source pane: a citation opens its passage, marked and in view."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QUrl
from PySide6.QtWidgets import QComboBox, QTextBrowser
from pytestqt.qtbot import QtBot

from app.window import Window
from tests.app.conftest import Ask
from tests.app.fake_engine import BOOK, QUOTE, FakeEngine, book, citation

FAR = "Paragraph 150: the family talked of Netherfield Park"


def is_in_view(window: Window) -> bool:
    """Whether the start of the marked passage is inside the viewport."""
    text = window.reader.text
    return text.viewport().rect().contains(text.cursorRect().center())


def test_a_click_on_a_number_marks_the_passage_and_brings_it_into_view(qtbot: QtBot, window: Window, fake: FakeEngine, ask: Ask) -> None:
    fake.citations = [citation(1), citation(2, quote=FAR)]
    fake.answer = f"It says: {FAR}, and so on."
    ask("Who?")
    page = window.chat.transcript.views[-1].findChildren(QTextBrowser)[0]
    assert 'href="cite:2"' in page.toHtml()
    page.anchorClicked.emit(QUrl("cite:2"))
    qtbot.waitUntil(lambda: window.reader.text.marked_text() == FAR)
    assert is_in_view(window)
    assert window.reader.place.text() == f"CHAPTER I · line {BOOK.count(chr(10), 0, BOOK.index(FAR)) + 1}"


def test_next_and_previous_step_through_the_citations(qtbot: QtBot, window: Window) -> None:
    window.reader.show_citations([citation(1), citation(2, quote=FAR)], 0)
    qtbot.waitUntil(lambda: window.reader.text.marked_text() == QUOTE)
    assert not window.commands.previous_citation.isEnabled()
    window.commands.next_citation.trigger()
    assert window.reader.text.marked_text() == FAR
    assert not window.commands.next_citation.isEnabled()
    window.commands.previous_citation.trigger()
    assert window.reader.text.marked_text() == QUOTE


def test_the_list_names_every_citation(qtbot: QtBot, window: Window) -> None:
    window.reader.show_citations([citation(1), citation(2, quote=FAR)], 0)
    model = window.reader.citations
    assert model.index(0).data() == f"[1] CHAPTER I · line 3: “{QUOTE}”"
    assert model.rowCount() == 2


def test_a_citation_in_another_document_fetches_it(qtbot: QtBot, window: Window, fake: FakeEngine) -> None:
    fake.push("documents", [book("other", title="Moby-Dick")])
    fake.texts["other"] = "CHAPTER 1. Loomings.\n\nCall me Ishmael.\n"
    other = citation(2, document="other", quote="Call me Ishmael", text=fake.texts["other"])
    window.reader.show_citations([citation(1), other], 0)
    qtbot.waitUntil(lambda: window.reader.text.marked_text() == QUOTE)
    window.commands.next_citation.trigger()
    qtbot.waitUntil(lambda: window.reader.text.marked_text() == "Call me Ishmael")
    assert "Moby-Dick" in window.reader.citations.index(1).data()


def test_a_citation_in_a_folder_opens_its_file(qtbot: QtBot, window: Window, fake: FakeEngine) -> None:
    text = "=== a.py ===\nx = 1\n\n=== b.py ===\n\ndef heir():\n    return 1\n\n"
    fake.texts["book"] = text
    start = text.index("\n\ndef") + 1
    fake.shown["book"] = {"files": [{"label": "a.py", "start": 13, "end": 19}, {"label": "b.py", "start": start, "end": len(text) - 1}]}
    window.reader.show_citations([citation(1, quote="def heir()", text=text, section="b.py")], 0)
    qtbot.waitUntil(lambda: window.reader.text.marked_text() == "def heir()")
    assert "x = 1" not in window.reader.text.toPlainText()
    assert window.reader.findChildren(QComboBox)[0].currentText() == "b.py"
    assert window.reader.place.text() == "b.py · line 2"


@pytest.mark.parametrize("quote", ["😀 and 한글", "after 😀😀"])
def test_passages_after_emoji_are_marked_where_they_are(qtbot: QtBot, window: Window, fake: FakeEngine, quote: str) -> None:
    fake.texts["book"] = "An 😀 first.\n\n😀 and 한글, after 😀😀 it.\n"
    window.reader.show_citations([citation(1, quote=quote, text=fake.texts["book"])], 0)
    qtbot.waitUntil(lambda: bool(window.reader.text.marked_text()))
    assert window.reader.text.marked_text() == quote


def test_a_passage_over_several_lines_is_marked_whole(qtbot: QtBot, window: Window) -> None:
    quote = "good fortune\nmust be in want"
    window.reader.show_citations([citation(1, quote=quote)], 0)
    qtbot.waitUntil(lambda: bool(window.reader.text.marked_text()))
    assert window.reader.text.marked_text() == quote


def test_a_document_opened_from_the_library_has_nothing_marked(qtbot: QtBot, window: Window) -> None:
    window.reader.show_citations([citation(1)], 0)
    qtbot.waitUntil(lambda: window.reader.text.marked_text() == QUOTE)
    window.reader.show_document("book")
    assert window.reader.text.marked_text() == ""
    assert window.reader.text.toPlainText().startswith("CHAPTER I")


def test_the_handbook_can_be_read_without_adding_it(qtbot: QtBot, window: Window, fake: FakeEngine) -> None:
    window.commands.handbook.trigger()
    qtbot.waitUntil(lambda: "Longshelf" in window.reader.text.toPlainText())
    assert not fake.called("documents.add")
