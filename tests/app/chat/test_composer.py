"""Typing a question: Enter, Shift+Enter, and what an input method still holds."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, Qt, QUrl
from PySide6.QtGui import QInputMethodEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.chat.composer import Composer


@pytest.fixture
def composer(qtbot: QtBot) -> Composer:
    composer = Composer()
    qtbot.addWidget(composer)
    composer.show()
    composer.setFocus()
    return composer


@pytest.fixture
def sent(composer: Composer) -> list[str]:
    texts: list[str] = []
    composer.submitted.connect(texts.append)
    return texts


def compose(composer: Composer, preedit: str, commit: str = "") -> None:
    """What an input method sends while a syllable is being composed."""
    event = QInputMethodEvent(preedit, [])
    event.setCommitString(commit)
    QApplication.sendEvent(composer, event)


@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Enter])
def test_enter_sends(qtbot: QtBot, composer: Composer, sent: list[str], key: Qt.Key) -> None:
    qtbot.keyClicks(composer, "Who?")
    qtbot.keyClick(composer, key)
    assert sent == ["Who?"]


def test_shift_enter_breaks_the_line(qtbot: QtBot, composer: Composer, sent: list[str]) -> None:
    qtbot.keyClicks(composer, "one")
    qtbot.keyClick(composer, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    qtbot.keyClicks(composer, "two")
    assert sent == []
    assert composer.toPlainText() == "one\ntwo"


def test_nothing_but_space_is_not_sent(qtbot: QtBot, composer: Composer, sent: list[str]) -> None:
    qtbot.keyClicks(composer, "   ")
    qtbot.keyClick(composer, Qt.Key.Key_Return)
    assert sent == []


def test_a_half_composed_hangul_syllable_is_sent_with_the_rest_and_once(qtbot: QtBot, composer: Composer, sent: list[str]) -> None:
    compose(composer, "", "누구")
    compose(composer, "요")
    qtbot.keyClick(composer, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: bool(sent))
    assert sent == ["누구요"]
    assert composer.toPlainText() == "누구요"
    assert composer.preedit() == ""


def test_a_single_jamo_counts_as_hangul(qtbot: QtBot, composer: Composer, sent: list[str]) -> None:
    compose(composer, "ㅋ")
    qtbot.keyClick(composer, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: bool(sent))
    assert sent == ["ㅋ"]


def test_a_syllable_in_the_middle_of_the_text_is_committed_where_it_stands(qtbot: QtBot, composer: Composer, sent: list[str]) -> None:
    composer.setPlainText("나는 간다")
    cursor = composer.textCursor()
    cursor.setPosition(3)
    composer.setTextCursor(cursor)
    compose(composer, "꼭")
    qtbot.keyClick(composer, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: bool(sent))
    assert sent == ["나는 꼭간다"]
    assert composer.toPlainText() == "나는 꼭간다"


@pytest.mark.parametrize("preedit", ["かんじ", "漢字", "nihao"])
def test_enter_belongs_to_the_input_method_where_it_chooses_candidates(
    qtbot: QtBot, composer: Composer, sent: list[str], preedit: str
) -> None:
    compose(composer, preedit)
    qtbot.keyClick(composer, Qt.Key.Key_Return)
    qtbot.wait(20)
    assert sent == []
    assert composer.preedit() == preedit
    compose(composer, "", preedit)
    qtbot.keyClick(composer, Qt.Key.Key_Return)
    assert sent == [preedit]


def test_sending_by_button_commits_too(qtbot: QtBot, composer: Composer, sent: list[str]) -> None:
    compose(composer, "왜")
    composer.submit()
    qtbot.waitUntil(lambda: bool(sent))
    assert sent == ["왜"]
    assert composer.preedit() == ""


def test_it_grows_with_its_text_and_stops_growing(composer: Composer) -> None:
    low = composer.sizeHint().height()
    composer.setPlainText("a\nb\nc")
    middle = composer.sizeHint().height()
    composer.setPlainText("\n" * 50)
    high = composer.sizeHint().height()
    assert low < middle < high
    assert high < 12 * composer.fontMetrics().lineSpacing()


def test_pasted_files_are_not_text(composer: Composer, tmp_path: Path) -> None:
    pasted: list[list[Path]] = []
    composer.files_pasted.connect(pasted.append)
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(tmp_path / "book.txt"))])
    composer.insertFromMimeData(data)
    assert pasted == [[tmp_path / "book.txt"]]
    assert composer.toPlainText() == ""


def test_pasted_text_comes_without_its_looks(composer: Composer) -> None:
    data = QMimeData()
    data.setHtml("<b>bold</b>")
    data.setText("bold")
    composer.insertFromMimeData(data)
    assert composer.toPlainText() == "bold"
