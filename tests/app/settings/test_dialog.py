"""Settings take effect at once, or say when."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from app import theme
from app.settings.dialog import SettingsDialog
from app.window import Window
from tests.app.fake_engine import FakeEngine


@pytest.fixture
def dialog(qtbot: QtBot, window: Window) -> SettingsDialog:
    dialog = SettingsDialog(window.engine, window.mirror, window.preferences, window)
    dialog.show()
    qtbot.waitUntil(dialog.threads.isEnabled)
    return dialog


def seen(dialog: SettingsDialog) -> str:
    return "\n".join(label.text() for label in dialog.findChildren(QLabel))


def test_threads_are_the_engines(qtbot: QtBot, dialog: SettingsDialog, fake: FakeEngine) -> None:
    assert dialog.threads.value() == 2
    dialog.threads.setValue(1)
    dialog.threads.editingFinished.emit()
    qtbot.waitUntil(lambda: fake.called("settings.set") == [{"threads": 1}])


def test_no_number_of_threads_means_automatic(qtbot: QtBot, dialog: SettingsDialog, fake: FakeEngine) -> None:
    dialog.threads.setValue(0)
    dialog.threads.editingFinished.emit()
    qtbot.waitUntil(lambda: bool(fake.called("settings.set")))
    assert fake.called("settings.set") == [{"threads": None}]


def test_the_theme_changes_at_once(dialog: SettingsDialog, window: Window) -> None:
    dialog.theme.activated.emit(2)
    assert theme.is_dark()
    assert window.preferences.theme == "dark"
    dialog.theme.activated.emit(1)
    assert not theme.is_dark()


def test_the_language_says_that_it_changes_at_the_next_start(dialog: SettingsDialog, window: Window) -> None:
    dialog.language.activated.emit(2)
    assert window.preferences.language == "ko"
    assert "at the next start" in seen(dialog)


def test_it_shows_where_the_home_is_and_what_it_holds(dialog: SettingsDialog, window: Window) -> None:
    assert str(window.engine.home.root) in seen(dialog)
    assert "Documents 3.9 GB · models 270 MB" in seen(dialog)
