"""Where in the source an answer comes from: the passages that its words stand in and that its tokens attended to.

The answer needs no markers for this. A passage is a sentence or a few short ones. Its score joins two signs: the share of attention
it got from question and answer in the middle third of the layers (beyond what the fixed opening gave it: some places are
looked at whatever is asked), and how much of the answer's wording stands in it, rare words counting most.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

LONGEST = 420
"""Code points of a passage, at most; longer sentences are cut at commas or spaces."""

SHORTEST = 60
"""Shorter sentences are joined with the next one of their paragraph."""

# Not behind a title or an initial: "Mr. Bingley" and "J. Austen" are no ends of sentences.
_ABBREVIATION = "".join(rf"(?<!\b{short}\.)" for short in ("Mr", "Mrs", "Ms", "Dr", "St", "Prof", "[A-Z]"))
_END = re.compile(rf"(?<=[.!?。…]){_ABBREVIATION}[\"'’”»)\]]*\s+|\n\s*\n|(?<=[다요까죠])\.\s*|\n(?=[-*#>|\d])")
_WORD = re.compile(r"[0-9A-Za-z_]+|[가-힣]+|[\u3040-\u30ff\u4e00-\u9fff]")


@dataclass(frozen=True)
class Passage:
    """Code points [start, end) of the document and how well they support the answer (0..1, best first)."""

    start: int
    end: int
    score: float


def middle_layers(layers: int) -> range:
    """The middle third, where attention shows what an answer is taken from (early layers look nearby, late ones at what comes next)."""
    return range(layers // 3, layers - layers // 3)


def passages(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Ranges of code points that cover [start, end) of a text but for white space: sentences, short ones joined, long ones cut."""
    bounds = [start, *(match.end() for match in _END.finditer(text, start, end)), end]
    found: list[tuple[int, int]] = []
    for low, high in pairwise(bounds):
        low, high = _trimmed(text, low, high)
        while high - low > LONGEST:
            at = max(text.rfind(mark, low + LONGEST // 2, low + LONGEST) for mark in ("\n", ", ", " "))
            at = at + 1 if at > 0 else low + LONGEST
            found.append(_trimmed(text, low, at))
            low = _trimmed(text, at, high)[0]
        if high <= low:
            continue
        if found and found[-1][1] - found[-1][0] < SHORTEST and high - found[-1][0] <= LONGEST and "\n\n" not in text[found[-1][1] : low]:
            found[-1] = (found[-1][0], high)
        else:
            found.append((low, high))
    return found


def cite(
    text: str,
    part: tuple[int, int],
    offsets: Sequence[tuple[int, int]],
    attention: Sequence[float],
    answer: str,
    question: str,
    most: int = 3,
) -> list[Passage]:
    """The passages of one part that support an answer, best first; at most `most`, none far behind the best.

    part: [start, end) of the part. offsets: for each of the part's tokens the code points it covers, and attention: what it
    got beyond the usual (any scale, may be negative).
    """
    ranges = passages(text, *part)
    if not ranges:
        return []
    paid = _paid(ranges, offsets, attention)
    worded = _wording(text, ranges, answer, question)
    scored = [Passage(low, high, 0.5 * a + 0.5 * w) for (low, high), a, w in zip(ranges, paid, worded, strict=True)]
    scored.sort(key=lambda passage: -passage.score)
    return [passage for passage in scored[:most] if passage.score > 0 and passage.score >= 0.4 * scored[0].score]


def verbatim_share(answer: str, source: str) -> float:
    """Share of the answer's words that stand in the source in runs of at least three words (fewer if the answer is shorter)."""
    words, there = _words(answer), _words(source)
    if not words:
        return 0.0
    size = min(3, len(words))
    runs = {tuple(there[i : i + size]) for i in range(len(there) - size + 1)}
    covered: set[int] = set()
    for i in range(len(words) - size + 1):
        if tuple(words[i : i + size]) in runs:
            covered.update(range(i, i + size))
    return len(covered) / len(words)


def _paid(ranges: Sequence[tuple[int, int]], offsets: Sequence[tuple[int, int]], attention: Sequence[float]) -> list[float]:
    """Share of the positive surplus of attention that each range got, scaled so that the largest is 1."""
    sums = [0.0] * len(ranges)
    at = 0
    for (start, _), amount in zip(offsets, attention, strict=True):
        while at < len(ranges) - 1 and start >= ranges[at][1]:
            at += 1
        if start >= ranges[at][0]:
            sums[at] += max(0.0, amount)
    largest = max(sums)
    return [value / largest if largest > 0 else 0.0 for value in sums]


def _wording(text: str, ranges: Sequence[tuple[int, int]], answer: str, question: str) -> list[float]:
    """How much of the answer's words each range holds: a word weighs more the fewer ranges have it, and little if the question has it."""
    asked = set(_words(question))
    bags = [set(_words(text[low:high])) for low, high in ranges]
    frequency = Counter(word for bag in bags for word in bag)
    weight = {
        word: math.log(1 + len(ranges) / frequency[word]) * (0.2 if word in asked else 1.0)
        for word in set(_words(answer))
        if frequency[word]
    }
    for word in asked - weight.keys():
        if frequency[word]:
            weight[word] = 0.1 * math.log(1 + len(ranges) / frequency[word])
    total = sum(weight.values())
    return [sum(weight.get(word, 0.0) for word in bag) / total if total else 0.0 for bag in bags]


def _words(text: str) -> list[str]:
    """Words in lower case; Hangul words in pieces of two syllables, so that particles don't hide a stem."""
    words: list[str] = []
    for word in _WORD.findall(text.lower()):
        if "가" <= word[0] <= "힣" and len(word) > 2:
            words += [word[i : i + 2] for i in range(len(word) - 1)]
        else:
            words.append(word)
    return words


def _trimmed(text: str, low: int, high: int) -> tuple[int, int]:
    while low < high and text[low].isspace():
        low += 1
    while high > low and text[high - 1].isspace():
        high -= 1
    return low, high
