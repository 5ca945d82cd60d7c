"""Where in an answer the numbers of its citations go: after the words that the answer shares with the cited passage.

A passage that the answer doesn't quote has no place inside it; its number stands in the list under the answer.
"""

from __future__ import annotations

import re
from typing import Any

from app.chat.markdown import END_MARK, MARK

SHARED_WORDS = 4  # in a row; fewer are found by chance
_WORD = re.compile(r"\w+(?:['’]\w+)*")


def placed(answer: str, citations: list[dict[str, Any]]) -> str:
    """The answer with a marked number after the end of each run of words that stands in a citation's quote."""
    answer = answer.replace(MARK, "").replace(END_MARK, "")
    words = [(match.group().casefold(), match.end()) for match in _WORD.finditer(answer)]
    places: dict[int, list[int]] = {}
    for citation in citations:
        if (end := _end_of_run(words, str(citation.get("quote") or ""))) is not None:
            places.setdefault(end, []).append(int(citation["number"]))
    for end in sorted(places, reverse=True):
        marks = "".join(f"{MARK}{number}{END_MARK}" for number in sorted(places[end]))
        answer = answer[:end] + marks + answer[end:]
    return answer


def _end_of_run(words: list[tuple[str, int]], quote: str) -> int | None:
    """Where the longest run of words shared with the quote ends in the answer, in characters; None if none is long enough."""
    quoted = [match.group().casefold() for match in _WORD.finditer(quote)]
    starts: dict[tuple[str, ...], list[int]] = {}
    for position in range(len(quoted) - SHARED_WORDS + 1):
        starts.setdefault(tuple(quoted[position : position + SHARED_WORDS]), []).append(position)
    best_length, best_end = 0, None
    for position in range(len(words) - SHARED_WORDS + 1):
        run = tuple(word for word, _ in words[position : position + SHARED_WORDS])
        for start in starts.get(run, ()):
            length = SHARED_WORDS
            while position + length < len(words) and start + length < len(quoted) and words[position + length][0] == quoted[start + length]:
                length += 1
            if length > best_length:
                best_length, best_end = length, words[position + length - 1][1]
    return best_end
