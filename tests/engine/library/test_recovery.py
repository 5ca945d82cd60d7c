"""A catalog that is damaged or gone is made again without reading anything twice."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from engine.errors import LongshelfError
from engine.home import Home
from engine.library.backup import backup_path
from engine.library.catalog import Catalog
from engine.library.conversation import Chat, Citation, Message
from engine.library.library import Library
from engine.library.recovery import rebuild
from tests.engine.library.shelf import PREAMBLE_DIGEST, add, add_and_remember, flip, new, open_library, pieces, remember
from tests.engine.store.crashing import Step, crashes

GARBAGE = b"garbage " * 4096
ONE, TWO = "It was a bright cold day", "in April"


def talk(library: Library, question: str) -> str:
    chat = library.chats.create("tiny", [("ab12cd34", "Moby-Dick")])
    asked = library.chats.add_user_message(chat.id, None, question)
    answer = library.chats.add_assistant_message(chat.id, asked.id)
    library.chats.finish_message(answer.id, "Ishmael.", "complete", {"tokens": 2})
    return chat.id


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A home with a ready document, a half-read one, and a chat."""
    library = open_library(tmp_path / "home")
    add_and_remember(library, ONE, TWO)
    _, parts = add(library, "The clocks struck 13", TWO, title="Half")
    remember(library, parts[0], "The clocks struck 13", segments=1)
    talk(library, "Who speaks?")
    library.close()
    return library.home.root


def destroy(root: Path) -> None:
    (root / "catalog.db").write_bytes(GARBAGE)


def titles(library: Library) -> dict[str, str]:
    return {row.title: row.state for row in library.documents.all()}


def questions(library: Library) -> list[str]:
    return sorted(chat.title for chat in library.chats.all())


def test_documents_parts_and_segments_come_back_without_a_backup(root: Path) -> None:
    destroy(root)
    result = rebuild(Home(root), floor=0)
    assert (result.documents, result.parts, result.parts_ready, result.segments) == (2, 4, 3, 6)
    assert (result.backup_used, result.unreadable_texts) == (False, [])
    library = open_library(root)
    library.catalog.check(deep=True)
    assert titles(library) == {"Moby-Dick": "ready", "Half": "queued"}
    half = next(row for row in library.documents.all() if row.title == "Half")
    assert [part.tokens_done for part in library.parts.of(half.id)] == [8, 8]
    assert [job.document_id for job in library.jobs.all()] == [half.id]
    assert library.search.rank_parts("bright", [row.id for row in library.documents.all()])
    assert library.memory.collect().segments == 0  # the preamble is known to be shared
    assert library.store.has(PREAMBLE_DIGEST)
    library.close()


def test_the_damaged_file_is_kept_as_it_was_found(root: Path) -> None:
    destroy(root)
    before = (root / "catalog.db").read_bytes()
    aside = rebuild(Home(root), floor=0).aside
    assert aside is not None
    assert aside.name.startswith("catalog.db.damaged-")
    assert aside.read_bytes() == before


def snapshot(library: Library) -> list[tuple[Chat, list[Message]]]:
    return [(chat, library.chats.messages(chat.id)) for chat in library.chats.all()]


@pytest.mark.parametrize("backed_up", [False, True])
def test_chats_come_back_as_they_were_though_nothing_of_the_catalog_is_left(root: Path, backed_up: bool) -> None:
    library = open_library(root)
    (old,) = library.chats.all()
    if backed_up:
        library.catalog.back_up_daily()
    asked = library.chats.add_user_message(old.id, library.chats.newest_path(old.id)[-1].id, "And then?")
    answer = library.chats.add_assistant_message(old.id, asked.id, {"mode": "exact"})
    cited = [Citation(1, "ab12cd34", "Moby-Dick", 0, 8, 15, 3, "Loomings", 12, "Ishmael", 0.8)]
    library.chats.finish_message(answer.id, "“Call me Ishmael.” 이슈메일", "complete", {"ttft_s": 0.5}, cited)
    library.chats.rename(old.id, "Mine")
    talk(library, "What happened then?")
    before = snapshot(library)
    library.close()
    destroy(root)
    result = rebuild(Home(root), floor=0)
    assert (result.chats, result.unreadable_chats) == (2, [])
    library = open_library(root)
    assert snapshot(library) == before
    assert [hit.message_id for hit in library.search.find_messages("이슈메일")] == [answer.id]
    library.close()


