"""Cutting a document into parts: runs that are read as one piece and fit the model's window with room for question and answer.

A part starts where the document itself does: at a file or chapter, else a section, else a paragraph. Parts follow one another
without gap or overlap, so every character and every token of the document belongs to exactly one.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass

from engine.errors import LongshelfError

ROOM = 512
"""Tokens of the window kept free for preamble, question and answer, at least."""

_LEAST_FILL = {3: 0.4, 2: 0.6, 1: 0.8}
"""How full a part must be before it may end at a break of this strength (3: file or chapter, 2: section, 1: paragraph)."""


@dataclass(frozen=True)
class Part:
    """Tokens [first_token, first_token + tokens) and code points [start, end) of a document; `ordinal` counts from 0."""

    ordinal: int
    start: int
    end: int
    first_token: int
    tokens: int


def part_limit(wanted: int | None, default: int, window: int) -> int:
    """Tokens a part may have. Raises LongshelfError("usage") if the wanted size doesn't fit the model's window."""
    largest = window - ROOM
    limit = min(default, largest) if wanted is None else wanted
    if not 64 <= limit <= largest:
        raise LongshelfError(
            "usage",
            f"Parts of {limit} tokens don't work with this model: its window holds {window} tokens,"
            f" {ROOM} of them kept for question and answer.",
            f"Choose --part-tokens between 64 and {largest}.",
        )
    return limit


def cut(token_starts: Sequence[int], breaks: Sequence[tuple[int, int]], length: int, limit: int) -> list[Part]:
    """Parts of at most `limit` tokens.

    token_starts: code point at which each token starts, ascending. breaks: (code point, strength), ascending, where a part may start
    well. length: code points of the document.
    """
    total = len(token_starts)
    candidates = [(bisect.bisect_left(token_starts, offset), strength) for offset, strength in breaks if 0 < offset < length]
    tokens_of_breaks = [token for token, _ in candidates]
    parts: list[Part] = []
    first = 0
    while first < total:
        end = total if total - first <= limit else _best_end(candidates, tokens_of_breaks, first, limit)
        start_char = token_starts[first] if first else 0
        end_char = token_starts[end] if end < total else length
        parts.append(Part(len(parts), start_char, end_char, first, end - first))
        first = end
    return parts


def _best_end(candidates: list[tuple[int, int]], tokens_of_breaks: list[int], first: int, limit: int) -> int:
    """Token at which the part that starts at `first` ends: the strongest break late enough in it, else the limit itself."""
    for strength in (3, 2, 1):
        earliest = first + max(1, int(limit * _LEAST_FILL[strength]))
        low, high = bisect.bisect_left(tokens_of_breaks, earliest), bisect.bisect_right(tokens_of_breaks, first + limit)
        for token, found in reversed(candidates[low:high]):
            if found >= strength:
                return token
    return first + limit
