"""Where the numbers of citations stand in an answer."""

from __future__ import annotations

from app.chat.markdown import END_MARK, MARK
from app.chat.numbers import placed


def shown(answer: str, *quotes: str) -> str:
    citations = [{"number": number, "quote": quote} for number, quote in enumerate(quotes, 1)]
    return placed(answer, citations).replace(MARK, "[").replace(END_MARK, "]")


def test_a_number_follows_the_words_that_stand_in_the_source() -> None:
    quote = "that a single man in possession of a good fortune, must be in want of a wife"
    answer = "It says that a single man in possession of a good fortune is rich."
    assert shown(answer, quote) == "It says that a single man in possession of a good fortune[1] is rich."


def test_the_longest_shared_run_wins() -> None:
    answer = "in want of a dog, but a man must be in want of a wife."
    assert shown(answer, "must be in want of a wife") == "in want of a dog, but a man must be in want of a wife[1]."


def test_a_passage_that_is_not_quoted_gets_no_place() -> None:
    assert shown("He is rich.", "a single man in possession of a good fortune") == "He is rich."


def test_line_ends_and_case_do_not_matter() -> None:
    assert shown("A Single Man in possession of it", "of a single\nman in possession") == "A Single Man in possession[1] of it"


def test_numbers_at_the_same_place_stand_side_by_side() -> None:
    assert (
        shown("one two three four five.", "one two three four", "two three four", "x one two three four y")
        == "one two three four[1][3] five."
    )


def test_korean_words_are_words() -> None:
    assert shown("그는 키가 크고 마른 젊은 사람이다.", "어떤 키가 크고 마른 젊은 남자") == "그는 키가 크고 마른 젊은[1] 사람이다."


def test_marks_in_the_answer_itself_are_removed() -> None:
    assert placed(f"x{MARK}7{END_MARK}", []) == "x7"
