"""The text of a document cut into sheets that can be shown at once, and where offsets lie in them. Knows no widget.

A folder shows one file at a time, so that line numbers are the file's; a very long text is cut at line ends. Offsets are code points of the
document's text; Qt counts UTF-16 units, in which an emoji is two.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

from app import words

LONGEST = 1_500_000  # characters on one sheet: what the text widget takes in well under a second
_INVISIBLE = str.maketrans({"\f": " ", "\u2029": " ", "\ufdd0": " ", "\ufdd1": " "})  # Qt would break the line here

Row = dict[str, Any]


@dataclass(frozen=True)
class Sheet:
    label: str  # the file's name, "" for a document of one sheet
    start: int  # code points of the document's text, [start, end)
    end: int
    first_line: int  # number of its first line, from 1


class Sheets:
    """A document as `documents.show` gives it, ready to be shown."""

    def __init__(self, shown: Row) -> None:
        self.id = str(shown.get("id") or "")
        self.title = str(shown.get("title") or "")
        self.text = str(shown.get("text") or "")
        self._sections = _labels(shown.get("sections") or [])
        self._pages = _labels(shown.get("pages") or [])
        files = [Sheet(str(item["label"]), item["start"], item["end"], 1) for item in shown.get("files") or []]
        self.all: list[Sheet] = [piece for sheet in files or [Sheet("", 0, len(self.text), 1)] for piece in _pieces(sheet, self.text)]

    def at(self, offset: int) -> int:
        """Position in `all` of the sheet that shows this offset."""
        return max(0, bisect_right([sheet.start for sheet in self.all], offset) - 1)

    def text_of(self, sheet: Sheet) -> str:
        """What the text widget gets: the same number of characters, none of which starts a line of its own."""
        return self.text[sheet.start : sheet.end].translate(_INVISIBLE)

    def position(self, sheet: Sheet, offset: int) -> int:
        """The offset as a position in the shown text, in UTF-16 units."""
        before = self.text[sheet.start : min(max(offset, sheet.start), sheet.end)]
        return len(before.encode("utf-16-le", "surrogatepass")) // 2

    def place(self, offset: int) -> str:
        """Where an offset is: file, section, page and line, as far as there are any."""
        sheet = self.all[self.at(offset)]
        line = sheet.first_line + self.text.count("\n", sheet.start, max(offset, sheet.start))
        section, page = _before(self._sections, offset), _before(self._pages, offset)
        where = {"section": section if section != sheet.label else "", "page": page, "line": line}
        return words.join(sheet.label, words.place(where))


def _pieces(sheet: Sheet, text: str) -> list[Sheet]:
    """A sheet that is too long in several, each ending with a line if it can."""
    if sheet.end - sheet.start <= LONGEST:
        return [sheet]
    pieces: list[Sheet] = []
    start, line = sheet.start, sheet.first_line
    while start < sheet.end:
        end = min(start + LONGEST, sheet.end)
        if end < sheet.end and (line_end := text.rfind("\n", start, end)) > start:
            end = line_end + 1
        pieces.append(Sheet(words.join(sheet.label, words.number(len(pieces) + 1)), start, end, line))
        line += text.count("\n", start, end)
        start = end
    return pieces


def _labels(items: list[Row]) -> list[tuple[int, str]]:
    return sorted((item["start"], str(item["label"])) for item in items)


def _before(labels: list[tuple[int, str]], offset: int) -> str:
    """The label of the last item that starts at or before the offset."""
    position = bisect_right(labels, (offset, "\U0010ffff"))
    return labels[position - 1][1] if position else ""
