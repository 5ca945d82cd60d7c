"""Small books, and the two things that are done with them all the time: adding and asking."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.shelf import Call, Shelf

PART = 1024
"""A part size at which each chapter of a book becomes a part of its own."""

Row = dict[str, Any]


def chapter(number: int, sentences: int = 20) -> str:
    """About 900 characters, which are as many tokens of the tiny model; each says something that no other does."""
    facts = " ".join(f"Lamp {number}.{n} is kept by Ward{1000 * number + n}." for n in range(sentences))
    return f"CHAPTER {number}\n\n{facts}\n\n"


def book(folder: Path, chapters: int = 2, name: str = "book.txt", first: int = 1) -> Path:
    """A plain text file of so many chapters."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("".join(chapter(number) for number in range(first, first + chapters)), encoding="utf-8")
    return path


def add(shelf: Shelf, *paths: Path, call: Call | None = None, **params: Any) -> Row:
    """Add files with parts of a chapter each and wait until they are read; the row of the first."""
    given = {"paths": [str(path) for path in paths], "part_tokens": PART, **params}
    row: Row = shelf.call("documents.add", given, call or Call())["documents"][0]
    return row


def ask(shelf: Shelf, *documents: str, question: str = "Who keeps lamp 1.3?", call: Call | None = None, **params: Any) -> Row:
    """A short answer from these documents."""
    return shelf.call("ask", {"documents": documents, "question": question, "max_tokens": 8, **params}, call or Call())


def listen(events: list[tuple[str, Row]], then: Callable[[str, Row], None] = lambda name, data: None) -> Call:
    """A call whose events are kept, each told to `then` as it comes."""

    def emit(name: str, data: Row) -> None:
        events.append((name, data))
        then(name, data)

    return Call(emit)
