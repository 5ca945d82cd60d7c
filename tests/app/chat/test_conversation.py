"""A chat as a tree: branches, their siblings, and what is open."""

from __future__ import annotations

import pytest

from app.chat.conversation import Conversation, Message, MessageId


def message(id: MessageId, parent: MessageId | None, role: str = "user") -> Message:
    return Message(id, parent, role, f"text of {id}")


def open_ids(conversation: Conversation) -> list[MessageId]:
    return [message.id for message in conversation.path()]


@pytest.fixture
def branched() -> Conversation:
    """1 → 2 → 3, and an edited question 4 → 5 beside 1."""
    conversation = Conversation("c")
    for id, parent, role in ((1, None, "user"), (2, 1, "assistant"), (3, 2, "user"), (4, None, "user"), (5, 4, "assistant")):
        conversation.add(message(id, parent, role))
    return conversation


def test_the_latest_branch_is_open(branched: Conversation) -> None:
    assert open_ids(branched) == [4, 5]


def test_choosing_a_branch_opens_what_was_open_below_it(branched: Conversation) -> None:
    branched.choose(1)
    assert open_ids(branched) == [1, 2, 3]


def test_siblings_are_the_versions_of_a_message(branched: Conversation) -> None:
    assert branched.siblings(1) == branched.siblings(4) == [1, 4]
    assert branched.siblings(3) == [3]


def test_a_message_keeps_its_place_when_it_gets_its_own_id(branched: Conversation) -> None:
    branched.add(message("local-question", 5))
    branched.add(message("local-answer", "local-question", "assistant"))
    branched.rename("local-question", 6)
    branched.rename("local-answer", 7)
    assert open_ids(branched) == [4, 5, 6, 7]
    assert branched[7].parent_id == 6
    branched.choose(2)
    branched.choose(7)
    assert open_ids(branched) == [4, 5, 6, 7]


def test_what_was_never_saved_can_be_taken_out(branched: Conversation) -> None:
    branched.add(message("local-question", None))
    branched.add(message("local-answer", "local-question", "assistant"))
    branched.discard("local-question")
    assert open_ids(branched) == [4, 5]
    assert "local-answer" not in branched


def test_the_last_question_and_answer_are_those_of_the_open_branch(branched: Conversation) -> None:
    branched.choose(1)
    assert branched.last_question is branched[3]
    assert branched.last_answer is branched[2]


def test_a_saved_chat_opens_at_its_latest_message() -> None:
    rows = [
        {"id": 1, "parent_id": None, "role": "user", "text": "a", "created_at": 1.0},
        {"id": 2, "parent_id": 1, "role": "assistant", "text": "b", "status": "stopped", "created_at": 2.0},
        {"id": 3, "parent_id": None, "role": "user", "text": "c", "created_at": 3.0},
    ]
    conversation = Conversation.of({"id": "c", "title": "t", "documents": ["d"], "messages": rows[::-1]})
    assert open_ids(conversation) == [3]
    assert conversation[2].status == "stopped"
