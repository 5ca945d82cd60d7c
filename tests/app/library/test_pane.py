"""The library: honest states, search, and what can be done to a document."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QMenu, QMessageBox
from pytestqt.qtbot import QtBot

from app.library import pane
from app.library.documents import DETAIL, ID, PROGRESS
from app.library.skipped import SkippedDialog
from app.window import Window
from tests.app.conftest import Ask
from tests.app.fake_engine import FakeEngine, book


def titles(window: Window) -> list[str]:
    model = window.library.document_view.model()
    return [model.index(row, 0).data() for row in range(model.rowCount())]


def offered(window: Window, **changes: object) -> list[str]:
    menu = window.library.document_actions([book(**changes)])
    return [action.text().replace("&", "") for action in menu.actions() if not action.isSeparator()]


def push(qtbot: QtBot, window: Window, fake: FakeEngine, *rows: dict[str, object]) -> None:
    fake.push("documents", list(rows))
    qtbot.waitUntil(lambda: all(row["id"] in window.mirror.documents for row in rows))


def test_a_new_document_comes_first(qtbot: QtBot, window: Window, fake: FakeEngine) -> None:
    push(qtbot, window, fake, book("new", title="Moby-Dick", added_at=2000.0))
    assert titles(window) == ["Moby-Dick", "Pride and Prejudice"]


def test_a_document_shows_how_far_it_is_read(qtbot: QtBot, window: Window, fake: FakeEngine) -> None:
    row = book(state="remembering", percent=42.71, place="Chapter 12", seconds_left=185)
    fake.push("documents", [row])
    index = window.library.document_view.model().index(0, 0)
    qtbot.waitUntil(lambda: index.data(DETAIL) == "Remembering 42.7 % · Chapter 12 · 3 min left")
    assert index.data(PROGRESS) == 42.71


def test_a_change_of_one_row_keeps_the_selection(qtbot: QtBot, window: Window, fake: FakeEngine) -> None:
    push(qtbot, window, fake, book("new", title="Moby-Dick", added_at=2000.0))
    window.library.select_document("book")
    fake.push("documents", [book("new", title="Moby-Dick", state="remembering", percent=1.0, added_at=2000.0)])
    qtbot.waitUntil(lambda: window.mirror.documents["new"]["state"] == "remembering")
    assert [row["id"] for row in window.library.selected_documents()] == ["book"]


def test_search_finds_titles_and_the_words_of_chats(qtbot: QtBot, window: Window, fake: FakeEngine, ask: Ask) -> None:
    ask("Who is 빙리씨를 만난 사람?")
    push(qtbot, window, fake, book("new", title="Moby-Dick", added_at=2000.0))
    window.library.search.setText("moby")
    assert titles(window) == ["Moby-Dick"]
    qtbot.waitUntil(lambda: window.library.chats.rowCount() == 0)
    window.library.search.setText("빙리")
    qtbot.waitUntil(lambda: window.library.chats.rowCount() == 1)
    assert titles(window) == []


def test_what_cannot_be_done_is_not_offered(window: Window) -> None:
    assert "Pause" not in offered(window)
    assert "Ask about this" in offered(window)
    assert {"Pause", "Cancel reading"} <= set(offered(window, state="remembering", parts_ready=0))
    assert "Ask about this" not in offered(window, state="remembering", parts_ready=0)
    assert "Resume" in offered(window, state="paused")
    assert "Resume" not in offered(window, state="paused", reason="cancelled")
    assert "Try again" in offered(window, state="paused", reason="cancelled")
    assert "Try again" in offered(window, state="failed", parts_ready=0)
    assert "What was skipped…" in offered(window, skipped_count=3)
    assert "Show the source file" not in offered(window, source_missing=True)


def test_pausing_pauses_the_job_of_the_document(qtbot: QtBot, window: Window, fake: FakeEngine) -> None:
    fake.push("documents", [book(state="remembering", percent=1.0)])
    window.library.select_document("book")
    window.commands.pause.trigger()
    qtbot.waitUntil(lambda: bool(fake.called("jobs.pause")))
    assert fake.called("jobs.pause") == [{"id": "book"}]


def test_removing_asks_first(qtbot: QtBot, window: Window, fake: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(pane, "confirmed", lambda parent, question, detail, yes: asked.append(f"{question} {detail}") or len(asked) > 1)
    window.library.select_document("book")
    window.commands.remove.trigger()
    assert "3.9 GB are freed" in asked[0]
    assert not fake.called("documents.remove")
    window.commands.remove.trigger()
    qtbot.waitUntil(lambda: titles(window) == [])


def test_forgetting_asks_first_and_keeps_the_document(
    qtbot: QtBot, window: Window, fake: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(pane, "confirmed", lambda parent, question, detail, yes: asked.append(f"{question} {detail}") or len(asked) > 1)
    assert "Forget the memory…" in offered(window, bytes=3_900_000_000)
    assert "Forget the memory…" not in offered(window, bytes=0)
    fake.push("documents", [book(bytes=3_900_000_000)])
    window.library.select_document("book")
    window.commands.forget.trigger()
    assert "3.9 GB are freed" in asked[0]
    assert not fake.called("documents.forget")
    window.commands.forget.trigger()
    qtbot.waitUntil(lambda: fake.called("documents.forget") == [{"id": "book"}])
    assert titles(window)


def test_the_safe_answer_is_the_default(qtbot: QtBot, window: Window, monkeypatch: pytest.MonkeyPatch) -> None:
    boxes: list[QMessageBox] = []
    monkeypatch.setattr(QMessageBox, "exec", lambda self: boxes.append(self) or 0)
    assert not pane.confirmed(window, "Remove?", "It is gone then.", "Remove")
    assert boxes[0].defaultButton() is boxes[0].button(QMessageBox.StandardButton.Cancel)


def test_a_click_on_a_document_shows_its_text(qtbot: QtBot, window: Window) -> None:
    view = window.library.document_view
    box = view.visualRect(view.model().index(0, 0))
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=box.center())
    qtbot.waitUntil(lambda: "universally acknowledged" in window.reader.text.toPlainText())
    assert window.chat.chooser.documents == ["book"]


def test_asking_about_a_document_starts_a_chat(window: Window, ask: Ask) -> None:
    ask("Who?")
    window.library.select_document("book")
    window.commands.ask_about.trigger()
    assert window.chat.conversation.id == ""
    assert window.chat.chooser.documents == ["book"]


def test_a_chat_is_renamed_in_place(qtbot: QtBot, window: Window, fake: FakeEngine, ask: Ask) -> None:
    ask("Who?")
    qtbot.waitUntil(lambda: window.library.chats.rowCount() == 1)
    index = window.library.chats.index(0)
    window.library.chats.setData(index, "Bingley")
    assert index.data() == "Bingley"
    qtbot.waitUntil(lambda: bool(fake.called("chats.rename")))
    assert fake.called("chats.rename")[0]["title"] == "Bingley"


def test_a_deleted_chat_leaves_the_screen(
    qtbot: QtBot, window: Window, fake: FakeEngine, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask("Who?")
    qtbot.waitUntil(lambda: window.library.chats.rowCount() == 1)
    monkeypatch.setattr(pane, "confirmed", lambda *_: True)
    chat = window.chat.conversation.id
    window.library.select_chat(chat)
    window.commands.remove_chat.trigger()
    qtbot.waitUntil(lambda: window.chat.conversation.id == "")
    assert window.chat.transcript.views == []
    assert fake.called("chats.remove") == [{"id": chat}]


def test_the_open_chat_is_marked_when_its_question_is_saved(qtbot: QtBot, window: Window, ask: Ask) -> None:
    ask("Who?")
    qtbot.waitUntil(lambda: window.library.chat_view.currentIndex().isValid())
    assert window.library.chat_view.currentIndex().data(ID) == window.chat.conversation.id


def test_the_menu_of_empty_space_offers_to_add(qtbot: QtBot, window: Window) -> None:
    view = window.library.document_view
    view.customContextMenuRequested.emit(QPoint(5, view.viewport().height() - 5))
    menu = next(menu for menu in window.library.findChildren(QMenu) if menu.isVisible())
    assert window.commands.add_files in menu.actions()
    menu.close()


def test_skipped_files_are_grouped_by_reason(qtbot: QtBot) -> None:
    dialog = SkippedDialog(book(title="toolz", skipped_count=3))
    qtbot.addWidget(dialog)
    dialog.fill([{"path": "b.so", "reason": "binary"}, {"path": ".env", "reason": "secret"}, {"path": "a.pyc", "reason": "binary"}])
    groups = [dialog.model.item(row) for row in range(dialog.model.rowCount())]
    assert [group.text() for group in groups] == ["not a text (2)", "looks like a secret (key, password) (1)"]
    assert [groups[0].child(row).text() for row in range(2)] == ["a.pyc", "b.so"]
