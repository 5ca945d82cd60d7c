"""A window on a fake engine, without a screen."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
from PySide6.QtCore import QLocale
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app import language
from app.engine_client import Engine
from app.preferences import Preferences
from app.window import Window
from engine.home import Home
from tests.app.fake_engine import FakeEngine, book

Ask = Callable[[str], None]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home").open()


@pytest.fixture
def fake(home: Home) -> Iterator[FakeEngine]:
    """An engine in the home, with one book that is ready."""
    engine = FakeEngine(home)
    engine.documents["book"] = book()
    engine.start()
    yield engine
    engine.close()


@pytest.fixture
def english(qapp: QApplication) -> Iterator[None]:
    translators = language.install(qapp, "en")
    yield
    for translator in translators:
        qapp.removeTranslator(translator)


@pytest.fixture
def korean(qapp: QApplication) -> Iterator[None]:
    before = QLocale()
    translators = language.install(qapp, "ko")
    yield
    for translator in translators:
        qapp.removeTranslator(translator)
    QLocale.setDefault(before)


@pytest.fixture
def window(qtbot: QtBot, home: Home, fake: FakeEngine, english: None) -> Iterator[Window]:
    """A window that has joined the fake engine and knows its lists."""
    shown = Window(Engine(home), Preferences(home), "en")
    qtbot.addWidget(shown)
    shown.resize(1280, 800)
    shown.show()
    shown.engine.start()
    qtbot.waitUntil(
        lambda: shown.mirror.models_known and bool(fake.called("chats.list")) and len(shown.mirror.documents) == len(fake.documents)
    )
    yield shown
    shown.close()


@pytest.fixture
def ask(qtbot: QtBot, window: Window) -> Ask:
    """Ask about the book, and wait for the whole answer."""

    def ask(question: str) -> None:
        if not window.chat.chooser.documents:
            window.chat.chooser.choose(["book"])
        before = len(window.chat.conversation.path())
        window.chat.ask(question)
        qtbot.waitUntil(lambda: len(window.chat.conversation.path()) == before + 2 and window.chat.asking is None)

    return ask
