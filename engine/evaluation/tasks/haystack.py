"""Sentences of given documents around what is hidden among them.

They are taken in their order from a drawn start, round and round, without those that have a word of what is hidden. White space
inside a sentence becomes one space; a paragraph's end stays one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count as numbers
from itertools import islice

from engine.errors import LongshelfError
from engine.evaluation.tasks.draws import Draws
from engine.evaluation.tasks.filling import Draft

# A sentence ends at its mark, but not before the 20th character ("Mr. Smith") nor where a small letter follows; without a mark, at a space
# within 400 characters.
_SENTENCE = re.compile(r"""\S.{18,400}?(?:[。！？]|[.!?…]["'”’」』)\]]*(?!\S| [a-z]))|\S.{0,400}(?!\S)|\S{1,400}""")
_PARAGRAPH = re.compile(r"\n\s*\n")
_PIECE = re.compile(".{1,8}")  # long words, and writing without spaces, end a text where it is full
DEPTHS = 1000


@dataclass(frozen=True)
class Sentence:
    """joint: what stands between it and the next."""

    text: str
    joint: str


@dataclass(frozen=True)
class Hidden:
    """A sentence to be hidden. depth: how many of DEPTHS parts of the haystack stand before it, 0 … DEPTHS - 1."""

    depth: int
    text: str
    evidence: bool


def sentences(document: str) -> Iterator[Sentence]:
    for paragraph in _PARAGRAPH.split(document):
        found = _SENTENCE.findall(" ".join(paragraph.split()))
        yield from (Sentence(text, " ") for text in found[:-1])
        yield from (Sentence(text, "\n\n") for text in found[-1:])


def _has(text: str, words: Sequence[str]) -> bool:
    return any(word in text for word in words)


class Haystack:
    """A `Growing` text: units are sentences of the haystack, and `hidden` stand among them by their depth, then as they are given."""

    least = 1

    def __init__(self, documents: Sequence[str], hidden: Sequence[Hidden], without: Iterable[str], draws: Draws) -> None:
        """without: words that no sentence may have, even as parts of others. Raises LongshelfError("usage") if no sentence is left."""
        words = [word.casefold() for word in without]
        self._hidden = sorted(hidden, key=lambda one: one.depth)
        self._sentences = [one for document in documents for one in sentences(document) if not _has(one.text.casefold(), words)]
        if not self._sentences:
            raise LongshelfError(
                "usage", "There is no sentence to hide anything among.", "Give texts as a haystack; one word of a needle spoils a sentence."
            )
        self._start = draws.below(len(self._sentences))

    def draft(self, units: int) -> Draft:
        draft = Draft()
        waiting = list(reversed(self._hidden))
        for number in range(units):
            while waiting and waiting[-1].depth * units // DEPTHS == number:
                one = waiting.pop()
                draft.add(one.text, one.evidence)
                draft.add(self._sentence(number - 1).joint)  # between paragraphs it is one
            sentence = self._sentence(number)
            draft.add(sentence.text)
            if number + 1 < units:
                draft.add(sentence.joint)
        return draft

    def words(self, units: int, count: int) -> str:
        return "".join(islice(self._words(units), count))

    def _sentence(self, number: int) -> Sentence:
        return self._sentences[(self._start + number) % len(self._sentences)]

    def _words(self, units: int) -> Iterator[str]:
        for number in numbers(units):
            joint = self._sentence(number - 1).joint
            for word in self._sentence(number).text.split():
                for piece in _PIECE.findall(word):
                    yield joint + piece
                    joint = ""
                joint = " "
