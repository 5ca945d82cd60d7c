"""A relational problem is solved from its text alone, has one answer, and no line of it tells whose chain it is."""

from __future__ import annotations

import re
from collections import Counter, defaultdict

import pytest

from engine.evaluation.tasks.problem import Encode, Problem
from engine.evaluation.tasks.registry import problem
from engine.evaluation.tasks.relations import LEAST_VALUE, MOST_VALUE
from engine.evaluation.tasks.solving import Line, lines_of, solve

SEEDS = 200


def made(seed: int, level: int, tokens: int = 700) -> Problem:
    return problem("relations", tokens, seed, str.encode, level=level)


def chains(text: str) -> list[list[Line]]:
    """The lines of each chain from its number on."""
    lines = lines_of(text)
    behind = {line.of: line for line in lines}
    found = [[line] for line in lines if line.of is None]
    for chain in found:
        while chain[-1].name in behind:
            chain.append(behind[chain[-1].name])
    return found


@pytest.mark.parametrize("level", range(1, 9))
def test_the_text_alone_proves_the_answer(level: int) -> None:
    for seed in range(SEEDS):
        asked = made(seed, level)
        name = re.fullmatch(r"What number is (\w+)\? Answer with the number alone\.", asked.question)
        assert name is not None
        solution = solve(asked.text, name[1])
        assert asked.answers == (str(solution.value),)
        assert solution.operations == level
        assert list(solution.path) == asked.facts["path"][::-1]
        assert LEAST_VALUE <= solution.value <= MOST_VALUE


@pytest.mark.parametrize("level", [1, 4, 8])
def test_each_line_of_the_evidence_is_needed_and_no_other(level: int) -> None:
    for seed in range(12):
        asked = made(seed, level)
        assert len(asked.places) == level + 1
        evidence = [asked.text[start:end] for start, end in asked.places]
        assert solve("\n".join(evidence), asked.facts["asked"]).value == int(asked.gold)
        for line in evidence:
            with pytest.raises(ValueError, match="is not given"):
                solve(asked.text.replace(f"{line}\n", "").replace(f"\n{line}", ""), asked.facts["asked"])


@pytest.mark.parametrize("level", range(1, 9))
def test_chains_can_not_be_told_apart_by_form_or_frequency(level: int) -> None:
    for seed in range(20):
        asked = made(seed, level)
        words = Counter(re.findall(r"\w+", asked.text))
        features = [
            (
                Counter("number" if line.of is None else "more" if line.number > 0 else "less" for line in chain),
                [words[line.name] for line in chain],
                [len(line.name) for line in chain],
            )
            for chain in chains(asked.text)
        ]
        assert len(features) == asked.facts["chains"] >= 2
        assert all(feature == features[0] for feature in features)


def test_numbers_and_places_of_the_asked_chain_are_those_of_any() -> None:
    found: dict[bool, list[tuple[float, float, float]]] = defaultdict(list)
    for seed in range(250):
        asked = made(seed, 3, tokens=900)
        order = [line.name for line in lines_of(asked.text)]
        for chain in chains(asked.text):
            places = [order.index(line.name) / len(order) for line in chain]
            steps = [abs(line.number) for line in chain[1:]]
            found[chain[-1].name == asked.facts["asked"]].append((chain[0].number, sum(steps) / 3, sum(places) / 4))
    means = {own: [sum(column) / len(rows) for column in zip(*rows, strict=True)] for own, rows in found.items()}
    assert means[True][0] == pytest.approx(means[False][0], abs=5)  # roots lie within 20 … 79
    assert means[True][1] == pytest.approx(means[False][1], abs=0.5)  # steps within 1 … 9
    assert means[True][2] == pytest.approx(means[False][2], abs=0.05)  # places within 0 … 1


def test_no_value_on_the_way_is_the_answer() -> None:
    for seed in range(100):
        asked = made(seed, 6)
        on_the_way = [solve(asked.text, name).value for name in asked.facts["path"]]
        assert on_the_way[-1] == int(asked.gold)
        assert on_the_way[-1] not in on_the_way[:-1]


def test_lines_of_a_chain_stand_in_any_order() -> None:
    orders = set()
    for seed in range(60):
        asked = made(seed, 2)
        order = [line.name for line in lines_of(asked.text)]
        orders.add(tuple(sorted(range(3), key=lambda place: order.index(asked.facts["path"][place]))))
    assert len(orders) == 6


def test_more_tokens_make_more_chains_around_the_same_question(encode: Encode) -> None:
    short, long = (problem("relations", tokens, 7, encode, level=4) for tokens in (600, 2400))
    assert (short.question, short.answers) == (long.question, long.answers)
    assert long.facts["chains"] > 3 * short.facts["chains"]


# ---- the solver ----


def test_the_solver_follows_names_wherever_they_stand() -> None:
    solution = solve("Some words.\nc = b - 4\na = 7\nb = a + 12\nd = 1\n", "c")
    assert (solution.value, solution.path, solution.operations) == (15, ("c", "b", "a"), 2)
    assert solve("a = 7", "a").operations == 0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a = 1\na = 1\nb = a + 1", "a is given twice"),
        ("a = 1\nb = c + 1", "c is not given"),
        ("a = 1", "b is not given"),
        ("b = c + 1\nc = b - 1", "b rests on itself"),
        ("a = 1\nb = a + 1\nc = c + 1", "c rests on itself"),
        ("a = 1\nb = 2 * a", "a line can't be read: b = 2 \\* a"),
        ("a = 1\nb = a + 1 .", "a line can't be read"),
    ],
)
def test_a_text_that_does_not_prove_one_answer_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        solve(text, "b")
