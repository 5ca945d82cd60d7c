"""Opening a home and putting in order what the last engine left."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import LongshelfError
from engine.library.library import Library
from tests.engine.library.shelf import abandon, add, add_and_remember, new, open_library, pieces, remember, remember_preamble
from tests.engine.store.pieces import kv

ONE, TWO = "It was a bright cold day", "in April"


def test_a_new_home_is_empty_and_in_order(library: Library) -> None:
    settled = library.settle()
    assert library.documents.all() == []
    assert (settled.removals, settled.temporaries, settled.restored, settled.unqueued) == (0, 0, [], [])


def test_what_was_under_way_is_put_in_order(library: Library) -> None:
    row = library.documents.add(new())
    library.jobs.add(row.id, "tiny")
    library.jobs.claim()
    chat = library.chats.create("tiny")
    asked = library.chats.add_user_message(chat.id, None, "Who?")
    library.chats.add_assistant_message(chat.id, asked.id)
    for folder in (library.home.root, library.texts.folder, library.transcripts.folder):
        abandon(folder)
    settled = library.settle()
    assert [job.state for job in settled.jobs] == ["queued"]
    assert library.documents.get(settled.jobs[0].document_id).state == "queued"
    assert [message.status for message in settled.messages] == ["failed"]
    assert settled.temporaries == 3
    assert settled.unqueued == []


def test_a_document_that_is_to_be_read_but_has_no_job_is_told(library: Library) -> None:
    row = library.documents.add(new())
    library.documents.set_state(library.documents.add(new(title="Done")).id, "ready")
    assert library.settle().unqueued == [row]


def test_a_document_whose_row_is_lost_comes_back_with_what_is_remembered(library: Library) -> None:
    row = add_and_remember(library, ONE, TWO)
    with library.catalog.transaction() as db:
        db.execute("DELETE FROM documents")
    (restored,) = library.settle().restored
    assert (restored.id, restored.title, restored.state, restored.tokens) == (row.id, row.title, "ready", 32)
    assert [part.state for part in library.parts.of(row.id)] == ["ready", "ready"]


def test_one_that_is_half_remembered_is_queued(library: Library) -> None:
    remember_preamble(library)
    row, (part, _) = add(library, ONE, TWO)
    remember(library, part, ONE)
    with library.catalog.transaction() as db:
        db.execute("DELETE FROM documents")
    (restored,) = library.settle().restored
    assert restored.state == "queued"
    assert [(job.document_id, job.model) for job in library.jobs.all()] == [(row.id, "tiny")]


def test_what_a_reader_decided_comes_back_too(library: Library) -> None:
    library.documents.add(new(""), state="no_text", reason="looks scanned")
    with library.catalog.transaction() as db:
        db.execute("DELETE FROM documents")
    (restored,) = library.settle().restored
    assert (restored.state, restored.reason) == ("no_text", "looks scanned")


def test_a_text_that_cannot_be_read_is_told_and_left(library: Library) -> None:
    row = library.documents.add(new())
    with library.catalog.transaction() as db:
        db.execute("DELETE FROM documents")
    library.texts.path(row.id).write_text("{")
    assert library.settle().unreadable_texts == [row.id]
    assert library.texts.path(row.id).exists()


def test_a_chat_whose_row_is_lost_comes_back(library: Library) -> None:
    chat = library.chats.create("tiny", [("ab12cd34", "Moby-Dick")])
    with library.catalog.transaction() as db:
        db.execute("DELETE FROM chats")
    assert library.settle().chats == [chat]
    assert library.chats.all() == [chat]


def test_a_chat_whose_file_cannot_be_read_is_told_and_left(library: Library) -> None:
    chat = library.chats.create("tiny")
    with library.catalog.transaction() as db:
        db.execute("DELETE FROM chats")
    library.transcripts.path(chat.id).write_text("{")
    assert library.settle().unreadable_chats == [chat.id]
    assert library.transcripts.path(chat.id).exists()


def test_a_chat_of_an_earlier_version_gets_a_file(library: Library) -> None:
    chat = library.chats.create("tiny")
    library.transcripts.path(chat.id).unlink()
    library.settle()
    assert library.transcripts.load(chat.id).chat["id"] == chat.id


@pytest.mark.parametrize("kept", ["document", "chat"])
@pytest.mark.parametrize("emptied", [True, False])
def test_a_catalog_that_is_gone_is_not_taken_for_an_empty_shelf(tmp_path: Path, emptied: bool, kept: str) -> None:
    library = open_library(tmp_path / "home")
    if kept == "document":
        library.documents.add(new())
    else:
        library.chats.create("tiny")
    library.close()
    if emptied:
        library.home.catalog.write_bytes(b"")
    else:
        library.home.catalog.unlink()
    with pytest.raises(LongshelfError) as caught:
        open_library(tmp_path / "home")
    assert caught.value.kind == "catalog_damaged"
    assert "doctor --repair" in caught.value.hint


def test_the_file_of_a_document_can_be_written_from_its_rows(library: Library) -> None:
    row = add_and_remember(library, ONE, TWO)
    library.documents.set_state(row.id, "queued")
    saved, made = library.texts.load(row.id), library.text_record(row.id)
    assert made.assignments == saved.assignments
    assert made.document | {"updated_at": 0} == saved.document | {"updated_at": 0}


def test_two_libraries_of_one_home_see_each_others_changes(library: Library) -> None:
    other = open_library(library.home.root)
    row = add_and_remember(library, ONE)
    assert other.documents.get(row.id).state == "ready"
    piece = pieces(ONE)[0]
    assert other.store.open(piece.digest).ids.tolist() == piece.ids
    assert other.store.commit(piece.header, piece.ids, kv(piece.header, seed=9)) == piece.digest
    other.close()
