"""Making a text of exactly so many tokens, whatever the vocabulary.

A text grows as long as it fits: by its own units (sentences, entries, chains), then by words behind them, then by marks. Every step
encodes the whole text, since a token may depend on its neighbours; so what is returned has the wanted number because it was counted,
and a vocabulary in which that can't be reached is an error, never a near miss.

The marks meet the number in every vocabulary in which one of MARKS is one token that joins with nothing before it: as many of it as
tokens are missing. A mark behind a space is that wherever words are encoded apart from each other, and a mark alone where a
vocabulary is of bytes. Where marks do join with their like, mixtures of them are tried.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Protocol

from engine.errors import LongshelfError
from engine.evaluation.tasks.problem import Place, Wanted

MARKS = (" .", ".", " -", "-", " :", ":", " *", "*")

CLOSING = "Nothing more is said here."
"""What stands behind lists, as often as there is room, cut where it ends."""


class Draft:
    """A text in the making, and where its evidence stands."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._length = 0
        self.places: list[Place] = []

    def add(self, piece: str, evidence: bool = False) -> None:
        if evidence:
            self.places.append((self._length, self._length + len(piece)))
        self._pieces.append(piece)
        self._length += len(piece)

    @property
    def text(self) -> str:
        return "".join(self._pieces)


class Growing(Protocol):
    """A text that there may be more of. least: the fewest units that make a problem."""

    least: int

    def draft(self, units: int) -> Draft:
        """The text with so many units."""
        ...

    def words(self, units: int, count: int) -> str:
        """What may stand behind the draft of so many units, without end: its first `count` words, white space before them."""
        ...


@dataclass(frozen=True)
class Filled:
    """A text of the wanted length, the places of its evidence, and the units it was made of."""

    text: str
    places: list[Place]
    units: int


def fill(growing: Growing, wanted: Wanted) -> Filled:
    """Exactly `wanted.tokens` tokens. Raises LongshelfError("usage") where that is too few for the problem,
    ("model_unsupported") for a vocabulary in which the number can't be met."""
    tokens = wanted.tokens

    def missing(text: str) -> int:
        return tokens - len(wanted.encode(text))

    short = -missing(growing.draft(growing.least).text)
    if short > 0:
        raise LongshelfError(
            "usage",
            f'"{wanted.name}" at level {wanted.level} doesn\'t fit into {tokens} tokens: this one needs {tokens + short}.',
            "Ask for more tokens or a lower level.",
        )
    units = _most(lambda n: n <= growing.least + 2 * tokens and missing(growing.draft(n).text) >= 0, growing.least)
    draft = growing.draft(units)
    body = draft.text
    count = _most(lambda n: n <= 2 * tokens and missing(body + growing.words(units, n)) >= 0, 0)
    words = growing.words(units, count)
    marks = _marks(body + words, missing)
    if marks is None:
        raise LongshelfError("model_unsupported", f"No text of exactly {tokens} tokens can be made in this model's vocabulary.")
    return Filled(body + words + marks, draft.places, units)


def closing(count: int) -> str:
    """So many words of CLOSING, over and over."""
    return "".join(f" {word}" for word in islice(cycle(CLOSING.split()), count))


def _most(fits: Callable[[int], bool], least: int) -> int:
    """A number from `least` on that fits while the next one doesn't; `least` is known to fit."""
    low, step = least, 1
    while fits(low + step):
        low, step = low + step, 2 * step
    high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _marks(text: str, missing: Callable[[str], int]) -> str | None:
    """Marks that make up for the tokens that a text lacks; None if there are none."""
    lacking = missing(text)
    if lacking == 0:
        return ""
    for mark in MARKS:
        if missing(text + mark * lacking) == 0:
            return mark * lacking
    return _mixed_marks(text, lacking, missing, set())


def _mixed_marks(text: str, lacking: int, missing: Callable[[str], int], tried: set[tuple[int, str]]) -> str | None:
    """Marks of several kinds. tried: what led nowhere, as (tokens lacking, last mark); it is passed by at the next turn."""
    if lacking == 0:
        return ""
    for mark in MARKS:
        left = missing(text + mark)
        if 0 <= left < lacking and (left, mark) not in tried:
            tried.add((left, mark))
            behind = _mixed_marks(text + mark, left, missing, tried)
            if behind is not None:
                return mark + behind
    return None
