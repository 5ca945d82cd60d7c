"""What a reader gives: the text of one document, and a map from its code points to page, section, line and file.

Offsets everywhere are code points of `Document.text` (LF line ends, no byte-order mark, never NUL). A folder is one document: its
files stand one after another, each behind a line that names it.
"""

from __future__ import annotations

import json
import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

FILE_HEADER = "=== {} ===\n"
CHAPTER, SECTION, PARAGRAPH = 3, 2, 1
LONG_RUN = 1500
"""Code points without a blank line after which line starts count as paragraphs: many Korean and Japanese books have no blank lines."""

_KINDS = {"file": 0, "page": 1, "section": 2}
_BLANK = re.compile(r"\n(?:[ \t\f\u3000]*\n)+")
_SENTENCE_LINE = re.compile(r"\n(?=[ \t\u3000])|(?<=[.!?…。！？”’」』\"])[ \t]*\n")


@dataclass(frozen=True)
class Span:
    """A named run of the text, [start, end). kind: "file" (label: relative path), "section" (heading) or "page" (number)."""

    kind: str
    label: str
    start: int
    end: int


@dataclass(frozen=True)
class Skipped:
    """A file or folder (path ends with "/") that was left out.

    reason: "binary", "secret", "too_large", "unreadable", "ignored", "empty", "undecodable", "link", "special" or "duplicate".
    """

    path: str
    reason: str


@dataclass(frozen=True)
class Place:
    """Where an offset is. page counts from 1; line counts from 1 within the file, or within the text where there are no files."""

    page: int | None
    page_label: str | None
    section: str | None
    line: int | None
    file: str | None


