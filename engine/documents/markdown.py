"""Markdown: its headings as sections, by the CommonMark block rules, so that a `#` in a code block is none.

The text itself is kept as written: the offsets of citations are those of the file.
"""

from __future__ import annotations

import re
from itertools import pairwise

from markdown_it import MarkdownIt

from engine.documents.document import Span
from engine.documents.sections import Heading, nest

PARSED = 1024 * 1024
"""Code points of the largest text that is parsed; beyond, only `#` lines outside fences count, because parsing takes seconds."""

_NEAR_START = 2000

_FRONT_MATTER = re.compile(r"---[ \t]*\n(?:.*\n)*?(?:---|\.\.\.)[ \t]*(?:\n|\Z)")
_FENCE_OR_HEADING = re.compile(r"^ {0,3}(?:(?P<fence>```|~~~)|(?P<marks>#{1,6})[ \t]+(?P<label>[^\n]+))", re.MULTILINE)
_TAG = re.compile(r"</?[A-Za-z!][^<>]*>|\{[#.:][^{}]*\}")
_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])")
_EMPHASIS = re.compile(r"(?<!\\)[*`~]+|(?<![\w\\])_+|_+(?!\w)")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")


def read_spans(text: str) -> list[Span]:
    """Section spans of a Markdown text."""
    return nest(headings(text), len(text))


def headings(text: str) -> list[Heading]:
    """The headings of a Markdown text, in order, without their markup. YAML front matter is no heading."""
    front = _FRONT_MATTER.match(text)
    skipped = front.end() if front else 0
    if len(text) > PARSED:
        return _by_lines(text, skipped)
    parser = MarkdownIt("commonmark")
    parser.core.ruler.disable(["inline"])
    starts = [skipped]
    starts.extend(skipped + match.end() for match in re.finditer("\n", text[skipped:]))
    tokens = parser.parse(text[skipped:])
    found: list[Heading] = []
    for opening, content in pairwise(tokens):
        if opening.type == "heading_open" and opening.level == 0 and opening.map:
            found.append(Heading(int(opening.tag[1:]), plain_label(content.content), starts[opening.map[0]]))
    return found


def title(spans: list[Span]) -> str | None:
    """The heading near the start that holds all others: the title of the document."""
    holds_all = bool(spans) and spans[0].end >= max(span.end for span in spans)
    return spans[0].label if holds_all and spans[0].start < _NEAR_START else None


def plain_label(heading: str) -> str:
    """The words of a heading: without HTML tags, link targets, emphasis marks and escapes."""
    without = _LINK.sub(r"\1", _TAG.sub("", heading))
    return " ".join(_ESCAPE.sub(r"\1", _EMPHASIS.sub("", without)).split())


def _by_lines(text: str, skipped: int) -> list[Heading]:
    found: list[Heading] = []
    fenced = False
    for match in _FENCE_OR_HEADING.finditer(text, skipped):
        if match["fence"]:
            fenced = not fenced
        elif not fenced:
            found.append(Heading(len(match["marks"]), plain_label(match["label"].rstrip("# \t")), match.start()))
    return found
