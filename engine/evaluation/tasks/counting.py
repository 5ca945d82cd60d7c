"""Counting words: a list of coined words, and those asked that stand in it most often. No few places of the text tell it.

After RULER's common and frequent words (Hsieh et al. 2024, arXiv:2404.06654): either some words stand in the list often and all
others seldom, or the counts fall as 1 / rank² (Zipf). Each entry has a drawn place, so a longer list keeps the order of a shorter.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence

from engine.evaluation.tasks.coining import coin
from engine.evaluation.tasks.draws import Draws
from engine.evaluation.tasks.filling import Draft, closing, fill
from engine.evaluation.tasks.problem import Problem, Wanted

OFTEN, SELDOM = 20, 2
"""How often a common word stands in the list, and any other at most."""

_LEAST_SELDOM = 20
_LEAST_FREQUENT = 16
"""How often the last of the asked frequent words stands in the shortest list; the next one stands there seldomer by 1 / rank."""

_A_LINE = 12
_HEADER = "This is a list of words.\n\n"
_END = "\n\nThe list ends here."
_PLACES = 1 << 60

Entry = tuple[int, str]
"""(place, word): the list is in order of these."""


def common_words(wanted: Wanted) -> Problem:
    """The `level` words that stand OFTEN times among others that stand SELDOM times or less."""
    return _ask(wanted, _Common(wanted.level, wanted.draws()), "In any order.")


def frequent_words(wanted: Wanted) -> Problem:
    """The `level` most frequent words of a Zipf distribution, the most frequent first."""
    return _ask(wanted, _Frequent(wanted.level, wanted.draws()), "The most frequent first.")


class _List(ABC):
    """A `Growing` list of words, `asked` among them."""

    least: int
    asked: list[str]

    @abstractmethod
    def entries(self, units: int) -> list[Entry]:
        """What stands in a list of so many units."""

    def draft(self, units: int) -> Draft:
        draft = Draft()
        draft.add(_HEADER)
        asked = set(self.asked)
        for number, (_, word) in enumerate(sorted(self.entries(units))):
            if number:
                draft.add(" " if number % _A_LINE else "\n")
            draft.add(word, word in asked)
        draft.add(_END)
        return draft

    def words(self, units: int, count: int) -> str:
        return closing(count)


class _Common(_List):
    """Units are entries of seldom words."""

    least = _LEAST_SELDOM

    def __init__(self, asked: int, draws: Draws) -> None:
        names = coin(draws.branch("words"))
        self.asked = [next(names) for _ in range(asked)]
        places = draws.branch("common")
        self._common = [(places.below(_PLACES), word) for word in self.asked for _ in range(OFTEN)]
        self._seldom: list[Entry] = []
        self._more = _seldom(names, draws.branch("seldom"))

    def entries(self, units: int) -> list[Entry]:
        while len(self._seldom) < units:
            self._seldom.append(next(self._more))
        return self._common + self._seldom[:units]


def _seldom(names: Iterator[str], draws: Draws) -> Iterator[Entry]:
    for word in names:
        for _ in range(draws.between(1, SELDOM)):
            yield draws.below(_PLACES), word


class _Frequent(_List):
    """Of n units, n / rank² are the word of that rank, rounded down: about 1.6 n entries, and as many words as that is not zero for."""

    def __init__(self, asked: int, draws: Draws) -> None:
        self.least = _LEAST_FREQUENT * asked**2
        self._draws, self._names = draws, coin(draws.branch("words"))
        self._words: list[str] = []
        self._entries: list[tuple[Draws, list[Entry]]] = []
        self._known(asked)
        self.asked = self._words[:asked]

    def entries(self, units: int) -> list[Entry]:
        found: list[Entry] = []
        rank = 1
        while count := units // rank**2:
            found += self._of(rank, count)
            rank += 1
        return found

    def _of(self, rank: int, count: int) -> list[Entry]:
        self._known(rank)
        draws, entries = self._entries[rank - 1]
        while len(entries) < count:
            entries.append((draws.below(_PLACES), self._words[rank - 1]))
        return entries[:count]

    def _known(self, ranks: int) -> None:
        while len(self._words) < ranks:
            self._entries.append((self._draws.branch("rank", len(self._words)), []))
            self._words.append(next(self._names))


def most_common(text: str, count: int) -> list[str]:
    """The `count` words that stand most often in a text, read as anyone would. Raises ValueError if the next one stands as often."""
    ranked = Counter(re.findall(r"\w+", text)).most_common(count + 1)
    if len(ranked) <= count or ranked[count - 1][1] == ranked[count][1]:
        raise ValueError(f"no {count} words stand in the text more often than the others")
    return [word for word, _ in ranked[:count]]


def _ask(wanted: Wanted, growing: _List, order: str) -> Problem:
    """facts: counts (of the asked words)."""
    filled = fill(growing, wanted)
    found, answers = most_common(filled.text, wanted.level), growing.asked
    assert set(found) == set(answers), f"{found} stand most often, not {answers}"
    question = f"Which {_counted(wanted.level)} in the list most often? Answer with {_words(answers)} alone. {order}"
    counts = Counter(filled.text[start:end] for start, end in filled.places)
    return wanted.problem(filled.text, question, answers, filled.places, {"counts": dict(counts)})


def _counted(count: int) -> str:
    return "word stands" if count == 1 else f"{count} words stand"


def _words(answers: Sequence[str]) -> str:
    return "the word" if len(answers) == 1 else "the words"
