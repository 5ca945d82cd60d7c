"""Chats: questions saved first, answers finished later, branches kept."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from engine.errors import LongshelfError
from engine.library.chats import title_from
from engine.library.conversation import Chat, Citation
from engine.library.library import Library
from engine.library.transcripts import Transcript

QUOTE = Citation(1, "ab12cd34", "Moby-Dick", 0, 8, 15, 3, "Loomings", 12, "Ishmael", 0.8)


@pytest.fixture
def chat(library: Library) -> Chat:
    return library.chats.create("tiny", [("ab12cd34", "Moby-Dick")])


def test_a_question_stands_before_its_answer(library: Library, chat: Chat) -> None:
    asked = library.chats.add_user_message(chat.id, None, "Who speaks?")
    answer = library.chats.add_assistant_message(chat.id, asked.id, {"mode": "exact"})
    assert [(message.role, message.status) for message in library.chats.messages(chat.id)] == [
        ("user", "complete"),
        ("assistant", "pending"),
    ]
    done = library.chats.finish_message(answer.id, "Ishmael.", "complete", {"ttft_s": 0.5}, [QUOTE])
    assert (done.text, done.status, done.meta, done.citations) == ("Ishmael.", "complete", {"mode": "exact", "ttft_s": 0.5}, (QUOTE,))
    assert library.chats.path(done.id) == [asked, done]


def test_the_title_is_the_first_question(library: Library, chat: Chat) -> None:
    library.chats.add_user_message(chat.id, None, "Who\n speaks?")
    library.chats.add_user_message(chat.id, None, "And who else?")
    assert library.chats.get(chat.id).title == "Who speaks?"
    assert library.chats.rename(chat.id, " Mine ").title == "Mine"


def test_long_titles_are_cut_at_a_word() -> None:
    long = title_from("Which of the officers of the Pequod objects first when the captain names what they hunt for?")
    assert long == "Which of the officers of the Pequod objects first when the…"
    assert title_from("가" * 100) == "가" * 60 + "…"


def test_editing_a_question_adds_a_branch(library: Library, chat: Chat) -> None:
    first = library.chats.add_user_message(chat.id, None, "first")
    answer = library.chats.add_assistant_message(chat.id, first.id)
    follow = library.chats.add_user_message(chat.id, answer.id, "follow-up")
    edited = library.chats.add_user_message(chat.id, answer.id, "edited")
    other = library.chats.add_user_message(chat.id, None, "another beginning")
    assert [message.text for message in library.chats.path(follow.id)] == ["first", "", "follow-up"]
    assert [message.id for message in library.chats.children(chat.id, answer.id)] == [follow.id, edited.id]
    assert [message.id for message in library.chats.children(chat.id, None)] == [first.id, other.id]
    assert library.chats.newest_path(chat.id) == [other]
    assert len(library.chats.messages(chat.id)) == 5


def test_an_answer_that_a_crash_cut_off_has_failed_with_what_it_said(library: Library, chat: Chat) -> None:
    asked = library.chats.add_user_message(chat.id, None, "Who speaks?")
    answer = library.chats.add_assistant_message(chat.id, asked.id)
    library.chats.keep_text(answer.id, "Ish")
    (failed,) = library.chats.fail_interrupted()
    assert (failed.id, failed.text, failed.status, failed.meta) == (answer.id, "Ish", "failed", {"reason": "interrupted"})
    assert library.chats.fail_interrupted() == []


def test_text_that_comes_after_the_end_is_not_taken(library: Library, chat: Chat) -> None:
    asked = library.chats.add_user_message(chat.id, None, "Who speaks?")
    answer = library.chats.add_assistant_message(chat.id, asked.id)
    library.chats.finish_message(answer.id, "Ishmael.", "stopped")
    library.chats.keep_text(answer.id, "late")
    assert library.chats.message(answer.id).text == "Ishmael."


def test_a_message_of_another_chat_is_no_parent(library: Library, chat: Chat) -> None:
    other = library.chats.create("tiny")
    asked = library.chats.add_user_message(other.id, None, "elsewhere")
    with pytest.raises(LongshelfError) as caught:
        library.chats.add_user_message(chat.id, asked.id, "here")
    assert caught.value.kind == "not_found"
    assert library.chats.messages(chat.id) == []


def test_the_chat_used_last_comes_first(library: Library, chat: Chat) -> None:
    later = library.chats.create("tiny")
    assert [found.id for found in library.chats.all()] == [later.id, chat.id]
    library.chats.add_user_message(chat.id, None, "again")
    assert [found.id for found in library.chats.all()] == [chat.id, later.id]


def test_documents_and_model_can_change_and_outlive_what_they_name(library: Library, chat: Chat) -> None:
    changed = library.chats.set_documents(chat.id, [("1", "One"), ("2", "Two")])
    assert changed.documents == (("1", "One"), ("2", "Two"))
    assert library.chats.set_model(chat.id, "better").model == "better"


def test_a_removed_chat_is_gone_with_its_messages(library: Library, chat: Chat) -> None:
    asked = library.chats.add_user_message(chat.id, None, "Who speaks?")
    library.chats.remove(chat.id)
    for gone in (lambda: library.chats.get(chat.id), lambda: library.chats.message(asked.id), lambda: library.chats.remove(chat.id)):
        with pytest.raises(LongshelfError) as caught:
            gone()
        assert caught.value.kind == "not_found"
    assert library.search.find_messages("speaks") == []


def kept(library: Library, chat: Chat) -> Transcript:
    return library.transcripts.load(chat.id)


def test_every_change_is_in_the_file_of_the_chat(library: Library, chat: Chat) -> None:
    assert kept(library, chat).documents == [["ab12cd34", "Moby-Dick"]]
    asked = library.chats.add_user_message(chat.id, None, "Who speaks?")
    assert [message["text"] for message in kept(library, chat).messages] == ["Who speaks?"]
    answer = library.chats.add_assistant_message(chat.id, asked.id)
    library.chats.finish_message(answer.id, "Ishmael.", "complete", {"ttft_s": 0.5}, [QUOTE])
    said = kept(library, chat).messages[1]
    assert (said["text"], said["status"], said["meta"], said["citations"]) == ("Ishmael.", "complete", {"ttft_s": 0.5}, [asdict(QUOTE)])
    library.chats.rename(chat.id, "Mine")
    library.chats.set_model(chat.id, "better")
    library.chats.set_documents(chat.id, [("2", "Two")])
    assert (kept(library, chat).chat["title"], kept(library, chat).chat["model"]) == ("Mine", "better")
    assert kept(library, chat).documents == [["2", "Two"]]


def test_the_file_goes_with_the_chat(library: Library, chat: Chat) -> None:
    library.chats.remove(chat.id)
    assert list(library.transcripts.ids()) == []


def test_a_change_that_cannot_be_kept_in_the_file_is_not_made(library: Library, chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(transcript: Transcript) -> None:
        raise LongshelfError("disk_full", "The disk is full.")

    monkeypatch.setattr(library.transcripts, "save", full)
    with pytest.raises(LongshelfError):
        library.chats.add_user_message(chat.id, None, "Who speaks?")
    assert library.chats.messages(chat.id) == []


def test_a_chat_is_restored_as_its_file_has_it(library: Library, chat: Chat) -> None:
    asked = library.chats.add_user_message(chat.id, None, "Who speaks?")
    answer = library.chats.add_assistant_message(chat.id, asked.id)
    library.chats.finish_message(answer.id, "Ishmael.", "complete", {"ttft_s": 0.5}, [QUOTE])
    before = (library.chats.get(chat.id), library.chats.messages(chat.id))
    transcript = kept(library, chat)
    library.chats.remove(chat.id)
    library.chats.restore(transcript)
    assert (library.chats.get(chat.id), library.chats.messages(chat.id)) == before


def test_a_restored_message_whose_number_is_taken_gets_another(library: Library, chat: Chat) -> None:
    asked = library.chats.add_user_message(chat.id, None, "Who speaks?")
    transcript = kept(library, chat)
    answer = {**transcript.messages[0], "id": asked.id + 1, "parent_id": asked.id, "role": "assistant", "text": "Ishmael."}
    other = library.chats.create("tiny")
    taken = library.chats.add_user_message(other.id, None, "Elsewhere?")
    assert taken.id == answer["id"]
    library.chats.restore(Transcript(transcript.chat, transcript.documents, [*transcript.messages, answer]))
    first, second = library.chats.messages(chat.id)
    assert (first.id, second.parent_id, second.text) == (asked.id, asked.id, "Ishmael.")
    assert library.chats.messages(other.id) == [taken]
