"""The view of a chat follows what comes in only if it was at the bottom."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QScrollArea, QScrollBar
from pytestqt.qtbot import QtBot

from app.chat.conversation import Message
from app.chat.message import MessageView
from app.chat.transcript import Transcript


@pytest.fixture
def transcript(qtbot: QtBot) -> Transcript:
    transcript = Transcript()
    qtbot.addWidget(transcript)
    transcript.resize(500, 300)
    transcript.show()
    transcript.show_views([view(number) for number in range(12)])
    bar = bar_of(transcript)
    qtbot.waitUntil(lambda: bar.maximum() > 100 and bar.value() == bar.maximum())
    return transcript


def view(number: int) -> MessageView:
    return MessageView(Message(number, None, "user", f"Question {number}"), [number], "You", trial=False)


def bar_of(transcript: Transcript) -> QScrollBar:
    return transcript.findChildren(QScrollArea)[0].verticalScrollBar()


def grow(qtbot: QtBot, transcript: Transcript) -> None:
    bar = bar_of(transcript)
    before = bar.maximum()
    transcript.views[-1].body.append("\n\nmore\n\nand more" * 5)
    qtbot.waitUntil(lambda: bar.maximum() > before)


def test_it_follows_from_the_bottom(qtbot: QtBot, transcript: Transcript) -> None:
    grow(qtbot, transcript)
    assert bar_of(transcript).value() == bar_of(transcript).maximum()


def test_it_stays_where_the_reader_put_it(qtbot: QtBot, transcript: Transcript) -> None:
    bar_of(transcript).setValue(40)
    grow(qtbot, transcript)
    assert bar_of(transcript).value() == 40
    assert transcript.latest_button.isVisible()


def test_the_button_leads_back_and_follows_again(qtbot: QtBot, transcript: Transcript) -> None:
    bar_of(transcript).setValue(0)
    transcript.latest_button.click()
    assert not transcript.latest_button.isVisible()
    grow(qtbot, transcript)
    assert bar_of(transcript).value() == bar_of(transcript).maximum()
