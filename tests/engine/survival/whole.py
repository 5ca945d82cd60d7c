"""The whole job on a home, and what must hold of a home after whatever happened to it.

Processes are killed here in the midst of a job that has threads, and the next is forked from one that must have none. So everything
runs in processes forked from a clean one, `alone`, that has loaded what they need.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.home import Home
from engine.shelf import Call, Shelf
from tests.engine.books import add, ask, book
from tests.engine.store.crashing import in_child

Answers = dict[str, list[int]]
QUESTION = "Who keeps lamp 1.3?"


@dataclass(frozen=True)
class Stage:
    """A pristine home with a model, and sources to add to copies of it."""

    pristine: Path
    room: Path

    @property
    def sources(self) -> list[Path]:
        return [self.room / "first.txt", self.room / "second.txt"]

    @property
    def home(self) -> Home:
        return Home(self.room / "home")

    def prepare(self) -> Stage:
        book(self.room, 2, "first.txt")
        book(self.room, 1, "second.txt", first=7)
        return self

    def fresh(self, of: Path | None = None) -> Home:
        """The home as it was before anything happened, or as a copy of another."""
        shutil.rmtree(self.home.root, ignore_errors=True)
        shutil.copytree(of or self.pristine, self.home.root)
        return self.home

    def keep(self, name: str) -> Path:
        """A copy of the home as it is now."""
        return Path(shutil.copytree(self.home.root, self.room / name))

    def told(self, work: Callable[[], Any]) -> Any:
        """What `work` gives as JSON, in a process of its own."""
        answer = self.room / "told.json"
        in_child(lambda: _write(answer, json.dumps(work())))
        return json.loads(answer.read_text(encoding="utf-8"))


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


_PRELOADED = [
    *("engine.answering.asking", "engine.model.loaded", "engine.reading.adding", "engine.reading.indexing", "engine.reading.room"),
    *("engine.reading.shelved", "engine.service.care", "engine.service.server", "tests.engine.survival.whole"),
]


def alone(work: Callable[..., None], *arguments: Any) -> None:
    """Run a function of a module in a process that was forked from a clean one. Raises AssertionError if it fails."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    process = context.Process(target=_do, args=(work, *arguments))
    process.start()
    process.join()
    assert process.exitcode == 0, "see the captured stderr"


def _do(work: Callable[..., None], *arguments: Any) -> None:
    import torch

    from engine.answering import modes

    torch.set_num_threads(1)
    modes.LEAST = 16  # so that chapters are long enough to be sampled
    try:
        work(*arguments)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


@contextmanager
def shelf_of(home: Home) -> Iterator[Shelf]:
    shelf = Shelf(home)
    try:
        yield shelf
    finally:
        shelf.close()


def read_and_ask(stage: Stage) -> Answers:
    """Add both documents and ask them."""
    with shelf_of(stage.home) as shelf:
        rows = [add(shelf, path) for path in stage.sources]
        assert [row["state"] for row in rows] == ["ready", "ready"], rows
        return answers(shelf)


def answers(shelf: Shelf) -> Answers:
    """What the model says to the same questions: of a part, a document, two parts quickly joined, which is kept then, and of a part
    by its sketch."""
    return {
        "first": ask(shelf, "first", question=QUESTION, parts=[1])["token_ids"],
        "second": ask(shelf, "second", question=QUESTION)["token_ids"],
        "joined": ask(shelf, "first", question=QUESTION, parts=[1, 2])["token_ids"],
        "sampled": ask(shelf, "first", question=QUESTION, parts=[2], mode="sampled", seed=1)["token_ids"],
    }


def examined(shelf: Shelf, **params: bool) -> dict[str, Any]:
    report: dict[str, Any] = shelf.call("doctor", {"deep": True, **params}, Call())
    return report


def recover(stage: Stage, expected: Answers) -> None:
    """The doctor mends all it finds, everything is read to its end, and the answers are the same as ever."""
    with shelf_of(stage.home) as shelf:
        report = examined(shelf, repair=True)
        assert report["problems"] == [], report["problems"]
        rows = [add(shelf, path) for path in stage.sources]
        assert [row["state"] for row in rows] == ["ready", "ready"], rows
        assert answers(shelf) == expected
        assert examined(shelf)["problems"] == []
