"""The files of chats come back as they were saved, and damage is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import LongshelfError
from engine.library.transcripts import Transcript, Transcripts
from tests.engine.library.shelf import flip

MESSAGE = {
    "id": 1,
    "parent_id": None,
    "role": "user",
    "text": "누가?",
    "status": "complete",
    "meta": {},
    "created_at": 0.1,
    "citations": [],
}
KEPT = Transcript({"id": "ab12cd34", "title": "Who?", "model": "m", "created_at": 0.1, "updated_at": 0.2}, [["1", "One"]], [MESSAGE])


@pytest.fixture
def transcripts(tmp_path: Path) -> Transcripts:
    return Transcripts(tmp_path / "chats")


def test_a_chat_comes_back_as_it_was_saved(transcripts: Transcripts) -> None:
    transcripts.save(KEPT)
    assert transcripts.load("ab12cd34") == KEPT
    assert list(transcripts.ids()) == ["ab12cd34"]


@pytest.mark.parametrize("at", [40, 150, 250])
def test_a_flipped_bit_is_damage(transcripts: Transcripts, at: int) -> None:
    transcripts.save(KEPT)
    flip(transcripts.path("ab12cd34"), at)
    with pytest.raises(LongshelfError) as caught:
        transcripts.load("ab12cd34")
    assert caught.value.kind == "chat_damaged"


def test_a_file_of_another_kind_is_damage(transcripts: Transcripts) -> None:
    transcripts.save(KEPT)
    path = transcripts.path("ab12cd34")
    path.write_bytes(path.read_bytes().replace(b"longshelf_chat", b"longshelf_text"))
    with pytest.raises(LongshelfError) as caught:
        transcripts.load("ab12cd34")
    assert caught.value.kind == "chat_damaged"


def test_a_chat_without_a_file_is_missing(transcripts: Transcripts) -> None:
    with pytest.raises(LongshelfError) as caught:
        transcripts.load("ab12cd34")
    assert caught.value.kind == "chat_missing"