@dataclass(frozen=True)
class Document:
    """One thing the person added, read. `spans` are sorted by start, an outer span before the ones inside it."""

    path: str
    title: str
    format: str
    encoding: str | None
    encoding_confident: bool
    text: str
    spans: tuple[Span, ...]
    skipped: tuple[Skipped, ...]
    source_digest: str

    def place(self, offset: int) -> Place:
        """The page, innermost section, line and file of a code point. Any offset is allowed; one outside is taken as the nearest end."""
        offset = min(max(offset, 0), max(len(self.text) - 1, 0))
        file = self._file_at(offset)
        page = _last_starting(self._pages, offset)
        section = self._section_at(offset)
        first_line = self._line_index(file.start) if file else 0
        line = max(self._line_index(offset) - first_line, 0) + 1
        return Place(
            page=None if page is None else page + 1,
            page_label=None if page is None else self._pages[page].label,
            section=section if file is None else f"{file.label} · {section}" if section else file.label,
            line=line if self.text else None,
            file=file.label if file else None,
        )

    def break_points(self) -> list[tuple[int, int]]:
        """Where a part may well start: (offset, strength), sorted; 3 = file or chapter, 2 = section, 1 = paragraph.

        A file starts at the line that names it. Chapters are the outermost level of headings of which there is more than one, so
        a book's title is no chapter of its own.
        """
        strengths = dict.fromkeys(self._paragraph_starts(), PARAGRAPH)
        for page in self._pages:
            strengths[page.start] = PARAGRAPH if self._sections else SECTION
        depths = [depth for _, depth in self._nesting]
        chapters = -1 if self._files or self.format == "code" else next((d for d in sorted(set(depths)) if depths.count(d) > 1), 0)
        for span, depth in zip(self._sections, depths, strict=True):
            strengths[span.start] = CHAPTER if depth <= chapters else SECTION
        for file in self._files:
            strengths[file.start] = PARAGRAPH
            strengths[file.start - len(FILE_HEADER.format(file.label))] = CHAPTER
        strengths[0] = CHAPTER
        return sorted((offset, strength) for offset, strength in strengths.items() if offset < max(len(self.text), 1))

    def spans_json(self) -> str:
        """The spans as JSON text, for `spans_from_json`."""
        return json.dumps([[s.kind, s.label, s.start, s.end] for s in self.spans], ensure_ascii=False, separators=(",", ":"))

    def skipped_json(self) -> str:
        """What was skipped as JSON text, for `skipped_from_json`."""
        return json.dumps([[s.path, s.reason] for s in self.skipped], ensure_ascii=False, separators=(",", ":"))

    def as_json(self) -> dict[str, Any]:
        """All fields as plain values, for `from_json`."""
        fields = {name: getattr(self, name) for name in _PLAIN}
        return fields | {
            "spans": [[s.kind, s.label, s.start, s.end] for s in self.spans],
            "skipped": [[s.path, s.reason] for s in self.skipped],
        }

    @staticmethod
    def from_json(fields: Mapping[str, Any]) -> Document:
        """The document again; `spans` and `skipped` may be lists, or the texts of `spans_json` and `skipped_json`."""
        return Document(
            **{name: fields[name] for name in _PLAIN},
            spans=spans_from_json(fields["spans"]),
            skipped=skipped_from_json(fields["skipped"]),
        )

    @cached_property
    def _files(self) -> tuple[Span, ...]:
        return tuple(span for span in self.spans if span.kind == "file")

    @cached_property
    def _pages(self) -> tuple[Span, ...]:
        return tuple(span for span in self.spans if span.kind == "page")

    @cached_property
    def _sections(self) -> tuple[Span, ...]:
        return tuple(span for span in self.spans if span.kind == "section")

    @cached_property
    def _nesting(self) -> list[tuple[int, int]]:
        """For each section: the index of the section around it (-1 if none), and how many are around it."""
        nesting: list[tuple[int, int]] = []
        around: list[int] = []
        for index, span in enumerate(self._sections):
            while around and self._sections[around[-1]].end <= span.start:
                around.pop()
            nesting.append((around[-1] if around else -1, len(around)))
            around.append(index)
        return nesting

    @cached_property
    def _line_starts(self) -> array[int]:
        starts = array("Q", [0])
        starts.extend(match.end() for match in re.finditer("\n", self.text))
        return starts

    def _line_index(self, offset: int) -> int:
        return bisect_right(self._line_starts, offset) - 1

    def _file_at(self, offset: int) -> Span | None:
        index = bisect_right(self._files, offset, key=lambda span: span.start)
        if index < len(self._files) and offset >= self._files[index].start - len(FILE_HEADER.format(self._files[index].label)):
            return self._files[index]  # on the line that names it
        return self._files[index - 1] if index else None

    def _section_at(self, offset: int) -> str | None:
        index = _last_starting(self._sections, offset)
        while index is not None and index >= 0 and self._sections[index].end <= offset:
            index = self._nesting[index][0]
        return self._sections[index].label if index is not None and index >= 0 else None

    def _paragraph_starts(self) -> Iterable[int]:
        start = 0
        for match in _BLANK.finditer(self.text):
            if match.start() - start > LONG_RUN:
                yield from self._starts_in_run(start, match.start())
            start = match.end()
            yield start
        if len(self.text) - start > LONG_RUN:
            yield from self._starts_in_run(start, len(self.text))

    def _starts_in_run(self, start: int, end: int) -> Iterable[int]:
        """Line starts in a run without blank lines: indented ones and those after a sentence, or else all of them."""
        found = [match.end() for match in _SENTENCE_LINE.finditer(self.text, start, end)]
        if found:
            return found
        first, last = bisect_right(self._line_starts, start), bisect_left(self._line_starts, end)
        return self._line_starts[first:last]


_PLAIN = ("path", "title", "format", "encoding", "encoding_confident", "text", "source_digest")


def sort_spans(spans: Iterable[Span]) -> tuple[Span, ...]:
    """In the order of `Document.spans`: by start, outer before inner, file before page before section."""
    return tuple(sorted(spans, key=lambda span: (span.start, -span.end, _KINDS[span.kind])))


def spans_from_json(stored: str | list[Any]) -> tuple[Span, ...]:
    return tuple(Span(*row) for row in (json.loads(stored) if isinstance(stored, str) else stored))


def skipped_from_json(stored: str | list[Any]) -> tuple[Skipped, ...]:
    return tuple(Skipped(*row) for row in (json.loads(stored) if isinstance(stored, str) else stored))


def _last_starting(spans: tuple[Span, ...], offset: int) -> int | None:
    """Index of the last span that starts at or before the offset."""
    index = bisect_right(spans, offset, key=lambda span: span.start) - 1
    return index if index >= 0 else None
