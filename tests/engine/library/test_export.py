"""Chats as files."""

from __future__ import annotations

import json
import time

from engine.library import export
from engine.library.conversation import Citation
from engine.library.library import Library


def talk(library: Library) -> str:
    chat = library.chats.create("tiny", [("ab12cd34", "Moby-Dick")])
    asked = library.chats.add_user_message(chat.id, None, "Who speaks?")
    first = library.chats.add_assistant_message(chat.id, asked.id)
    library.chats.finish_message(first.id, "Ahab.", "stopped")
    second = library.chats.add_assistant_message(chat.id, asked.id)
    quote = Citation(1, "ab12cd34", "Moby-Dick", 0, 0, 16, 3, "Loomings", 12, "Call me\nIshmael.", 0.8)
    library.chats.finish_message(second.id, "Ishmael [1].", "complete", {"tokens": 3}, [quote])
    return chat.id


def test_markdown_holds_the_branch_written_to_last_with_its_sources(library: Library) -> None:
    chat_id = talk(library)
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(library.chats.get(chat_id).created_at))
    assert export.as_markdown(library.chats, chat_id) == (
        f"# Who speaks?\n\n- {when}\n- Model: tiny\n- Documents: Moby-Dick\n\n"
        "## You\n\nWho speaks?\n\n"
        "## Longshelf\n\nIshmael [1].\n\n*(1 other version of this: see the JSON export)*\n\n"
        "[1] Moby-Dick · Loomings · p. 3 · line 12\n\n> Call me\n> Ishmael.\n"
    )


def test_markdown_says_what_was_not_finished(library: Library) -> None:
    chat = library.chats.create("tiny")
    asked = library.chats.add_user_message(chat.id, None, "Who?")
    library.chats.add_assistant_message(chat.id, asked.id)
    library.chats.fail_interrupted()
    assert "*(not finished: interrupted)*" in export.as_markdown(library.chats, chat.id)


def test_markdown_says_how_a_fast_answer_was_read(library: Library) -> None:
    chat = library.chats.create("tiny")
    asked = library.chats.add_user_message(chat.id, None, "Who?")
    answer = library.chats.add_assistant_message(chat.id, asked.id)
    figures = {"mode": "sampled", "rows_read_fraction": 0.123, "error_measured": 0.0617}
    library.chats.finish_message(answer.id, "Ahab.", "complete", figures)
    exported = export.as_markdown(library.chats, chat.id)
    assert "Ahab.\n\n*(Fast: read 12 % of the memory for each word, measured error 6.2 %)*\n" in exported


def test_json_holds_every_branch(library: Library) -> None:
    chat_id = talk(library)
    exported = json.loads(export.as_json(library.chats, chat_id))
    assert exported["id"] == chat_id
    assert exported["documents"] == [{"id": "ab12cd34", "title": "Moby-Dick"}]
    assert [message["text"] for message in exported["messages"]] == ["Who speaks?", "Ahab.", "Ishmael [1]."]
    assert exported["messages"][2]["citations"][0]["quote"] == "Call me\nIshmael."
    assert exported["messages"][2]["meta"] == {"tokens": 3}
