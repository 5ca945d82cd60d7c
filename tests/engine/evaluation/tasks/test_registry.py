"""Problems by name: of exactly the wanted length, the same at every call, and refused where they can't be made."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict

import pytest

from engine.errors import LongshelfError
from engine.evaluation.tasks.problem import Encode, score
from engine.evaluation.tasks.registry import TASKS, problem
from tests.engine.evaluation.tasks.haystacks import haystack

DIGESTS = {
    "needle": "d4540db4927a5dc4",
    "needle_ko": "9777e2a48880bdfa",
    "needle_keys": "39a2d5d1c9678064",
    "needle_keys_ko": "3039a7648699bc05",
    "needle_values": "afda749acfe5e71b",
    "needle_values_ko": "d6d1f577af670955",
    "needle_queries": "3a50f4009759ecba",
    "needle_queries_ko": "be818e9be20e87aa",
    "variables": "7a8a1873bd607f54",
    "variables_ko": "56b20ca1bd8c71de",
    "common_words": "b767b2850f130f09",
    "frequent_words": "177e29468ff5568d",
    "relations": "85f249fafe601c13",
}
"""First digits of the SHA-256 of each task's problem of 2,800 tokens with seed 11: what was measured once can be measured again."""


@pytest.mark.parametrize("name", TASKS)
def test_a_text_has_exactly_the_tokens_asked_for(name: str, any_encode: Encode) -> None:
    for tokens, seed in ((2800, 1), (2801, 2), (3333, 3)):
        made = problem(name, tokens, seed, any_encode, haystack(name))
        assert len(any_encode(made.text)) == tokens
        assert (made.name, made.seed, made.level, made.language) == (name, seed, TASKS[name].level, TASKS[name].language)


@pytest.mark.parametrize("name", TASKS)
def test_a_problem_is_the_same_on_every_machine(name: str, encode: Encode) -> None:
    made = problem(name, 2800, 11, encode, haystack(name))
    assert hashlib.sha256(json.dumps(asdict(made), ensure_ascii=False).encode()).hexdigest()[:16] == DIGESTS[name]


@pytest.mark.parametrize("name", TASKS)
def test_another_seed_or_level_is_another_problem(name: str) -> None:
    def questions(level: int) -> set[tuple[str, ...]]:
        found = (problem(name, 4000, seed, str.encode, haystack(name), level) for seed in range(4))
        return {(made.question, *made.answers) for made in found}

    assert len(questions(1)) == 4
    if TASKS[name].levels > 1:
        assert len(questions(1) | questions(2)) == 8


@pytest.mark.parametrize("name", TASKS)
def test_places_ascend_within_the_text_and_the_gold_answer_scores_in_full(name: str) -> None:
    made = problem(name, 3000, 5, str.encode, haystack(name))
    bounds = [bound for place in made.places for bound in place]
    assert bounds == sorted(bounds)
    assert bounds[0] >= 0
    assert bounds[-1] <= len(made.text)
    assert score(made, made.gold) == 1
    assert score(made, "") == 0


@pytest.mark.parametrize("name", TASKS)
def test_too_few_tokens_are_refused(name: str) -> None:
    with pytest.raises(LongshelfError, match=f'"{name}" at level {TASKS[name].level} doesn\'t fit into 20 tokens') as refused:
        problem(name, 20, 1, str.encode, haystack(name))
    assert refused.value.kind == "usage"


@pytest.mark.parametrize("name", [name for name, task in TASKS.items() if task.haystack])
def test_a_task_that_needs_a_haystack_is_refused_without(name: str) -> None:
    with pytest.raises(LongshelfError, match="no sentence to hide anything among"):
        problem(name, 2000, 1, str.encode)


@pytest.mark.parametrize(("name", "level"), [("needle", 2), ("relations", 0), ("relations", 65), ("common_words", -1)])
def test_a_level_that_there_is_not_is_refused(name: str, level: int) -> None:
    with pytest.raises(LongshelfError, match=f'"{name}" has no level {level}') as refused:
        problem(name, 2000, 1, str.encode, haystack(name), level)
    assert (refused.value.kind, refused.value.hint) == ("usage", f"Choose a level from 1 to {TASKS[name].levels}.")


def test_an_unknown_task_is_refused_with_those_there_are() -> None:
    with pytest.raises(LongshelfError, match='no task "needles"') as refused:
        problem("needles", 2000, 1, str.encode)
    assert "needle_queries_ko" in refused.value.hint
