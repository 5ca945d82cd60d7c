"""Reading the assignments in the order of the text gives the asked variables."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from engine.evaluation.tasks.problem import Problem
from engine.evaluation.tasks.registry import problem
from engine.evaluation.tasks.variables import CHAINS
from tests.engine.evaluation.tasks.haystacks import haystack

ASSIGNMENT = re.compile(
    r"Variable (\w+) equals (?:(\d{4})|variable (\w+))\.|변수 ([가-힣]{3})의 값은 (?:(\d{4})이다|변수 ([가-힣]{3})의 값이다)\."
)


def made(name: str, seed: int, level: int | None = None) -> Problem:
    return problem(name, 4000, seed, str.encode, haystack(name), level)


def assignments(text: str) -> list[tuple[str, str]]:
    """(variable, number or variable) in the order of the text."""
    return [(found[1] or found[4], found[2] or found[3] or found[5] or found[6]) for found in ASSIGNMENT.finditer(text)]


def values(text: str) -> dict[str, str]:
    """What each variable holds at the end; a KeyError where one is used before it is assigned."""
    held: dict[str, str] = {}
    for name, given in assignments(text):
        assert name not in held
        held[name] = given if given.isdigit() else held[given]
    return held


@pytest.mark.parametrize("name", ["variables", "variables_ko"])
@pytest.mark.parametrize("seed", range(12))
def test_running_the_assignments_gives_the_answer(name: str, seed: int) -> None:
    asked = made(name, seed)
    held = values(asked.text)
    value = str(asked.facts["value"])
    assert sorted(asked.answers) == sorted(variable for variable, one in held.items() if one == value)
    assert list(held) == [variable for variable, _ in assignments(asked.text)]
    assert value in asked.question


@pytest.mark.parametrize("name", ["variables", "variables_ko"])
def test_the_places_hold_the_assignments_of_the_asked_chain(name: str) -> None:
    asked = made(name, 2)
    held = [assignments(asked.text[start:end]) for start, end in asked.places]
    assert [one[0][0] for one in held] == list(asked.answers)
    assert all(len(one) == 1 for one in held)


@pytest.mark.parametrize("level", [1, 3, 6])
def test_all_chains_are_as_long_as_the_level_says(level: int) -> None:
    asked = made("variables", 1, level)
    counts = Counter(values(asked.text).values())
    assert list(counts.values()) == [level + 1] * CHAINS
    assert f"Name all {level + 1} " in asked.question


def test_chains_stand_among_each_other_over_the_whole_text() -> None:
    problems = [made("variables", seed) for seed in range(20)]
    assert sum(one.depths[-1] - one.depths[0] for one in problems) / 20 > 0.5
    last_of_asked = [[name in one.answers for name, _ in assignments(one.text)] for one in problems]
    assert any(order != sorted(order) and order != sorted(order, reverse=True) for order in last_of_asked)
