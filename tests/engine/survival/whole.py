"""The whole job on a home: add, ask, forget, remove; and what must hold of a home after whatever happened to it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import LongshelfError
from engine.home import Home
from engine.shelf import Call, Shelf
from tests.engine.books import add, ask, book

QUESTION = "Who keeps lamp 1.3?"


@dataclass(frozen=True)
class Stage:
    """A pristine home with a model, and sources to add. `fresh()` gives a copy of the home to be harmed."""

    pristine: Path
    room: Path

    @property
    def first(self) -> Path:
        return self.room / "first.txt"

    @property
    def second(self) -> Path:
        return self.room / "second.txt"

    @property
    def home(self) -> Home:
        return Home(self.room / "home")

    def prepare(self) -> Stage:
        book(self.room, 2, "first.txt")
        book(self.room, 1, "second.txt", first=7)
        return self

    def fresh(self) -> Home:
        """The home anew, as it was before anything happened."""
        shutil.rmtree(self.home.root, ignore_errors=True)
        shutil.copytree(self.pristine, self.home.root)
        return self.home


def warm(home: Home) -> None:
    """Load what every child needs once, in a process that has no threads and so can be forked."""
    import torch

    import engine.answering.asking
    import engine.model.loaded
    import engine.reading.adding
    import engine.reading.shelved
    import engine.service.care  # noqa: F401

    torch.set_num_threads(1)
    from engine.model.installed import Models
    from engine.model.loaded import LoadedModel

    LoadedModel(Models(home).open())


def read_and_ask(stage: Stage) -> dict[str, Any]:
    """Add both documents, ask each and both together; the answers by what was asked."""
    shelf = Shelf(stage.home)
    try:
        rows = [add(shelf, path) for path in (stage.first, stage.second)]
        assert [row["state"] for row in rows] == ["ready", "ready"], rows
        return answers(shelf)
    finally:
        shelf.close()


def answers(shelf: Shelf) -> dict[str, Any]:
    """What the model says to the same questions, always on stored memory once that is there."""
    return {
        "first": ask(shelf, "first", question=QUESTION, parts=[1])["token_ids"],
        "second": ask(shelf, "second", question=QUESTION)["token_ids"],
    }


def problems(shelf: Shelf) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = shelf.call("doctor", {"deep": True}, Call())["problems"]
    return found


def recover(stage: Stage, expected: dict[str, Any]) -> None:
    """Whatever happened: the doctor mends all it finds, everything can be added and read, and the answers are the same."""
    shelf = Shelf(stage.home)
    try:
        report = shelf.call("doctor", {"deep": True, "repair": True}, Call())
        assert report["problems"] == [], report
        for path in (stage.first, stage.second):
            row = add(shelf, path)
            assert row["state"] == "ready", row
        assert answers(shelf) == expected
        assert problems(shelf) == []
    except LongshelfError as error:
        raise AssertionError(f"{error.kind}: {error.message}") from error
    finally:
        shelf.close()
