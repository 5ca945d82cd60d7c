"""A disk that fills up at any step: it is said, what is finished is kept, and the job goes on once there is room."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from engine.cli import main
from engine.errors import LongshelfError
from engine.home import Home
from engine.library import room
from engine.library.library import Library
from engine.shelf import Call
from tests.engine.books import add, book
from tests.engine.store.crashing import fills, in_child
from tests.engine.survival.whole import Stage, alone, answers, examined, read_and_ask, recover, shelf_of
from tests.homes.make import FOLDER, held, unpack


@contextmanager
def _only(*kinds: str) -> Iterator[None]:
    """Whatever is raised is one of these kinds of errors."""
    try:
        yield
    except LongshelfError as error:
        if error.kind not in kinds:
            raise


pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="forks")


@pytest.mark.parametrize("every", [23, pytest.param(1, marks=pytest.mark.slow)])
def test_a_disk_that_fills_at_a_step_of_adding_and_asking(stage: Stage, every: int) -> None:
    alone(_fill_adding, stage, every)


def _fill_adding(stage: Stage, every: int) -> None:
    stage.fresh()
    expected = stage.told(lambda: read_and_ask(stage))

    def work() -> None:
        with _only("disk_full", "not_ready", "not_found", "home"), shelf_of(stage.home) as shelf:
            for path in stage.sources:
                row = add(shelf, path)
                assert row["state"] == "ready" or row["error"]["kind"] == "disk_full", row
            answers(shelf)

    stage.fresh()
    filled = 0
    for _ in fills(lambda step: work(), every):
        filled += 1
        in_child(lambda: recover(stage, expected))
        stage.fresh()
    assert filled > 150 // every


def test_a_disk_that_fills_at_a_step_of_forgetting(stage: Stage) -> None:
    alone(_fill_forgetting, stage)


def _fill_forgetting(stage: Stage) -> None:
    stage.fresh()
    expected = stage.told(lambda: read_and_ask(stage))
    full = stage.keep("full")

    def work() -> None:
        with _only("disk_full"), shelf_of(stage.home) as shelf:
            room.forget(shelf.library, shelf.library.documents.find("first").id)

    for _ in fills(lambda step: work(), 3):
        in_child(lambda: recover(stage, expected))
        stage.fresh(full)


def test_a_disk_that_fills_at_a_step_of_an_upgrade(stage: Stage) -> None:
    alone(_fill_upgrade, stage)


def _fill_upgrade(stage: Stage) -> None:
    home, before = unpack(FOLDER / "0.1.0.zip", stage.room / "old")

    def work() -> None:
        with _only("disk_full"):
            Library.open(stage.home).close()

    def as_before() -> None:
        with shelf_of(stage.home) as shelf:
            assert held(shelf) == before

    stage.fresh(home.root)
    for _ in fills(lambda step: work()):
        in_child(as_before)
        stage.fresh(home.root)
    in_child(as_before)


@pytest.mark.skipif(sys.platform != "linux", reason="mounts a small disk")
@pytest.mark.parametrize("remove", [("remove", "book"), ("remove", "book", "--keep-text"), ("gc", "--forget", "--down-to", "0")])
def test_on_a_disk_full_to_the_last_byte_documents_are_listed_asked_and_removed(stage: Stage, remove: tuple[str, ...]) -> None:
    disk = stage.room / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("may not mount a small disk here")
    try:
        alone(_on_a_full_disk, stage, disk, remove)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def _on_a_full_disk(stage: Stage, disk: Path, remove: tuple[str, ...]) -> None:
    stage.fresh()
    home = Home(disk / "home")
    stage.home.root.rename(stage.room / "moved")
    subprocess.run(["cp", "-r", str(stage.room / "moved"), str(home.root)], check=True)
    with shelf_of(home) as shelf:
        assert add(shelf, book(stage.room, 8))["state"] == "ready"
    _fill_up(disk)
    asked = ["ask", "book", "Who?", "--max-tokens", "4"]
    for words in (["list"], ["doctor", "--deep"], asked, [*asked, "--parts", "1,2"], list(remove), ["list"], ["doctor", "--deep"]):
        assert main(["--home", str(home.root), *words]) == 0, words
    assert os.statvfs(disk).f_bavail * 4096 > 1_000_000
    with shelf_of(home) as shelf:
        assert examined(shelf)["problems"] == []


def _fill_up(disk: Path) -> None:
    filler = os.open(disk / "filler", os.O_WRONLY | os.O_CREAT)
    with suppress(OSError):
        while True:
            os.write(filler, bytes(4096))
    os.close(filler)
    assert os.statvfs(disk).f_bavail == 0


def test_what_is_held_back_is_held_again_once_there_is_room(stage: Stage) -> None:
    alone(_hold_again, stage)


def _hold_again(stage: Stage) -> None:
    home = stage.fresh()
    for _ in range(2):
        with shelf_of(home) as shelf:
            shelf.call("documents.list", {}, Call())
        assert home.ballast.stat().st_size > 1_000_000
        home.ballast.unlink()
