"""An error of the engine, as it is told."""

from __future__ import annotations

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QToolButton
from pytestqt.qtbot import QtBot

from app.trouble import Trouble, TroubleBar, explain
from engine.errors import LongshelfError


def test_the_engines_own_sentence_is_used_in_english(english: None) -> None:
    error = LongshelfError("disk_full", "There are 3 GB left on /home.", "Free 2 GB.")
    assert explain(error) == Trouble("There are 3 GB left on /home.", "Free 2 GB.")


def test_elsewhere_the_kind_is_said_and_the_engines_sentence_stands_in_the_details(korean: None) -> None:
    told = explain(LongshelfError("disk_full", "There are 3 GB left on /home.", "Free 2 GB."))
    assert told.happened == "디스크가 가득 찼습니다."
    assert "3 GB left on /home" in told.details


def test_a_kind_nobody_foresaw_is_told_as_the_engine_says_it(korean: None) -> None:
    assert explain(LongshelfError("unheard_of", "Something.", "Do this.")) == Trouble("Something.", "Do this.")


def test_a_lost_engine_says_what_is_kept(english: None) -> None:
    told = explain(LongshelfError("engine_lost", "The engine stopped unexpectedly.", "killed by signal 9"))
    assert "your question are kept" in told.kept
    assert "killed by signal 9" in told.details


def test_details_are_shown_and_copied_on_request(qtbot: QtBot, english: None) -> None:
    bar = TroubleBar()
    qtbot.addWidget(bar)
    bar.tell(Trouble("It broke.", "Try again.", "All is kept.", "at line 3"))
    labels = [label for label in bar.children() if getattr(label, "text", str)() == "at line 3"]
    assert not labels[0].isVisible()
    more = next(button for button in bar.findChildren(QToolButton) if button.text() == "Details")
    more.click()
    assert labels[0].isVisible()
    next(button for button in bar.findChildren(QToolButton) if button.accessibleName() == "Copy the details").click()
    assert QGuiApplication.clipboard().text() == "It broke.\nAll is kept. Try again.\nat line 3"
