"""The text of a message: streamed or whole, it shows the same."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QUrl
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QTextBrowser
from pytestqt.qtbot import QtBot

from app.chat.body import Body

LONG = "\n\n".join(f"Paragraph {number} with **some** words and `code`.\n\n- one\n- two\n\n```\nx = {number}\n```" for number in range(120))


@pytest.fixture
def body(qtbot: QtBot) -> Body:
    body = Body("Answer")
    qtbot.addWidget(body)
    body.resize(500, 300)
    body.show()
    return body


def whole(text: str) -> str:
    other = Body("Answer")
    other.show_text(text)
    return other.plain_text()


def test_a_streamed_text_ends_as_if_it_had_come_at_once(qtbot: QtBot, body: Body) -> None:
    for start in range(0, len(LONG), 400):
        body.append(LONG[start : start + 400])
        qtbot.wait(5)
    body.finish()
    assert body.plain_text() == whole(LONG)
    assert len(body.findChildren(QTextBrowser)) >= 1


def test_finished_blocks_are_not_drawn_again_while_more_comes(qtbot: QtBot, body: Body) -> None:
    body.append(LONG)
    qtbot.waitUntil(lambda: "Paragraph 100" in body.plain_text())
    body.append("\n\nand an end")
    qtbot.waitUntil(lambda: "and an end" in body.plain_text())
    pages = body.findChildren(QTextBrowser)
    assert len(pages) > 1
    assert len(pages[-1].toPlainText()) < len(LONG) / 4


def test_no_drawing_is_late_after_the_end(qtbot: QtBot, body: Body) -> None:
    body.append("first")
    body.finish()
    body.show_text("second")
    qtbot.wait(100)
    assert body.plain_text() == "second"


def test_it_is_as_tall_as_its_text(qtbot: QtBot, body: Body) -> None:
    body.show_text("one")
    low = body.sizeHint().height()
    body.show_text("one\n\ntwo\n\nthree")
    qtbot.waitUntil(lambda: body.sizeHint().height() > 2 * low)
    assert body.sizeHint().height() == pytest.approx(body.findChildren(QTextBrowser)[0].document().size().height(), abs=1)


def test_a_number_in_the_text_opens_its_citation(qtbot: QtBot, body: Body) -> None:
    quote = "a single man in possession"
    body.show_text(f"It is {quote} of it.", [{"number": 3, "quote": quote}])
    assert "[3]" in body.plain_text()
    with qtbot.waitSignal(body.cited) as cited:
        body.findChildren(QTextBrowser)[0].anchorClicked.emit(QUrl("cite:3"))
    assert cited.args == [3]


def test_code_is_copied_as_the_model_wrote_it(body: Body) -> None:
    body.show_text("```py\nif a < b:\n    **go**\n```", [{"number": 1, "quote": "if a b go on"}])
    body.findChildren(QTextBrowser)[0].anchorClicked.emit(QUrl("copy:0"))
    assert QGuiApplication.clipboard().text() == "if a < b:\n    **go**\n"


def test_other_links_are_only_told(qtbot: QtBot, body: Body) -> None:
    body.show_text("[x](https://example.com)")
    with qtbot.waitSignal(body.link_opened) as opened:
        body.findChildren(QTextBrowser)[0].anchorClicked.emit(QUrl("https://example.com"))
    assert opened.args == ["https://example.com"]
