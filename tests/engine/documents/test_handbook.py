"""The handbook reads as a document, in both languages, and answers the questions that come with it."""

from __future__ import annotations

import pytest

import resources
from engine.documents.files import FILE_LIMIT
from engine.documents.reader import read
from engine.documents.skipping import FOLDER_FILE_LIMIT
from engine.documents.walk import FILE_COUNT_LIMIT

ANSWERS = {
    "How many tokens does the window of the default model hold?": ("Its window holds 8,192 tokens.", "The trial model"),
    "What is the licence of the default model?": ("under the Apache-2.0 licence", "The trial model"),
    "Which language does the default model read?": ("It reads English only", "The trial model"),
    "파일 하나의 크기는 얼마까지인가요?": ("파일 하나의 크기는 64 MB까지입니다.", "문서 추가하기"),
    "어떤 키를 누르면 답변이 멈추나요?": ("Esc 키를 누르면 답변이 멈추고", "질문하기"),
    "Longshelf는 모든 것을 어디에 보관하나요?": ("홈이라고 부르는 폴더 하나에 보관합니다", "보관하는 곳"),
}


@pytest.mark.parametrize("language", ["en", "ko"])
def test_each_question_is_answered_in_so_many_words(language: str) -> None:
    document = read(resources.handbook(language))
    questions = resources.questions(language)
    assert len(questions) == 3
    for question in questions:
        answer, section = ANSWERS[question]
        assert document.place(document.text.index(answer)).section == section


@pytest.mark.parametrize(("language", "title"), [("en", "The Longshelf handbook"), ("ko", "Longshelf 안내서")])
def test_the_handbook_has_its_heading_as_title(language: str, title: str) -> None:
    assert read(resources.handbook(language)).title == title


def test_both_languages_have_the_same_sections() -> None:
    counts = [len([s for s in read(resources.handbook(language)).spans if s.kind == "section"]) for language in ("en", "ko")]
    assert counts[0] == counts[1] > 8


def test_a_language_without_a_handbook_gets_the_english_one() -> None:
    assert resources.handbook("fr") == resources.handbook("en")
    assert resources.questions("fr") == resources.questions("en")


def test_the_limits_it_states_are_those_of_the_readers() -> None:
    text = read(resources.handbook("en")).text
    assert (FILE_LIMIT, FOLDER_FILE_LIMIT, FILE_COUNT_LIMIT) == (64 * 2**20, 2 * 2**20, 20_000)
    for stated in ("up to 64 MB", "up to 20,000 files", "larger than 2 MB"):
        assert stated in text