def test_a_chat_that_was_removed_does_not_come_back(root: Path) -> None:
    library = open_library(root)
    talk(library, "What happened then?")
    library.catalog.back_up_daily()
    library.chats.remove(next(chat.id for chat in library.chats.all() if chat.title == "Who speaks?"))
    library.close()
    destroy(root)
    rebuild(Home(root), floor=0)
    library = open_library(root)
    assert questions(library) == ["What happened then?"]
    library.close()


def test_a_question_that_was_not_yet_answered_comes_back_as_one_that_failed(root: Path) -> None:
    library = open_library(root)
    chat = library.chats.create("tiny")
    asked = library.chats.add_user_message(chat.id, None, "Under way?")
    library.chats.add_assistant_message(chat.id, asked.id)
    library.close()
    destroy(root)
    rebuild(Home(root), floor=0)
    library = open_library(root)
    assert [(message.text, message.status) for message in library.chats.messages(chat.id)] == [("Under way?", "complete"), ("", "failed")]
    library.close()


def test_the_backup_stands_in_for_a_damaged_file_which_is_kept_aside(root: Path) -> None:
    library = open_library(root)
    library.catalog.back_up_daily()
    (chat,) = library.chats.all()
    library.chats.rename(chat.id, "Later")
    path = library.transcripts.path(chat.id)
    flip(path, 200)
    damaged = path.read_bytes()
    library.close()
    destroy(root)
    assert rebuild(Home(root), floor=0).unreadable_chats == [chat.id]
    library = open_library(root)
    assert questions(library) == ["Who speaks?"]
    assert library.transcripts.load(chat.id).chat["title"] == "Who speaks?"
    assert path.with_name(path.name + ".damaged").read_bytes() == damaged
    library.close()


def test_a_damaged_file_that_nothing_stands_in_for_is_told_and_left(root: Path) -> None:
    library = open_library(root)
    (chat,) = library.chats.all()
    flip(library.transcripts.path(chat.id), 200)
    library.close()
    destroy(root)
    assert rebuild(Home(root), floor=0).unreadable_chats == [chat.id]
    library = open_library(root)
    assert questions(library) == []
    assert library.transcripts.path(chat.id).exists()
    library.close()


def forget_files(library: Library) -> None:
    """A home of an earlier version, whose chats had no files."""
    shutil.rmtree(library.transcripts.folder)


def test_chats_from_before_they_had_files_come_back_from_the_backup(root: Path) -> None:
    library = open_library(root)
    library.catalog.back_up_daily()
    forget_files(library)
    library.close()
    destroy(root)
    result = rebuild(Home(root), floor=0)
    assert (result.backup_used, result.chats) == (True, 1)
    library = open_library(root)
    assert questions(library) == ["Who speaks?"]
    (hit,) = library.search.find_messages("Ishmael")
    assert library.chats.message(hit.message_id).meta == {"tokens": 2}
    library.close()


def test_chats_from_before_they_had_files_come_back_from_the_damaged_file(root: Path) -> None:
    library = open_library(root)
    library.catalog.back_up_daily()
    talk(library, "What happened then?")
    library.chats.remove(library.chats.all()[1].id)
    forget_files(library)
    page = library.catalog.rows("SELECT rootpage FROM sqlite_master WHERE name = 'documents'")[0]["rootpage"]
    library.close()
    content = bytearray((root / "catalog.db").read_bytes())
    content[(page - 1) * 4096 : page * 4096] = b"\xff" * 4096
    (root / "catalog.db").write_bytes(content)
    with pytest.raises(LongshelfError):
        open_library(root)
    rebuild(Home(root), floor=0)
    library = open_library(root)
    assert questions(library) == ["What happened then?"]  # the removed one stays removed
    assert [message.status for message in library.chats.messages(library.chats.all()[0].id)] == ["complete", "complete"]
    assert len(titles(library)) == 2
    library.close()


