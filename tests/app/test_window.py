"""The window as a whole: reachable by keyboard, named for a screen reader, fits small screens, and says when something is wrong."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDropEvent, QGuiApplication
from PySide6.QtWidgets import QAbstractButton, QAbstractItemView, QApplication, QComboBox, QLineEdit, QPlainTextEdit, QTextBrowser, QWidget
from pytestqt.qtbot import QtBot

from app import trouble
from app.engine_client import Engine
from app.preferences import Preferences
from app.window import Window
from engine.errors import LongshelfError
from engine.home import Home
from tests.app.conftest import Ask
from tests.app.fake_engine import FakeEngine, book, citation


def dropped(paths: list[Path]) -> QMimeData:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    return data


def drag(window: Window, data: QMimeData) -> QDragEnterEvent:
    event = QDragEnterEvent(QPoint(50, 50), Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(window, event)
    return event


def drop(window: Window, data: QMimeData) -> None:
    event = QDropEvent(QPointF(50, 50), Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(window, event)


def test_every_command_says_what_it_does(window: Window) -> None:
    for action in window.commands.all():
        assert action.text()
        assert action.statusTip(), action.text()


def test_no_two_commands_share_a_key(window: Window) -> None:
    keys = [keys.toString() for action in window.commands.all() for keys in action.shortcuts()]
    assert sorted(keys) == sorted(set(keys))


def test_every_control_has_a_name_for_a_screen_reader(window: Window, fake: FakeEngine, ask: Ask) -> None:
    fake.citations = [citation(1)]
    ask("Who?")
    window.chat._on_citation(window.chat.conversation.last_answer.id, 1)
    kinds = (QAbstractButton, QLineEdit, QPlainTextEdit, QTextBrowser, QAbstractItemView, QComboBox)
    nameless = [
        widget
        for widget in window.findChildren(QWidget)
        if isinstance(widget, kinds) and widget.isVisible() and not (widget.accessibleName() or text_of(widget))
    ]
    assert [f"{type(widget).__name__} in {type(widget.parent()).__name__}" for widget in nameless] == []


def text_of(widget: QWidget) -> str:
    """What a control says of itself; the magnifying glass in a search field is only a picture."""
    if isinstance(widget.parent(), QLineEdit):
        return "part of its field"
    return widget.text() if isinstance(widget, QAbstractButton) else ""


def test_it_fits_a_small_screen_at_twice_the_size(window: Window) -> None:
    assert window.minimumSizeHint().width() <= 640
    assert window.minimumSizeHint().height() <= 400


def test_it_fits_with_an_answer_and_its_source_open(qtbot: QtBot, window: Window, ask: Ask) -> None:
    ask("Who?")
    window.chat.transcript.views[-1].show_details(True)
    window.chat._on_citation(window.chat.conversation.last_answer.id, 1)
    qtbot.waitUntil(lambda: window.reader.text.marked_text() != "")
    window.resize(640, 400)
    assert window.size().width() <= 640
    assert window.chat.composer.isVisible()


def test_files_over_the_window_show_how_many_and_how_big(qtbot: QtBot, window: Window, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"x" * 1500)
    (folder := tmp_path / "code").mkdir()
    (folder / "b.py").write_bytes(b"y" * 500)
    assert drag(window, dropped([tmp_path / "a.txt", folder])).isAccepted()
    assert window.overlay.isVisible()
    qtbot.waitUntil(lambda: window.overlay.text() == "Drop to add 1 file + 1 folder\n2 files · 2.0 kB")
    QApplication.sendEvent(window, QDragLeaveEvent())
    assert not window.overlay.isVisible()


def test_dropped_files_are_added_and_asked_about(qtbot: QtBot, window: Window, fake: FakeEngine, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Call me Ishmael.")
    drag(window, dropped([tmp_path / "a.txt"]))
    drop(window, dropped([tmp_path / "a.txt"]))
    qtbot.waitUntil(lambda: fake.called("documents.add") == [{"paths": [str(tmp_path / "a.txt")], "wait": False}])
    assert not window.overlay.isVisible()
    qtbot.waitUntil(lambda: window.chat.chooser.documents != [])


def test_an_open_chat_keeps_its_documents_when_more_are_added(
    qtbot: QtBot, window: Window, fake: FakeEngine, ask: Ask, tmp_path: Path
) -> None:
    ask("Who?")
    (tmp_path / "a.txt").write_text("Call me Ishmael.")
    window.add([tmp_path / "a.txt"])
    qtbot.waitUntil(lambda: len(window.mirror.documents) == 2)
    assert window.chat.chooser.documents == ["book"]


def test_words_dragged_over_the_window_are_not_taken(window: Window) -> None:
    data = QMimeData()
    data.setText("just words")
    assert not drag(window, data).isAccepted()
    assert not window.overlay.isVisible()


def test_a_copied_path_is_added(qtbot: QtBot, window: Window, fake: FakeEngine, tmp_path: Path) -> None:
    (tmp_path / "a book.txt").write_text("x")
    QGuiApplication.clipboard().setText(f'"{tmp_path / "a book.txt"}"\n')
    window.commands.paste_path.trigger()
    qtbot.waitUntil(lambda: bool(fake.called("documents.add")))
    assert fake.called("documents.add")[0]["paths"] == [str(tmp_path / "a book.txt")]


def test_a_clipboard_without_path_is_told(window: Window) -> None:
    QGuiApplication.clipboard().setText("no path")
    window.commands.paste_path.trigger()
    assert "No path was copied." in window.trouble.text()


def test_a_missing_file_is_told_and_the_others_are_added(qtbot: QtBot, window: Window, fake: FakeEngine, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    window.add([tmp_path / "gone.txt", tmp_path / "a.txt"])
    qtbot.waitUntil(lambda: bool(fake.called("documents.add")))
    assert fake.called("documents.add")[0]["paths"] == [str(tmp_path / "a.txt")]
    assert "gone.txt was not found." in window.trouble.text()


def test_the_status_says_ready_or_what_happens(qtbot: QtBot, window: Window, fake: FakeEngine) -> None:
    assert window.status.text() == "Offline · ready"
    fake.push("documents", [book(state="remembering", percent=42.7, place="Chapter 3", seconds_left=60)])
    qtbot.waitUntil(lambda: window.status.text() == "Offline · Pride and Prejudice: Remembering 42.7 % · Chapter 3 · 1 min left")
    fake.push("documents", [book()])
    fake.status(state="answering")
    qtbot.waitUntil(lambda: window.status.text() == "Offline · answering")


def test_a_failure_of_the_engine_is_one_sentence_and_a_next_step(qtbot: QtBot, window: Window, fake: FakeEngine) -> None:
    fake.failures["gc"] = LongshelfError("disk_full", "The disk of the home is full.", "Free 2 GB, then resume.")
    window.engine.request("gc")
    qtbot.waitUntil(window.trouble.isVisible)
    assert window.trouble.text() == "The disk of the home is full.\nFree 2 GB, then resume."


def test_an_engine_that_keeps_dying_can_be_started_by_hand(qtbot: QtBot, window: Window) -> None:
    started: list[bool] = []
    window.engine.restart = lambda: started.append(True)  # type: ignore[method-assign]
    window.engine.lost.emit(LongshelfError("engine_lost", "The engine stopped unexpectedly."), False)
    assert "not started again" in window.trouble.text()
    button = next(found for found in window.trouble.findChildren(QAbstractButton) if found.text() == "Start the engine")
    button.click()
    assert started == [True]
    assert not window.trouble.isVisible()


def test_a_bug_of_ours_is_told_without_a_traceback(window: Window, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    trouble.catch_our_bugs(window.engine.home, window.trouble)
    try:
        raise ValueError("secret text of a document")
    except ValueError as error:
        sys.excepthook(ValueError, error, error.__traceback__)
    assert "Something in Longshelf went wrong." in window.trouble.text()
    assert "Traceback" not in window.trouble.text()
    assert "secret" not in window.trouble.text()
    assert "ValueError" in (window.engine.home.root / "window.log").read_text(encoding="utf-8")


def test_panes_can_be_hidden_and_come_back_when_needed(qtbot: QtBot, window: Window, ask: Ask) -> None:
    window.commands.show_source.trigger()
    assert not window.reader.isVisible()
    ask("Who?")
    window.chat._on_citation(window.chat.conversation.last_answer.id, 1)
    assert window.reader.isVisible()


def test_the_keyboard_walks_through_the_panes(window: Window) -> None:
    window.activateWindow()
    window.library.document_view.setFocus()
    window.commands.next_pane.trigger()
    assert window.focusWidget() is window.chat.composer
    window.commands.search.trigger()
    assert window.focusWidget() is window.library.search


def test_size_and_panes_are_remembered(qtbot: QtBot, window: Window, home: Home) -> None:
    window.resize(700, 600)
    window._panes.setSizes([150, 350, 200])
    widths = window._panes.sizes()
    window.close()
    again = Window(Engine(home), Preferences(home), "en")
    qtbot.addWidget(again)
    again.show()
    assert again.size() == window.size()
    assert again._panes.sizes() == widths


def test_an_exported_chat_is_a_file(qtbot: QtBot, window: Window, ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from PySide6.QtWidgets import QFileDialog

    ask("Who?")
    file = tmp_path / "chat.md"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(file), "Markdown (*.md)"))
    window.commands.export_chat.trigger()
    qtbot.waitUntil(file.exists)
    assert file.read_text(encoding="utf-8").startswith("Who?")


def test_closing_ends_the_engine_that_was_started(qtbot: QtBot, home: Home, english: None) -> None:
    from engine.service import endpoint

    window = Window(Engine(home, [sys.executable, "-m", "tests.app.fake_engine", "--home", str(home.root)]), Preferences(home), "en")
    qtbot.addWidget(window)
    window.show()
    window.engine.start()
    qtbot.waitUntil(lambda: window.mirror.models_known, timeout=10_000)
    window.close()
    assert endpoint.find(home) is None
