"""Rows that a disk changed are told from the files they can be made from, and made again."""

from __future__ import annotations

import pytest

from engine.errors import LongshelfError
from engine.library.checkup import examine
from engine.library.library import Library
from engine.library.mending import repair
from tests.engine.library.shelf import add_and_remember, pieces

ONE, TWO = "It was a bright cold day", "in April"


def change(library: Library, sql: str) -> None:
    with library.catalog.transaction() as db:
        db.execute("PRAGMA ignore_check_constraints = ON")
        assert db.execute(sql).rowcount > 0


def mend(library: Library) -> list[str]:
    """The kinds of all problems that were found, one after the other, until there are none."""
    found: list[str] = []
    for _ in range(3):
        problems = examine(library, deep=True)
        found += [problem.kind for problem in problems]
        repair(library, problems)
    assert examine(library, deep=True) == []
    return found


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE documents SET text = replace(text, 'cold', 'bold')",
        "UPDATE documents SET text_digest = 'x'",
        "UPDATE documents SET spans = '[['",
        "UPDATE documents SET skipped = 'x'",
        "UPDATE documents SET path = '/elsewhere'",
        "UPDATE documents SET title = 'Moby-Disk'",
        "UPDATE parts SET expected = '[' WHERE ordinal = 0",
        "UPDATE parts SET expected = '[]' WHERE ordinal = 0",
        "UPDATE parts SET start = start + 1 WHERE ordinal = 1",
        "UPDATE parts SET tokens = tokens - 1 WHERE ordinal = 0",
        "UPDATE parts SET tokens_done = 1 WHERE ordinal = 0",
        "UPDATE parts SET tip = NULL WHERE ordinal = 0",
        "UPDATE parts SET model = 'another'",
        "DELETE FROM part_segments WHERE ordinal = 1",
    ],
)
def test_a_document_s_rows_are_made_again_from_its_kept_text(library: Library, sql: str) -> None:
    row = add_and_remember(library, ONE, TWO)
    before = (library.documents.find("Moby-Dick"), library.parts.of(row.id)[0].plan, library.text_record(row.id).assignments)
    change(library, sql)
    assert mend(library)[0] == "document_differs"
    after = (library.documents.find("Moby-Dick"), library.parts.of(row.id)[0].plan, library.text_record(row.id).assignments)
    assert after[1:] == before[1:]
    assert (after[0].path, after[0].spans, after[0].state) == (before[0].path, before[0].spans, "ready")
    assert library.documents.text(row.id) == ONE + TWO
    assert [part.state for part in library.parts.of(row.id)] == ["ready", "ready"]


def test_a_text_that_changed_is_never_given_out(library: Library) -> None:
    row = add_and_remember(library, ONE)
    change(library, "UPDATE documents SET text = replace(text, 'cold', 'bold')")
    with pytest.raises(LongshelfError) as caught:
        library.documents.text(row.id)
    assert (caught.value.kind, "doctor" in caught.value.hint) == ("catalog_damaged", True)


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE messages SET text = 'Who shouts?'",
        "UPDATE messages SET meta = '{'",
        "UPDATE chats SET title = 'x'",
        "UPDATE messages SET role = 'nobody'",
        "DELETE FROM messages",
    ],
)
def test_a_chat_s_rows_are_made_again_from_its_file(library: Library, sql: str) -> None:
    chat = library.chats.create("tiny", [("ab12cd34", "Moby-Dick")])
    asked = library.chats.add_user_message(chat.id, None, "Who speaks?")
    change(library, sql)
    assert "chat_differs" in mend(library)
    assert library.chats.messages(chat.id) == [asked]
    assert library.chats.get(chat.id).title == "Who speaks?"


def test_a_chat_whose_messages_are_numbered_anew_agrees_with_its_file_again(library: Library) -> None:
    first = library.chats.create("tiny")
    library.chats.add_user_message(first.id, None, "Who speaks?")
    kept = library.transcripts.load(first.id)
    library.chats.remove(first.id)
    with library.catalog.transaction() as db:  # as where the end of the catalog's log was lost
        db.execute("DELETE FROM sqlite_sequence WHERE name = 'messages'")
    second = library.chats.create("tiny")
    library.chats.add_user_message(second.id, None, "Who else?")
    library.transcripts.save(kept)
    library.restore_lost_chats()
    assert [message.text for message in library.chats.messages(first.id)] == ["Who speaks?"]
    assert examine(library, deep=True) == []


def test_a_chat_that_is_being_answered_is_left_alone(library: Library) -> None:
    chat = library.chats.create("tiny")
    asked = library.chats.add_user_message(chat.id, None, "Who speaks?")
    answer = library.chats.add_assistant_message(chat.id, asked.id)
    library.chats.keep_text(answer.id, "Ish")
    assert examine(library, deep=True) == []


@pytest.mark.parametrize("sql", ["tokens = tokens + 1", "bytes = 7", "parent = 'ab'", "namespace = 'ab'", "start = start + 1"])
def test_a_segment_s_row_is_made_again_from_its_file(library: Library, sql: str) -> None:
    add_and_remember(library, ONE)
    digest = pieces(ONE)[1].digest
    before = library.catalog.row("SELECT * FROM segments WHERE digest = ?", [digest])
    change(library, f"UPDATE segments SET {sql} WHERE digest = '{digest}'")
    assert "segment_differs" in mend(library)
    assert library.catalog.row("SELECT * FROM segments WHERE digest = ?", [digest]) == before
    assert library.store.has(digest)
