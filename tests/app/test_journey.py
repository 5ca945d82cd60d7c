"""The main journey on the real engine and the default model: add, ask while it is read, stop, follow a citation, come back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QUrl
from PySide6.QtWidgets import QTextBrowser
from pytestqt.qtbot import QtBot

from app.chat.conversation import Message
from app.engine_client import Engine
from app.preferences import Preferences
from app.window import Window
from engine.home import Home
from engine.service import endpoint

pytestmark = [pytest.mark.journey, pytest.mark.usefixtures("english")]

PATIENCE_MS = 120_000  # loading a model and reading a part on a slow machine
Open = Callable[[], Window]

FACTS = (
    "CHAPTER I\n\nThe lighthouse keeper of Port Ellery was called Tobias Marrow. He kept a grey parrot named Admiral, which could say\n"
    "nine words. Every evening at six he wound the great clock and wrote the weather in a green book.\n"
)
CHAPTER = (
    "\n\nCHAPTER {number}\n\nThe harbour was quiet that week. Ships came in with the tide and left with it, and the keeper counted them\n"
    "from his window. On the quay the fishermen mended their nets and spoke of the winter that was coming from the north.\n"
)


@pytest.fixture
def story(tmp_path: Path) -> Path:
    """A story of several parts, long enough to be asked while it is still being read."""
    file = tmp_path / "The Keeper of Port Ellery.txt"
    chapters = "".join(
        CHAPTER.format(number=number) + "The wind turned, and the sea grew dark before the rain. " * 60 for number in range(2, 6)
    )
    file.write_text(FACTS + "The lamp was lit, and the light went round over the water. " * 60 + chapters, encoding="utf-8")
    return file


@pytest.fixture
def open_window(qtbot: QtBot, fresh_model_home: Home) -> Iterator[Open]:
    """Opens a window on the same home each time, with the engine it starts; the one before is closed first."""
    opened: list[Window] = []

    def open_window() -> Window:
        for window in opened:
            window.close()
        window = Window(Engine(fresh_model_home), Preferences(fresh_model_home), "en")
        qtbot.addWidget(window)
        opened.append(window)
        window.resize(1280, 800)
        window.show()
        window.engine.start()
        qtbot.waitUntil(lambda: window.mirror.models_known, timeout=PATIENCE_MS)
        return window

    yield open_window
    for window in opened:
        window.close()


def ask(qtbot: QtBot, window: Window, question: str) -> None:
    window.chat.ask(question)
    qtbot.waitUntil(lambda: window.chat.asking is not None)
    qtbot.waitUntil(lambda: window.chat.asking is None, timeout=PATIENCE_MS)


def last_answer(window: Window) -> Message:
    answer: Message | None = window.chat.conversation.last_answer
    assert answer is not None
    return answer


def test_from_a_dropped_file_to_a_cited_passage_and_back_another_day(
    qtbot: QtBot, open_window: Open, story: Path, fresh_model_home: Home
) -> None:
    window = open_window()
    document = added_and_read_in_part(qtbot, window, story)
    answer = answered_while_it_is_read(qtbot, window)
    follow_the_first_citation(qtbot, window, answer)
    stop_another_answer(qtbot, window)
    qtbot.waitUntil(lambda: window.mirror.documents[document]["state"] == "ready", timeout=PATIENCE_MS)
    assert window.status.text() == "Offline · ready"
    window.close()
    assert endpoint.find(fresh_model_home) is None

    story.unlink()
    another_day = open_window()
    find_the_chat_and_its_passage_again(qtbot, another_day, answer)
    ask(qtbot, another_day, "Who kept the lighthouse?")
    last = last_answer(another_day)
    assert last.status == "complete"
    assert last.meta["document_tokens_prefilled"] == 0


def added_and_read_in_part(qtbot: QtBot, window: Window, story: Path) -> str:
    """Drop the file, and wait for its first finished part; the document's id."""
    states: list[str] = []
    window.mirror.documents_changed.connect(lambda rows: states.extend(row["state"] for row in rows))
    window.add([story])
    qtbot.waitUntil(lambda: window.chat.chooser.documents != [], timeout=PATIENCE_MS)
    (document,) = window.chat.chooser.documents
    qtbot.waitUntil(lambda: window.mirror.documents[document]["parts_ready"] > 0, timeout=PATIENCE_MS)
    assert "remembering" in states
    return str(document)


