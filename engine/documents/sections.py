"""Headings in a text, and the section spans they open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.documents.document import Span

LABEL_LIMIT = 200
"""Code points kept of a heading: it is shown in one line."""


@dataclass(frozen=True)
class Heading:
    """start: offset of the first code point of the heading's line; level: smaller is further out; end: where its section ends, if known."""

    level: int
    label: str
    start: int
    end: int | None = None


def nest(headings: Sequence[Heading], length: int) -> list[Span]:
    """Section spans in order: each runs until the next heading of the same or an outer level, or to its own known end."""
    ends = [length] * len(headings)
    around: list[int] = []
    for index, heading in enumerate(headings):
        while around and headings[around[-1]].level >= heading.level:
            ends[around.pop()] = heading.start
        around.append(index)
    spans: list[Span] = []
    for heading, reached in zip(headings, ends, strict=True):
        label = " ".join(heading.label.split())[:LABEL_LIMIT]
        end = reached if heading.end is None else heading.end
        if label and heading.start < end:
            spans.append(Span("section", label, heading.start, end))
    return spans
