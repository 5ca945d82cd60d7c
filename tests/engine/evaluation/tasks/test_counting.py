"""Counting the words of a list gives the asked ones, with none as frequent beside them."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from engine.evaluation.tasks.counting import OFTEN, SELDOM, most_common
from engine.evaluation.tasks.problem import Problem
from engine.evaluation.tasks.registry import problem


def made(name: str, seed: int, level: int | None = None, tokens: int = 3000) -> Problem:
    return problem(name, tokens, seed, str.encode, level=level)


def counts(text: str) -> Counter[str]:
    """Of the coined words."""
    return Counter(re.findall(r"\b(?:[bdklmnrstv][aeiou]){3}[lmnrst]\b", text))


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("level", [1, 5, 12])
def test_common_words_stand_often_and_all_others_seldom(seed: int, level: int) -> None:
    asked = made("common_words", seed, level)
    found = counts(asked.text)
    assert len(asked.answers) == level
    assert all(found.pop(word) == OFTEN for word in asked.answers)
    assert len(found) >= 10
    assert max(found.values()) <= SELDOM


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("level", [1, 3, 5])
def test_frequent_words_fall_with_the_square_of_their_rank(seed: int, level: int) -> None:
    asked = made("frequent_words", seed, level, tokens=6000)
    ranked = counts(asked.text).most_common()
    assert [word for word, _ in ranked[:level]] == list(asked.answers)
    assert ranked[level - 1][1] > ranked[level][1]
    assert all(count in (ranked[0][1] // rank**2, 1) for rank, (_, count) in enumerate(ranked, 1))
    assert asked.facts["counts"] == dict(ranked[:level])


@pytest.mark.parametrize("name", ["common_words", "frequent_words"])
def test_the_places_are_every_entry_of_the_asked_words(name: str) -> None:
    asked = made(name, 4)
    expected = [(found.start(), found.end()) for found in re.finditer(r"\w+", asked.text) if found[0] in asked.answers]
    assert list(asked.places) == expected
    assert asked.facts["counts"] == {word: counts(asked.text)[word] for word in asked.answers}


def test_a_longer_list_keeps_the_order_of_a_shorter() -> None:
    for name in ("common_words", "frequent_words"):
        short, long = (re.findall(r"\w+", made(name, 6, tokens=tokens).text) for tokens in (2500, 3500))
        rest = iter(long[:-4])
        assert all(word in rest for word in short[:-12])


def test_common_words_stand_all_over_the_list() -> None:
    depths = made("common_words", 8, tokens=6000).depths
    assert [sum(part <= 4 * depth < part + 1 for depth in depths) > 10 for part in range(4)] == [True] * 4


@pytest.mark.parametrize(
    ("level", "start"), [(1, "Which word stands in the list most often? Answer with the word alone."), (2, "Which 2 words stand")]
)
def test_the_question_says_how_many_are_asked(level: int, start: str) -> None:
    assert made("common_words", 1, level).question.startswith(start)


def test_words_as_frequent_as_the_next_are_no_answer() -> None:
    assert most_common("a b a c b a", 2) == ["a", "b"]
    with pytest.raises(ValueError, match="no 1 words"):
        most_common("a b b a c", 1)
    with pytest.raises(ValueError, match="no 2 words"):
        most_common("a a b", 2)