def answered_while_it_is_read(qtbot: QtBot, window: Window) -> Message:
    """The answer streams in, is complete, comes from memory and cites."""
    pieces: list[str] = []
    window.chat.ask("What was the name of the lighthouse keeper's parrot?")
    asking = window.chat.asking
    assert asking is not None
    asking.text.connect(pieces.append)
    qtbot.waitUntil(lambda: window.chat.asking is None, timeout=PATIENCE_MS)
    answer = last_answer(window)
    assert answer.status == "complete"
    assert "".join(pieces) == answer.text != ""
    assert answer.meta["document_tokens_prefilled"] == 0
    assert window.chat.transcript.views[-1].origin_text().startswith("from memory")
    assert answer.citations
    return answer


def follow_the_first_citation(qtbot: QtBot, window: Window, answer: Message) -> None:
    first = answer.citations[0]
    window.chat.transcript.views[-1].citation_opened.emit(answer.id, first["number"])
    qtbot.waitUntil(lambda: window.reader.text.marked_text() == first["quote"], timeout=PATIENCE_MS)
    assert window.reader.text.viewport().rect().contains(window.reader.text.cursorRect().center())


def stop_another_answer(qtbot: QtBot, window: Window) -> None:
    """Its text so far is kept."""
    window.chat.ask("Tell me everything that happens in this story, at length.")
    qtbot.waitUntil(lambda: bool(window.chat.asking and window.chat.asking.answer.text), timeout=PATIENCE_MS)
    window.commands.stop.trigger()
    qtbot.waitUntil(lambda: window.chat.asking is None, timeout=PATIENCE_MS)
    stopped = last_answer(window)
    assert (stopped.status, bool(stopped.text)) == ("stopped", True)


def find_the_chat_and_its_passage_again(qtbot: QtBot, window: Window, answer: Message) -> None:
    """The source file is gone; what was asked and the cited text are there."""
    qtbot.waitUntil(lambda: len(window.chat.transcript.views) == 4, timeout=PATIENCE_MS)
    shown = window.chat.transcript.views[1]
    assert shown.message.text == answer.text
    assert window.chat.transcript.views[3].message.status == "stopped"
    first = answer.citations[0]
    for page in shown.findChildren(QTextBrowser)[:1]:
        page.anchorClicked.emit(QUrl(f"cite:{first['number']}"))
    qtbot.waitUntil(lambda: window.reader.text.marked_text() == first["quote"], timeout=PATIENCE_MS)


def test_a_file_that_is_no_text_is_refused_in_one_sentence(qtbot: QtBot, open_window: Open, tmp_path: Path) -> None:
    (tmp_path / "noise.txt").write_bytes(bytes(range(256)) * 400)
    window = open_window()
    window.add([tmp_path / "noise.txt"])
    qtbot.waitUntil(window.trouble.isVisible, timeout=PATIENCE_MS)
    assert "noise.txt" in window.trouble.text()
    assert window.mirror.documents == {}


def test_a_killed_engine_loses_no_question_and_comes_back(qtbot: QtBot, open_window: Open, tmp_path: Path) -> None:
    import os
    import signal

    (tmp_path / "note.md").write_text(FACTS, encoding="utf-8")
    window = open_window()
    window.add([tmp_path / "note.md"])
    qtbot.waitUntil(lambda: [row["state"] for row in window.mirror.documents.values()] == ["ready"], timeout=PATIENCE_MS)
    window.chat.ask("Who kept the lighthouse, and what did he keep?")
    qtbot.waitUntil(lambda: bool(window.chat.asking and window.chat.asking.is_saved), timeout=PATIENCE_MS)
    os.kill(window.engine.about["pid"], signal.SIGKILL)
    qtbot.waitUntil(lambda: window.chat.asking is None, timeout=PATIENCE_MS)
    assert window.chat.transcript.views[0].message.text == "Who kept the lighthouse, and what did he keep?"
    assert "The engine stopped unexpectedly." in window.trouble.text()
    qtbot.waitUntil(lambda: bool(window.engine.about), timeout=PATIENCE_MS)
    window.chat.regenerate()
    qtbot.waitUntil(lambda: window.chat.asking is None, timeout=PATIENCE_MS)
    assert last_answer(window).status == "complete"