def test_what_was_added_or_removed_since_the_backup_is_as_it_was(root: Path) -> None:
    library = open_library(root)
    library.catalog.back_up_daily()
    library.memory.remove_document(library.documents.find("Half").id)
    add_and_remember(library, "a later book", title="Later")
    changed = library.documents.find("Moby-Dick")
    library.documents.rename(changed.id, "The Whale")
    library.close()
    destroy(root)
    rebuild(Home(root), floor=0)
    library = open_library(root)
    assert titles(library) == {"The Whale": "ready", "Later": "ready"}
    library.close()


def test_a_damaged_backup_is_not_used(root: Path) -> None:
    library = open_library(root)
    library.catalog.back_up_daily()
    library.close()
    copy = backup_path(root / "catalog.db")
    copy.write_bytes(copy.read_bytes()[:5000])
    destroy(root)
    result = rebuild(Home(root), floor=0)
    assert not result.backup_used
    assert result.documents == 2


def test_a_damaged_segment_is_left_out_and_its_part_read_from_there(root: Path) -> None:
    library = open_library(root)
    flip(library.store.path(pieces(ONE)[1].digest), 100)
    library.close()
    destroy(root)
    rebuild(Home(root), floor=0)
    library = open_library(root)
    whale = library.documents.find("Moby-Dick")
    assert [part.tokens_done for part in library.parts.of(whale.id)] == [8, 8]
    assert whale.state == "queued"
    library.close()


def test_a_text_that_is_damaged_too_is_told(root: Path) -> None:
    library = open_library(root)
    lost = library.documents.find("Half")
    library.close()
    flip(library.texts.path(lost.id), 300)
    destroy(root)
    result = rebuild(Home(root), floor=0)
    assert result.unreadable_texts == [lost.id]
    assert result.documents == 1


def test_a_text_that_is_damaged_is_replaced_by_that_of_the_backup(root: Path) -> None:
    library = open_library(root)
    library.catalog.back_up_daily()
    lost = library.documents.find("Half")
    library.close()
    flip(library.texts.path(lost.id), 300)
    destroy(root)
    assert rebuild(Home(root), floor=0).unreadable_texts == []
    library = open_library(root)
    assert library.documents.text(lost.id) == "The clocks struck 13" + TWO
    assert library.texts.load(lost.id).document["text"] == "The clocks struck 13" + TWO
    assert library.documents.get(lost.id).state == "queued"
    library.close()


def test_a_catalog_that_is_gone_is_made_again(root: Path) -> None:
    (root / "catalog.db").unlink()
    result = rebuild(Home(root), floor=0)
    assert result.aside is None
    library = open_library(root)
    assert len(titles(library)) == 2
    library.close()


def test_a_log_of_the_damaged_file_never_meets_the_new_one(root: Path) -> None:
    library = open_library(root)
    reader = Catalog.open(library.home.catalog)  # keeps the log from being folded in
    reader.rows("SELECT 1")
    library.documents.add(new("in the log", title="Log"))
    library.close()
    log = (root / "catalog.db-wal").read_bytes()
    assert log
    reader.close()
    destroy(root)
    (root / "catalog.db-wal").write_bytes(log)
    aside = rebuild(Home(root), floor=0).aside
    assert aside is not None
    assert aside.with_name(aside.name + "-wal").read_bytes() == log
    library = open_library(root)
    library.catalog.check(deep=True)
    assert "Log" in titles(library)
    library.close()


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_a_rebuild_killed_at_any_step_can_be_done_again(root: Path) -> None:
    library = open_library(root)
    library.catalog.back_up_daily()
    library.close()
    destroy(root)

    def again(step: Step) -> None:
        rebuild(Home(root), floor=0)

    for _ in crashes(again):
        if (root / "catalog.db").read_bytes() == GARBAGE:
            with pytest.raises(LongshelfError, match="damaged"):
                open_library(root)
            continue
        library = open_library(root)
        assert len(titles(library)) == 2
        assert questions(library) == ["Who speaks?"]
        library.close()
        destroy(root)
    library = open_library(root)
    library.sweep_temporaries()
    assert len(titles(library)) == 2
    assert questions(library) == ["Who speaks?"]
    library.close()
