"""The first start: a model is offered and installed, the handbook opens, and its questions can be clicked."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtWidgets import QLabel, QPushButton
from pytestqt.qtbot import QtBot

import resources
from app.engine_client import Engine
from app.preferences import Preferences
from app.window import Window
from engine.errors import LongshelfError
from engine.home import Home
from tests.app.fake_engine import MODEL, FakeEngine


@pytest.fixture
def bare(qtbot: QtBot, home: Home, english: None) -> Iterator[tuple[Window, FakeEngine]]:
    """A window on a home without model or documents."""
    fake = FakeEngine(home)
    fake.models = {"smollm2": {**MODEL, "name": "smollm2", "installed": False, "current": False}}
    fake.start()
    window = Window(Engine(home), Preferences(home), "en")
    qtbot.addWidget(window)
    window.show()
    window.engine.start()
    qtbot.waitUntil(lambda: window.mirror.models_known)
    yield window, fake
    window.close()
    fake.close()


def seen(window: Window) -> str:
    return "\n".join(label.text() for label in window.start.findChildren(QLabel) if label.isVisible())


def button(window: Window, text: str) -> QPushButton:
    return next(found for found in window.start.findChildren(QPushButton) if found.text() == text)


def test_the_offer_says_what_it_costs_and_what_it_cannot_do(bare: tuple[Window, FakeEngine]) -> None:
    window, _ = bare
    for fact in ("SmolLM2-135M-Instruct", "Apache-2.0", "93 MB", "100 MB", "English only", "trial model", "often wrong"):
        assert fact in seen(window)


def test_nothing_is_fetched_before_the_button_is_pressed(qtbot: QtBot, bare: tuple[Window, FakeEngine]) -> None:
    window, fake = bare
    qtbot.wait(50)
    assert not fake.called("models.fetch")
    button(window, "Download and install").click()
    qtbot.waitUntil(lambda: bool(fake.called("models.fetch")))


def test_the_download_shows_its_progress_and_that_the_network_is_used(qtbot: QtBot, bare: tuple[Window, FakeEngine]) -> None:
    window, fake = bare
    fake.flow.clear()
    window.start.install()
    qtbot.waitUntil(lambda: "93 MB / 93 MB" in seen(window))
    assert "network" in window.status.text()
    fake.flow.set()
    qtbot.waitUntil(lambda: "Offline" in window.status.text())


def test_a_download_can_be_cancelled(qtbot: QtBot, bare: tuple[Window, FakeEngine]) -> None:
    window, fake = bare
    fake.flow.clear()
    window.start.install()
    qtbot.waitUntil(lambda: button(window, "Cancel").isVisible())
    button(window, "Cancel").click()
    qtbot.waitUntil(lambda: bool(fake.called("stop")))
    fake.flow.set()
    qtbot.waitUntil(lambda: button(window, "Download and install").isVisible())
    assert not fake.called("documents.add")


def test_a_failed_download_says_why_and_can_be_tried_again(qtbot: QtBot, bare: tuple[Window, FakeEngine]) -> None:
    window, fake = bare
    fake.failures["models.fetch"] = LongshelfError("no_network", "The package index can't be reached.", "Check the connection.")
    window.start.install()
    qtbot.waitUntil(lambda: "The package index can't be reached. Check the connection." in seen(window))
    assert button(window, "Download and install").isVisible()


def test_after_the_model_the_handbook_opens_with_three_questions(qtbot: QtBot, bare: tuple[Window, FakeEngine]) -> None:
    window, fake = bare
    window.start.install()
    questions = list(resources.questions("en"))[:3]
    qtbot.waitUntil(lambda: all(any(found.text() == text for found in window.start.findChildren(QPushButton)) for text in questions))
    assert fake.called("documents.add")[0]["paths"] == [str(resources.handbook("en"))]
    assert len(window.chat.chooser.documents) == 1


def test_a_click_on_a_question_asks_it(qtbot: QtBot, bare: tuple[Window, FakeEngine]) -> None:
    window, fake = bare
    window.start.install()
    question = resources.questions("en")[0]
    qtbot.waitUntil(lambda: any(found.text() == question and found.isEnabled() for found in window.start.findChildren(QPushButton)))
    button(window, question).click()
    qtbot.waitUntil(lambda: bool(fake.called("ask")))
    assert [call["question"] for call in fake.called("ask")] == [question]


def test_with_a_model_but_no_document_it_says_how_to_add_one(qtbot: QtBot, bare: tuple[Window, FakeEngine]) -> None:
    window, fake = bare
    fake.models = {MODEL["name"]: MODEL}
    fake.push("models", [MODEL])
    qtbot.waitUntil(lambda: "Drop files or a folder" in seen(window))
    button(window, "Start with the handbook").click()
    qtbot.waitUntil(lambda: bool(fake.called("documents.add")))
    assert fake.called("documents.add")[0]["paths"] == [str(resources.handbook("en"))]
