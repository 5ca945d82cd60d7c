"""The chat pane on a fake engine: asking, streaming, stopping, branches, and what is kept when things go wrong."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QInputMethodEvent
from PySide6.QtWidgets import QApplication, QLabel, QToolButton
from pytestqt.qtbot import QtBot

from app.chat.message import MessageView
from app.preferences import Preferences
from app.window import Window
from engine.errors import LongshelfError
from tests.app.conftest import Ask
from tests.app.fake_engine import MODEL, QUOTE, FakeEngine, book, citation

ERROR = "6.2\N{NO-BREAK SPACE}%"


def last(window: Window) -> MessageView:
    return window.chat.transcript.views[-1]


def words_of(view: MessageView) -> str:
    return "\n".join(label.text() for label in view.findChildren(QLabel) if label.isVisibleTo(view))


def button(view: MessageView, name: str) -> QToolButton:
    return next(found for found in view.findChildren(QToolButton) if found.accessibleName() == name)


def start_asking(qtbot: QtBot, window: Window, fake: FakeEngine, question: str = "Who?") -> None:
    """Ask, and hold the answer after its first words."""
    fake.flow.clear()
    window.chat.chooser.choose(["book"])
    window.chat.ask(question)
    qtbot.waitUntil(lambda: "The book says" in last(window).body.plain_text())


def test_an_answer_streams_in_and_ends_with_its_origin(qtbot: QtBot, window: Window, fake: FakeEngine) -> None:
    start_asking(qtbot, window, fake)
    assert "must be in want" not in last(window).body.plain_text()
    fake.flow.set()
    qtbot.waitUntil(lambda: window.chat.asking is None)
    assert "must be in want of a wife" in last(window).body.plain_text()
    assert last(window).origin_text() == "from memory · CHAPTER I, CHAPTER III – CHAPTER IV · read 2 of 82 parts"


def test_the_question_goes_to_the_engine_with_its_documents(window: Window, fake: FakeEngine, ask: Ask) -> None:
    ask("Who rents Netherfield?")
    assert fake.called("ask") == [
        {"documents": ["book"], "all": False, "question": "Who rents Netherfield?", "mode": "exact", "parts": "auto"}
    ]
    assert window.chat.composer.toPlainText() == ""


def test_fast_is_asked_for_once_it_is_chosen(window: Window, fake: FakeEngine, ask: Ask) -> None:
    ask("Who?")
    window.chat.box.switch.fast.click()
    ask("And why?")
    assert [call["mode"] for call in fake.called("ask")] == ["exact", "sampled"]


def test_the_switch_and_the_command_say_the_same(window: Window) -> None:
    switch = window.chat.box.switch
    assert switch.exact.isChecked()
    window.commands.fast.trigger()
    assert switch.fast.isChecked()
    switch.exact.click()
    assert not window.commands.fast.isChecked()


def test_the_switch_is_walked_by_keyboard(qtbot: QtBot, window: Window) -> None:
    switch = window.chat.box.switch
    window.activateWindow()
    window.chat.composer.setFocus()
    qtbot.keyClick(window.chat.composer, Qt.Key.Key_Tab)
    assert switch.exact.hasFocus()
    qtbot.keyClick(switch.exact, Qt.Key.Key_Right)
    assert switch.fast.hasFocus()
    assert switch.fast.isChecked()


def test_the_mode_is_remembered(qtbot: QtBot, window: Window) -> None:
    window.commands.fast.trigger()
    again = Window(window.engine, Preferences(window.engine.home), "en")
    qtbot.addWidget(again)
    assert again.chat.box.switch.fast.isChecked()


def test_fast_says_what_it_trades_and_what_error_was_measured(window: Window, ask: Ask) -> None:
    assert window.chat.box.trade() == ""
    window.commands.fast.trigger()
    assert "every answer says the measured error" in window.chat.box.trade()
    ask("Who?")
    assert f"measured error in this chat: {ERROR}" in window.chat.box.trade()


def test_a_fast_answer_says_what_was_read_and_the_error(window: Window, ask: Ask) -> None:
    window.commands.fast.trigger()
    ask("Who?")
    assert last(window).how_text() == f"Fast: read 12\N{NO-BREAK SPACE}% of the memory for each word, measured error {ERROR}"
    assert last(window).how_text() in words_of(last(window))


def test_an_exact_answer_says_nothing_of_modes(window: Window, ask: Ask) -> None:
    ask("Who?")
    assert "Fast" not in words_of(last(window))
    assert not button(last(window), "Answer exactly").isVisible()


def test_a_fast_answer_from_a_short_text_says_that_it_was_read_exactly(window: Window, fake: FakeEngine, ask: Ask) -> None:
    fake.sampled = {"mode": "exact", "exact_because": "short", "rows_read_fraction": 1.0, "error_measured": 0.0}
    window.commands.fast.trigger()
    ask("Who?")
    assert last(window).how_text() == "Fast: read exactly, since the part of the text that it needed is short"
    assert not button(last(window), "Answer exactly").isVisible()


def test_how_a_fast_answer_was_read_is_shown_when_its_chat_is_opened_again(qtbot: QtBot, window: Window, ask: Ask) -> None:
    window.commands.fast.trigger()
    ask("Who?")
    chat = window.chat.conversation.id
    window.chat.new_chat()
    window.chat.open_chat(chat)
    qtbot.waitUntil(lambda: len(window.chat.transcript.views) == 2)
    assert f"measured error {ERROR}" in words_of(last(window))


def test_a_fast_answer_can_be_asked_exactly_and_stays(qtbot: QtBot, window: Window, fake: FakeEngine, ask: Ask) -> None:
    window.commands.fast.trigger()
    ask("Who?")
    button(last(window), "Answer exactly").click()
    qtbot.waitUntil(lambda: len(fake.called("ask")) == 2 and window.chat.asking is None)
    asked = fake.called("ask")[1]
    assert (asked["mode"], asked["parent"], "temperature" in asked) == ("exact", window.chat.transcript.views[0].message.id, False)
    assert last(window).how_text() == ""
    button(last(window), "Previous version").click()
    assert "measured error" in last(window).how_text()
    assert window.commands.fast.isChecked()


def test_the_command_to_answer_exactly_is_for_fast_answers(window: Window, ask: Ask) -> None:
    ask("Who?")
    assert not window.commands.answer_exactly.isEnabled()
    window.commands.fast.trigger()
    ask("And why?")
    assert window.commands.answer_exactly.isEnabled()
    window.chat.new_chat()
    assert not window.commands.answer_exactly.isEnabled()


def test_preparing_is_said_until_the_next_word(qtbot: QtBot, window: Window, fake: FakeEngine) -> None:
    start_asking(qtbot, window, fake)
    window.chat.asking.phase.emit("Preparing…")
    assert "Preparing…" in words_of(last(window))
    fake.flow.set()
    qtbot.waitUntil(lambda: window.chat.asking is None)
    assert "Preparing" not in words_of(last(window))


def test_a_second_question_hangs_on_the_first_answer(window: Window, fake: FakeEngine, ask: Ask) -> None:
    ask("Who?")
    first = window.chat.conversation.last_answer
    ask("And why?")
    assert first is not None
    assert fake.called("ask")[1]["chat"] == window.chat.conversation.id
    assert fake.called("ask")[1]["parent"] == first.id


def test_all_documents_can_be_asked(qtbot: QtBot, window: Window, fake: FakeEngine) -> None:
    window.chat.chooser.choose([], all=True)
    window.chat.ask("Who?")
    qtbot.waitUntil(lambda: bool(fake.called("ask")) and window.chat.asking is None)
    assert fake.called("ask")[0]["all"] is True
    assert fake.called("ask")[0]["documents"] == []


def test_stop_keeps_the_text_so_far_and_says_so(qtbot: QtBot, window: Window, fake: FakeEngine) -> None:
    start_asking(qtbot, window, fake)
    window.commands.stop.trigger()
    qtbot.waitUntil(lambda: window.chat.asking is None)
    assert last(window).body.plain_text() == "The book says"
    assert "Stopped" in words_of(last(window))


def test_stop_is_offered_only_while_an_answer_comes(qtbot: QtBot, window: Window, fake: FakeEngine) -> None:
    assert not window.commands.stop.isEnabled()
    start_asking(qtbot, window, fake)
    assert window.commands.stop.isEnabled()
    fake.flow.set()
    qtbot.waitUntil(lambda: not window.commands.stop.isEnabled())


def test_one_question_at_a_time(qtbot: QtBot, window: Window, fake: FakeEngine) -> None:
    start_asking(qtbot, window, fake)
    window.chat.ask("Another?")
    assert "still being answered" in window.chat.box.hint()
    assert window.chat.composer.toPlainText() == "Another?"
    assert len(fake.called("ask")) == 1


def test_a_question_without_documents_is_kept(window: Window, fake: FakeEngine) -> None:
    window.chat.ask("Who?")
    assert "Choose which documents" in window.chat.box.hint()
    assert window.chat.composer.toPlainText() == "Who?"
    assert not fake.called("ask")


def test_a_document_of_which_nothing_is_read_cannot_be_asked_yet(qtbot: QtBot, window: Window, fake: FakeEngine) -> None:
    fake.push("documents", [book(state="remembering", parts_ready=0, percent=0.4)])
    qtbot.waitUntil(lambda: window.mirror.documents["book"]["state"] == "remembering")
    window.chat.chooser.choose(["book"])
    window.chat.ask("Who?")
    assert "Nothing of it has been read yet" in window.chat.box.hint()
    assert not fake.called("ask")


def test_a_document_can_be_asked_from_its_first_part(qtbot: QtBot, window: Window, fake: FakeEngine, ask: Ask) -> None:
    fake.push("documents", [book(state="remembering", parts_ready=7, percent=9.0)])
    qtbot.waitUntil(lambda: window.mirror.documents["book"]["state"] == "remembering")
    window.chat.chooser.choose(["book"])
    assert "7 of 82 parts read so far" in window.chat.box.hint()
    ask("Who?")
    assert fake.called("ask")


def test_hangul_is_committed_before_the_question_is_sent(qtbot: QtBot, window: Window, fake: FakeEngine) -> None:
    window.chat.chooser.choose(["book"])
    event = QInputMethodEvent("요", [])
    event.setCommitString("누구")
    QApplication.sendEvent(window.chat.composer, event)
    window.commands.send.trigger()
    qtbot.waitUntil(lambda: bool(fake.called("ask")) and window.chat.asking is None)
    assert [call["question"] for call in fake.called("ask")] == ["누구요"]
    assert window.chat.composer.toPlainText() == ""


def test_asking_again_makes_a_branch_and_loses_nothing(qtbot: QtBot, window: Window, fake: FakeEngine, ask: Ask) -> None:
    ask("Who?")
    fake.answer = "Another answer entirely, this time."
    window.commands.regenerate.trigger()
    qtbot.waitUntil(lambda: len(fake.called("ask")) == 2 and window.chat.asking is None)
    question = window.chat.transcript.views[0].message
    assert fake.called("ask")[1]["parent"] == question.id
    assert fake.called("ask")[1]["temperature"] > 0
    assert "Another answer" in last(window).body.plain_text()
    button(last(window), "Previous version").click()
    assert "must be in want of a wife" in last(window).body.plain_text()
    assert "1/2" in words_of(last(window))


def test_an_edited_question_becomes_a_branch(qtbot: QtBot, window: Window, fake: FakeEngine, ask: Ask) -> None:
    ask("Who?")
    ask("And why?")
    button(window.chat.transcript.views[0], "Edit and ask again").click()
    assert window.chat.composer.toPlainText() == "Who?"
    assert "a branch of its own" in window.chat.box.hint()
    window.chat.ask("Who else?")
    qtbot.waitUntil(lambda: len(fake.called("ask")) == 3 and window.chat.asking is None)
    assert fake.called("ask")[2]["parent"] is None
    assert window.chat.transcript.views[0].message.text == "Who else?"
    assert len(window.chat.conversation.path()) == 2


def test_an_edit_can_be_given_up(window: Window, fake: FakeEngine, ask: Ask) -> None:
    ask("Who?")
    button(window.chat.transcript.views[0], "Edit and ask again").click()
    window.chat.box.cancelled.emit()
    assert window.chat.composer.toPlainText() == ""
    ask("And why?")
    assert fake.called("ask")[1]["parent"] is not None


def test_copy_gives_the_text_of_the_model_and_not_its_looks(window: Window, fake: FakeEngine, ask: Ask) -> None:
    fake.answer = f"**Bold** and {QUOTE}."
    ask("Who?")
    button(last(window), "Copy").click()
    assert QGuiApplication.clipboard().text() == f"**Bold** and {QUOTE}."


def test_a_trial_model_wears_its_badge_where_it_answers(window: Window, ask: Ask) -> None:
    ask("Who?")
    assert "trial model" in words_of(last(window))
    assert MODEL["name"] in words_of(last(window))
    assert "trial model" not in words_of(window.chat.transcript.views[0])


def test_an_answer_without_support_says_so_and_shows_the_nearest(window: Window, fake: FakeEngine, ask: Ask) -> None:
    fake.figures["supported"] = False
    ask("What colour is the whale?")
    assert "Not found in these documents" in words_of(last(window))
    assert "[1] CHAPTER I" in words_of(last(window))


def test_the_figures_stand_behind_details(window: Window, ask: Ask) -> None:
    ask("Who?")
    assert "Tokens from memory" not in words_of(last(window))
    last(window).show_details(True)
    assert "Tokens from memory" in words_of(last(window))
    assert "4,096" in words_of(last(window))
    assert "10.2 tokens/s" in words_of(last(window))
    assert "Draft accepted" not in words_of(last(window))  # there was no draft


def test_the_figures_of_a_fast_answer_name_its_error(window: Window, ask: Ask) -> None:
    window.commands.fast.trigger()
    ask("Who?")
    last(window).show_details(True)
    assert "Error measured" in words_of(last(window))
    assert "Memory read for each word" in words_of(last(window))


def test_a_failed_question_is_kept_and_can_be_asked_again(qtbot: QtBot, window: Window, fake: FakeEngine, ask: Ask) -> None:
    fake.failures["ask"] = LongshelfError("no_model", "No model is installed.", "Install one.")
    ask("Who?")
    assert "No model is installed. · Install one." in words_of(last(window))
    assert window.trouble.isVisible()
    fake.failures.clear()
    button(last(window), "Answer again").click()
    qtbot.waitUntil(lambda: window.chat.asking is None and len(fake.called("ask")) == 2)
    assert window.chat.transcript.views[0].message.text == "Who?"
    assert len(window.chat.conversation.siblings(window.chat.conversation.path()[0].id)) == 1


def test_a_question_is_kept_when_the_engine_dies(qtbot: QtBot, window: Window, fake: FakeEngine) -> None:
    start_asking(qtbot, window, fake)
    fake.close()
    qtbot.waitUntil(lambda: window.chat.asking is None)
    assert window.chat.transcript.views[0].message.text == "Who?"
    assert "interrupted" in words_of(last(window))
    assert "The engine stopped unexpectedly." in window.trouble.text()


def test_what_was_not_sent_comes_back_at_the_next_start(qtbot: QtBot, window: Window) -> None:
    window.chat.composer.setPlainText("half a question")
    window.close()
    assert Preferences(window.engine.home).draft == "half a question"


def test_a_sent_question_is_on_disk_until_the_engine_has_it(
    qtbot: QtBot, window: Window, fake: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    drafts: list[str] = []
    monkeypatch.setattr(
        fake, "_ask", lambda params, line, id: drafts.append(Preferences(fake.home).draft) or {"answer": "", "citations": []}
    )
    window.chat.chooser.choose(["book"])
    window.chat.ask("Who?")
    qtbot.waitUntil(lambda: bool(drafts))
    assert drafts == ["Who?"]


def test_an_opened_chat_shows_its_messages_and_documents(qtbot: QtBot, window: Window, ask: Ask) -> None:
    ask("Who?")
    chat = window.chat.conversation.id
    window.chat.new_chat()
    assert window.chat.transcript.views == []
    window.library.chat_opened.emit(chat)
    qtbot.waitUntil(lambda: len(window.chat.transcript.views) == 2)
    assert "must be in want of a wife" in last(window).body.plain_text()
    assert window.chat.chooser.documents == ["book"]
    assert last(window).message.citations[0]["quote"] == QUOTE


def test_an_answer_goes_on_in_its_own_chat_while_another_is_read(qtbot: QtBot, window: Window, fake: FakeEngine) -> None:
    start_asking(qtbot, window, fake)
    chat = window.chat.conversation.id
    window.chat.new_chat()
    fake.flow.set()
    qtbot.waitUntil(lambda: window.chat.asking is None)
    assert window.chat.transcript.views == []
    window.library.chat_opened.emit(chat)
    qtbot.waitUntil(lambda: "must be in want of a wife" in (last(window).body.plain_text() if window.chat.transcript.views else ""))


def test_a_running_answer_is_still_running_when_its_chat_is_opened_again(qtbot: QtBot, window: Window, fake: FakeEngine) -> None:
    start_asking(qtbot, window, fake)
    chat = window.chat.conversation.id
    window.chat.new_chat()
    window.library.chat_opened.emit(chat)
    assert last(window).body.plain_text() == "The book says"
    fake.flow.set()
    qtbot.waitUntil(lambda: "must be in want of a wife" in last(window).body.plain_text())


def test_the_chat_that_was_open_opens_again(qtbot: QtBot, window: Window, ask: Ask) -> None:
    ask("Who?")
    chat = window.chat.conversation.id
    again = Window(window.engine, Preferences(window.engine.home), "en")
    qtbot.addWidget(again)
    again.engine.ready.emit(window.engine.about)
    qtbot.waitUntil(lambda: bool(again.chat.conversation.id))
    assert again.chat.conversation.id == chat
    assert [view.message.role for view in again.chat.transcript.views] == ["user", "assistant"]


def test_phases_are_said_until_the_first_word(qtbot: QtBot, window: Window, fake: FakeEngine) -> None:
    window.chat.chooser.choose(["book"])
    fake.answer = ""
    fake.flow.clear()
    window.chat.ask("Who?")
    view = last(window)
    window.chat.asking.phase.emit("Choosing among 82 parts…")
    assert "Choosing among 82 parts…" in words_of(view)
    fake.flow.set()


def test_several_citations_have_several_numbers(window: Window, fake: FakeEngine, ask: Ask) -> None:
    fake.citations = [citation(1), citation(2, quote="must be in want of a wife", section="CHAPTER II", line=4)]
    ask("Who?")
    assert "[1]" in last(window).body.plain_text()
    assert "[2]" in last(window).body.plain_text()
    assert "[2] CHAPTER II · line 4" in words_of(last(window))
