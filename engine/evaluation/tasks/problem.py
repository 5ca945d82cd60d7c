"""A problem over a long text, what decides it, and how an answer to it is scored."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.evaluation.tasks.draws import Draws

Encode = Callable[[str], Sequence[int]]
"""Plain text that begins, to token ids, as documents are encoded: `Tokenizer.encode_ids`."""

Place = tuple[int, int]
"""[start, end) in code points of a text."""


@dataclass(frozen=True)
class Problem:
    """A text, what is asked of it, and the strings that are wanted.

    level: how much of what makes the task hard, at least 1; each task says what it counts. places: where the evidence stands in the
    text, ascending. facts: what else is known of it, of JSON's types.
    """

    name: str
    language: str
    seed: int
    level: int
    text: str
    question: str
    answers: tuple[str, ...]
    places: tuple[Place, ...]
    facts: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def gold(self) -> str:
        """The answer in full, to be said in the model's place."""
        return ", ".join(self.answers)

    @property
    def depths(self) -> tuple[float, ...]:
        """For each place the share of the text that stands before it."""
        return tuple(start / len(self.text) for start, _ in self.places)


@dataclass(frozen=True)
class Wanted:
    """What decides a problem: the same of all these give the same problem. tokens: of its text."""

    name: str
    language: str
    level: int
    tokens: int
    seed: int
    encode: Encode
    haystack: Sequence[str]

    def draws(self) -> Draws:
        """The length takes no part: a longer text hides the same needles."""
        return Draws(self.name, self.language, self.level, self.seed)

    def problem(
        self, text: str, question: str, answers: Sequence[str], places: Sequence[Place], facts: Mapping[str, Any] | None = None
    ) -> Problem:
        return Problem(
            self.name, self.language, self.seed, self.level, text, question, tuple(answers), tuple(sorted(places)), dict(facts or {})
        )


def score(problem: Problem, said: str) -> float:
    """Share of the wanted strings that stand in what was said, as whole words or numbers, whatever their case (as RULER scores).

    A Korean word may have a particle behind it, a number may have its thousands set off: "482,913" is 482913, "-17" is not 17.
    """
    plain = _GROUPED.sub(lambda number: number[0].replace(",", ""), _plain(said))
    return sum(re.search(_whole(_plain(answer)), plain) is not None for answer in problem.answers) / len(problem.answers)


_GROUPED = re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:,\d{3})+(?![\d,])")
_HANGUL = "가-힣"


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _whole(wanted: str) -> str:
    """A pattern for `wanted` that stands alone."""
    before = f"(?<![{_HANGUL}])" if re.match(f"[{_HANGUL}]", wanted) else rf"(?<![^\W{_HANGUL}])"
    after = "" if re.search(f"[{_HANGUL}]$", wanted) else rf"(?![^\W{_HANGUL}])"
    if wanted.isdigit():
        before += r"(?<!\d\.)(?<!\W[-−])(?<!^[-−])"
        after += r"(?!\.\d)"
    return before + re.escape(wanted) + after
