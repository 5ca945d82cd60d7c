"""Plain text: headings as sections, and pages by form feed."""

from __future__ import annotations

import re

from engine.documents.document import Span
from engine.documents.headings import headings
from engine.documents.sections import nest


def read_spans(text: str) -> list[Span]:
    """Section and page spans of a plain text."""
    return pages(text) + section_spans(text)


def section_spans(text: str) -> list[Span]:
    """Section spans of a plain text."""
    return nest(headings(text), len(text))


def pages(text: str) -> list[Span]:
    """Page spans, where the text has form feeds: a page starts behind one. None at all in a text without."""
    starts = [0, *(match.end() for match in re.finditer("\f", text))]
    ends = [*starts[1:], len(text)]
    found = [(start, end) for start, end in zip(starts, ends, strict=True) if text[start:end].strip("\f\n ")]
    return [Span("page", str(number), start, end) for number, (start, end) in enumerate(found, 1)] if len(found) > 1 else []
