"""Needles stand in the text as they are asked for, once each, and nowhere else."""

from __future__ import annotations

import re

import pytest

from engine.evaluation.tasks.problem import Encode, Problem, score
from engine.evaluation.tasks.registry import problem
from tests.engine.evaluation.tasks.haystacks import haystack

NEEDLE = re.compile(r"(?:The|One) passcode of (\w+) is (\d{6})\.|([가-힣]+)의 사물함 번호(?: 가운데 하나)?는 (\d{6})이다\.")
NAMES = ("needle", "needle_keys", "needle_values", "needle_queries")


def made(name: str, seed: int, level: int | None = None, tokens: int = 2600) -> Problem:
    return problem(name, tokens, seed, str.encode, haystack(name), level)


def told(text: str) -> list[tuple[str, str]]:
    """(key, value) of every needle, read from the text."""
    return [(found[1] or found[3], found[2] or found[4]) for found in NEEDLE.finditer(text)]


@pytest.mark.parametrize("language", ["", "_ko"])
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("name", NAMES)
def test_the_text_gives_the_asked_values_and_no_other(name: str, language: str, seed: int) -> None:
    asked = made(name + language, seed)
    needles = told(asked.text)
    keys = asked.facts["keys"]
    wanted = [value for key in keys for name, value in needles if name == key]
    assert list(asked.answers) == wanted
    assert {name for name, _ in needles} == {*keys, *asked.facts["others"]}
    assert len({value for _, value in needles}) == len(needles)
    assert all(asked.text.count(value) == 1 for value in asked.answers)
    assert all(key in asked.question for key in keys)
    assert not any(key in asked.question for key in asked.facts["others"])


@pytest.mark.parametrize("language", ["", "_ko"])
@pytest.mark.parametrize("name", NAMES)
def test_the_places_hold_the_needles(name: str, language: str) -> None:
    asked = made(name + language, 3)
    held = [told(asked.text[start:end]) for start, end in asked.places]
    assert all(len(one) == 1 for one in held)
    assert sorted(one[0][1] for one in held) == sorted(asked.answers)
    assert {one[0][0] for one in held} == set(asked.facts["keys"])


@pytest.mark.parametrize(
    ("name", "level", "keys", "others", "needles"),
    [("needle", 1, 1, 0, 1), ("needle_keys", 9, 1, 9, 10), ("needle_values", 6, 1, 0, 6), ("needle_queries", 5, 5, 0, 5)],
)
def test_a_level_says_how_many_there_are(name: str, level: int, keys: int, others: int, needles: int) -> None:
    asked = made(name, 1, level)
    assert (len(asked.facts["keys"]), len(asked.facts["others"]), len(told(asked.text))) == (keys, others, needles)


def test_several_values_are_wanted_in_the_order_of_the_text() -> None:
    for seed in range(20):
        asked = made("needle_values", seed)
        assert [asked.text.index(value) for value in asked.answers] == sorted(asked.text.index(value) for value in asked.answers)


def test_depths_are_drawn_over_the_whole_text() -> None:
    depths = [made("needle", seed, tokens=1500).depths[0] for seed in range(60)]
    assert min(depths) < 0.15
    assert max(depths) > 0.85
    assert 0.35 < sum(depths) / len(depths) < 0.65


def test_the_same_needles_are_hidden_in_a_longer_text() -> None:
    short, long = made("needle_keys", 4, tokens=2600), made("needle_keys", 4, tokens=5200)
    assert (short.question, short.answers, sorted(told(short.text))) == (long.question, long.answers, sorted(told(long.text)))


def test_no_sentence_of_the_haystack_has_a_word_of_the_needle() -> None:
    spoiled = ["Nobody on board knew the passcode of the ferry.", "The old Passcodes were written on slate."]
    asked = problem("needle", 2000, 2, str.encode, [*haystack("needle"), *spoiled * 9])
    assert asked.text.casefold().count("passcode") == 1


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("needle", r"What is the passcode of \w+\?"),
        ("needle_values", r"There are 4 passcodes of \w+\. What are they\?"),
        ("needle_queries", r"What are the passcodes of \w+, \w+, \w+ and \w+\?"),
        ("needle_ko", r"[가-힣]+의 사물함 번호는 무엇입니까\?"),
        ("needle_values_ko", r"[가-힣]+의 사물함 번호는 모두 4개입니다\."),
        ("needle_queries_ko", r"[가-힣]+, [가-힣]+, [가-힣]+, [가-힣]+의 사물함 번호는 각각 무엇입니까\?"),
    ],
)
def test_questions_read_well(name: str, question: str) -> None:
    assert re.match(question, made(name, 1).question)


def test_the_answer_of_another_needle_scores_nothing(encode: Encode) -> None:
    asked = problem("needle_keys", 2600, 5, encode, haystack("needle_keys"))
    others = [value for name, value in told(asked.text) if name not in asked.facts["keys"]]
    assert score(asked, " ".join(others)) == 0
    assert score(asked, " ".join([*others, asked.gold])) == 1
