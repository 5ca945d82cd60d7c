"""The command chats: list, show, search, export, rename, remove."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.engine.books import book
from tests.engine.commands.conftest import Longshelf


@pytest.fixture
def shelf(longshelf: Longshelf, tmp_path: Path) -> Longshelf:
    """With a chat about lamps and one about wards."""
    longshelf("add", book(tmp_path, 1))
    for question in ("Who keeps lamp 1.3?", "Where do the wards sleep?"):
        longshelf("ask", "book", question, "--max-tokens", 4)
    return longshelf


def chat_of(shelf: Longshelf, words: str) -> str:
    """The id of the one chat that holds these words."""
    [chat] = shelf("chats", "search", words, "--json").json["chats"]
    return str(chat["id"])


def test_list_gives_the_latest_first(shelf: Longshelf) -> None:
    chats = shelf("chats", "list", "--json").json["chats"]
    assert [chat["title"] for chat in chats] == ["Where do the wards sleep?", "Who keeps lamp 1.3?"]
    assert [line.split("  ")[-1] for line in shelf("chats", "list").out.splitlines()] == [chat["title"] for chat in chats]


def test_without_chats_it_says_so(longshelf: Longshelf) -> None:
    assert longshelf("chats", "list").out == "No chats.\n"


def test_search_finds_chats_by_what_was_said(shelf: Longshelf) -> None:
    assert [chat["title"] for chat in shelf("chats", "search", "sleep", "--json").json["chats"]] == ["Where do the wards sleep?"]
    assert shelf("chats", "search", "elephant", "--json").json == {"chats": []}


def test_show_gives_question_and_answer_with_its_sources(shelf: Longshelf) -> None:
    shown = shelf("chats", "show", chat_of(shelf, "lamp"), "--json").json
    question, answer = shown["messages"]
    assert (question["role"], question["text"], question["status"]) == ("user", "Who keeps lamp 1.3?", "complete")
    assert (answer["role"], answer["parent_id"], answer["status"]) == ("assistant", question["id"], "complete")
    assert answer["citations"]
    assert shown["document_titles"] == ["book"]


def test_show_prints_the_conversation(shelf: Longshelf) -> None:
    out = shelf("chats", "show", chat_of(shelf, "lamp")).out
    assert "You: Who keeps lamp 1.3?" in out
    assert "tiny: " in out


def test_export_gives_markdown_or_json(shelf: Longshelf) -> None:
    chat = chat_of(shelf, "lamp")
    assert "Who keeps lamp 1.3?" in shelf("chats", "export", chat).out
    assert "Who keeps lamp 1.3?" in json.dumps(json.loads(shelf("chats", "export", chat, "--format", "json").out))


def test_a_chat_can_be_renamed(shelf: Longshelf) -> None:
    assert shelf("chats", "rename", chat_of(shelf, "lamp"), "Lamps", "--json").json["title"] == "Lamps"
    assert "Lamps" in shelf("chats", "list").out


def test_a_removed_chat_is_gone(shelf: Longshelf) -> None:
    shelf("chats", "remove", chat_of(shelf, "lamp"))
    assert [chat["title"] for chat in shelf("chats", "list", "--json").json["chats"]] == ["Where do the wards sleep?"]


@pytest.mark.parametrize("action", ["show", "export", "remove"])
def test_an_unknown_chat_is_named(longshelf: Longshelf, action: str) -> None:
    done = longshelf("chats", action, "nothing", "--json")
    assert (done.status, done.json["error"]["kind"]) == (1, "not_found")
    assert "nothing" in done.err
