"""Relational problems: a quantity that rests on another, that on a third, and so on, among chains that look the same.

After the symbolic problems of GSM-Infinite (Zhou et al. 2025, arXiv:2502.05252), whose length and whose number of operations are
set apart from each other. Here every chain has as many lines of each form as the asked one, every name stands in the text as often as
its counterpart, numbers are drawn alike, and all lines are shuffled: only following the names leads to the answer. Values
stay between 1 and 99, so no modulus is needed, and each operation changes the value.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from engine.evaluation.tasks.coining import coin
from engine.evaluation.tasks.draws import Draws
from engine.evaluation.tasks.filling import Draft, closing, fill
from engine.evaluation.tasks.problem import Problem, Wanted
from engine.evaluation.tasks.solving import solve

LEAST_ROOT, MOST_ROOT = 20, 79
LEAST_STEP, MOST_STEP = 1, 9
LEAST_VALUE, MOST_VALUE = 1, 99

_HEADER = "Each line gives one quantity. Their order means nothing.\n\n"
_END = "\n\nThe lines end here."


@dataclass(frozen=True)
class Chain:
    """names[0] is the number `root`, and each further name the one before it and a step more; the last is asked for."""

    names: tuple[str, ...]
    root: int
    steps: tuple[int, ...]

    @property
    def value(self) -> int:
        return self.root + sum(self.steps)

    def lines(self) -> list[str]:
        first = f"{self.names[0]} = {self.root}"
        pairs = zip(pairwise(self.names), self.steps, strict=True)
        return [first, *(f"{name} = {of} {'+' if step > 0 else '-'} {abs(step)}" for (of, name), step in pairs)]


def relations(wanted: Wanted) -> Problem:
    """A chain of `level` operations among others of as many. facts: asked, chains (how many), path (names from the root on)."""
    growing = _Chains(wanted.level, wanted.draws())
    filled = fill(growing, wanted)
    chain = growing.chain(0)
    asked = chain.names[-1]
    solution = solve(filled.text, asked)
    assert solution.value == chain.value, f"{asked} is {solution.value}, not {chain.value}"
    assert solution.operations == wanted.level, f"{asked} takes {solution.operations} operations, not {wanted.level}"
    question = f"What number is {asked}? Answer with the number alone."
    facts = {"asked": asked, "chains": filled.units, "path": list(chain.names)}
    return wanted.problem(filled.text, question, [str(solution.value)], filled.places, facts)


class _Chains:
    """A `Growing` text: units are chains, the first of them asked. Each line has a drawn place among the others."""

    least = 2

    def __init__(self, operations: int, draws: Draws) -> None:
        self._operations, self._draws = operations, draws
        self._names = coin(draws.branch("names"))
        more = draws.branch("forms").below(2)  # of an odd number of operations, which form has one more
        self._plus = (operations + more) // 2
        self._chains: list[Chain] = []
        self._placed: list[list[tuple[int, str]]] = []

    def chain(self, number: int) -> Chain:
        while len(self._chains) <= number:
            draws = self._draws.branch("chain", len(self._chains))
            chain = self._drawn(draws)
            self._chains.append(chain)
            self._placed.append([(draws.below(1 << 60), line) for line in chain.lines()])
        return self._chains[number]

    def draft(self, units: int) -> Draft:
        self.chain(units - 1)
        draft = Draft()
        draft.add(_HEADER)
        lines = sorted((place, line, number == 0) for number in range(units) for place, line in self._placed[number])
        for number, (_, line, evidence) in enumerate(lines):
            if number:
                draft.add("\n")
            draft.add(line, evidence)
        draft.add(_END)
        return draft

    def words(self, units: int, count: int) -> str:
        return closing(count)

    def _drawn(self, draws: Draws) -> Chain:
        names = tuple(next(self._names) for _ in range(self._operations + 1))
        signs = draws.shuffled([1] * self._plus + [-1] * (self._operations - self._plus))
        while True:  # until every value on the way is small and the last one is new
            root = draws.between(LEAST_ROOT, MOST_ROOT)
            steps = tuple(sign * draws.between(LEAST_STEP, MOST_STEP) for sign in signs)
            on_the_way = [root + sum(steps[:n]) for n in range(len(steps) + 1)]
            small = all(LEAST_VALUE <= value <= MOST_VALUE for value in on_the_way)
            if small and on_the_way[-1] not in on_the_way[:-1]:
                return Chain(names, root, steps)
