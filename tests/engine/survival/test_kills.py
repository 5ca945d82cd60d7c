"""The whole job killed at every step on the disk: the next engine goes on, and answers as if nothing had happened."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from engine.library import room
from engine.library.library import Library
from engine.shelf import Call, Shelf
from tests.engine.store.crashing import Step, crashes, in_child
from tests.engine.survival.whole import Answers, Stage, alone, read_and_ask, recover, shelf_of
from tests.homes.make import FOLDER, held, unpack

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="forks")

SOME = 11
every = pytest.mark.parametrize("every", [SOME, pytest.param(1, marks=pytest.mark.slow)])
"""How many steps lie between two deaths; all of them take a minute."""


@every
def test_adding_and_asking(stage: Stage, every: int) -> None:
    alone(_kill_adding, stage, every)


def _kill_adding(stage: Stage, every: int) -> None:
    stage.fresh()
    expected = stage.told(lambda: read_and_ask(stage))
    stage.fresh()
    deaths = 0
    for _ in crashes(lambda step: _work(stage), every):
        deaths += 1
        in_child(lambda: recover(stage, expected))
        stage.fresh()
    assert deaths > 150 // every


def _work(stage: Stage) -> None:
    read_and_ask(stage)


CHANGES: dict[str, Callable[[Shelf], object]] = {
    "remove": lambda shelf: shelf.call("documents.remove", {"id": "first"}, Call()),
    "forget": lambda shelf: shelf.call("documents.forget", {"id": "first"}, Call()),
    "gc": lambda shelf: shelf.call("gc", {"down_to": 0, "forget": True}, Call()),
    "remove a chat": lambda shelf: shelf.call("chats.remove", {"id": shelf.library.chats.all()[0].id}, Call()),
    "repair": lambda shelf: shelf.call("doctor", {"deep": True, "repair": True}, Call()),
}


@every
@pytest.mark.parametrize("change", CHANGES)
def test_changing_what_is_there(stage: Stage, change: str, every: int) -> None:
    alone(_kill_change, stage, change, every)


def _kill_change(stage: Stage, change: str, every: int) -> None:
    stage.fresh()
    expected: Answers = stage.told(lambda: read_and_ask(stage))
    stage.told(lambda: _ask_together(stage))
    if change == "repair":
        _harm(stage)
    full = stage.keep("full")

    def do(step: Step) -> None:
        with shelf_of(stage.home) as shelf:
            CHANGES[change](shelf)

    for _ in crashes(do, min(every, 5)):
        in_child(lambda: recover(stage, expected))
        stage.fresh(full)
    in_child(lambda: recover(stage, expected))


def _ask_together(stage: Stage) -> bool:
    """A stored combination of two documents, and a chat more."""
    with shelf_of(stage.home) as shelf:
        asked = {"documents": ["first", "second"], "question": "Who?", "max_tokens": 2}
        return bool(shelf.call("ask", asked, Call())["generated_tokens"])


def _harm(stage: Stage) -> None:
    """Something of each kind for the doctor to mend."""
    segments = sorted(stage.home.segments.rglob("*.kv"))
    segments[0].unlink()
    damaged = bytearray(segments[1].read_bytes())
    damaged[5000] ^= 1
    segments[1].write_bytes(damaged)
    sidecar = next(stage.home.sidecars.rglob("*.sidecar"))
    sidecar.write_bytes(sidecar.read_bytes()[:5000])
    next(stage.home.texts.iterdir()).unlink()
    next(stage.home.chats.iterdir()).write_text("{")


def test_bringing_a_home_of_an_earlier_version_up_to_date(stage: Stage) -> None:
    alone(_kill_upgrade, stage)


def _kill_upgrade(stage: Stage) -> None:
    home, before = unpack(FOLDER / "0.1.0.zip", stage.room / "old")

    def upgrade(step: Step) -> None:
        Library.open(stage.home).close()

    def as_before() -> None:
        with shelf_of(stage.home) as shelf:
            assert held(shelf) == before

    stage.fresh(home.root)
    deaths = 0
    for _ in crashes(upgrade):
        deaths += 1
        in_child(as_before)
        stage.fresh(home.root)
    in_child(as_before)
    assert deaths > 3


def test_what_was_given_up_on_purpose_stays_given_up_after_a_rebuild(stage: Stage) -> None:
    alone(_rebuild_after_forgetting, stage)


def _rebuild_after_forgetting(stage: Stage) -> None:
    stage.fresh()
    stage.told(lambda: read_and_ask(stage))

    def forget() -> None:
        with shelf_of(stage.home) as shelf:
            room.forget(shelf.library, shelf.library.documents.find("first").id)

    in_child(forget)
    stage.home.catalog.write_bytes(b"no database" * 1000)

    def rebuilt() -> None:
        with shelf_of(stage.home) as shelf:
            shelf.call("doctor", {"repair": True}, Call())
            assert {row.title: row.state for row in shelf.library.documents.all()} == {"first": "paused", "second": "ready"}
            assert shelf.library.jobs.all() == []

    in_child(rebuilt)
