"""Variable tracking: chains of assignments hidden in a haystack, and all variables asked that hold a value.

After RULER's task of that name (Hsieh et al. 2024, arXiv:2404.06654). Each chain starts with a number and hands it on, in the order
of the text; all chains are equally long, so nothing but following them tells the asked one.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from engine.evaluation.tasks.coining import coined
from engine.evaluation.tasks.filling import fill
from engine.evaluation.tasks.haystack import DEPTHS, Haystack, Hidden
from engine.evaluation.tasks.problem import Problem, Wanted

CHAINS = 4
LEAST_VALUE, MOST_VALUE = 1000, 9999


@dataclass(frozen=True)
class Wording:
    """How a language says it. words: those that no sentence of the haystack may have."""

    start: str
    link: str
    question: str
    words: tuple[str, ...]


WORDING = {
    "en": Wording(
        start="Variable {name} equals {value}.",
        link="Variable {name} equals variable {value}.",
        question="Which variables equal {value}, directly or through others? Name all {count} and nothing else.",
        words=("variable", "equal"),
    ),
    "ko": Wording(
        start="변수 {name}의 값은 {value}이다.",
        link="변수 {name}의 값은 변수 {value}의 값이다.",
        question="직접이든 다른 변수를 거쳐서든 값이 {value}인 변수는 무엇무엇입니까? {count}개의 이름만 모두 써 주세요.",
        words=("변수", "값"),
    ),
}


def variables(wanted: Wanted) -> Problem:
    """CHAINS chains of `level` hand-overs, so `level` + 1 names are asked for, in the order of the chain. facts: value, chains (names)."""
    draws, wording = wanted.draws(), WORDING[wanted.language]
    length = wanted.level + 1
    names = coined(draws.branch("names"), CHAINS * length, wanted.language)
    chains = [names[first : first + length] for first in range(0, len(names), length)]
    values = draws.branch("values").distinct(LEAST_VALUE, MOST_VALUE, CHAINS)
    at = draws.branch("depths")
    hidden = []
    for number, (chain, value) in enumerate(zip(chains, values, strict=True)):
        said = [wording.start.format(name=chain[0], value=value)]
        said += [wording.link.format(name=name, value=before) for before, name in pairwise(chain)]
        depths = sorted(at.below(DEPTHS) for _ in said)
        hidden += [Hidden(depth, text, number == 0) for depth, text in zip(depths, said, strict=True)]
    without = [*wording.words, *names, *map(str, values)]
    filled = fill(Haystack(wanted.haystack, hidden, without, draws.branch("haystack")), wanted)
    question = wording.question.format(value=values[0], count=length)
    return wanted.problem(filled.text, question, chains[0], filled.places, {"value": values[0], "chains": chains})
