"""A home in which something was changed, cut, zeroed, swapped or deleted: nothing wrong is served, and the doctor mends it."""

from __future__ import annotations

import json
import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.errors import LongshelfError
from engine.shelf import Call, Shelf
from tests.engine.books import add
from tests.engine.store.crashing import in_child
from tests.engine.survival.whole import Stage, alone, answers, examined, read_and_ask, shelf_of

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="forks")

Harm = Callable[[random.Random, bytearray], bytearray]


def _flip(draw: random.Random, content: bytearray) -> bytearray:
    content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    return content


def _cut(draw: random.Random, content: bytearray) -> bytearray:
    return content[: draw.randrange(len(content))]


def _zero(draw: random.Random, content: bytearray) -> bytearray:
    at = draw.randrange(len(content))
    content[at : at + 4096] = bytes(len(content[at : at + 4096]))
    return content


HARMS: tuple[Harm, ...] = (_flip, _flip, _flip, _cut, _zero)


@pytest.mark.parametrize("trials", [16, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("where", ["catalog*", "segments/**/*.kv", "sidecars/**/*.sidecar", "texts/*", "chats/*", "models/**/*.*"])
def test_something_in_a_file_changes(stage: Stage, where: str, trials: int) -> None:
    alone(_harm_files, stage, where, trials // (1 if where == "catalog*" else 4))


def _harm_files(stage: Stage, where: str, trials: int) -> None:
    expected, before = _whole_job(stage, read_and_ask)
    full = stage.keep("full")
    for trial in range(trials):
        draw = random.Random(trial)
        stage.fresh(full)
        path = draw.choice(sorted(path for path in stage.home.root.glob(where) if path.is_file() and path.stat().st_size))
        harm = draw.choice(HARMS)
        path.write_bytes(harm(draw, bytearray(path.read_bytes())))
        try:
            in_child(lambda: _serves_nothing_wrong(stage, expected))
            if where.startswith("models"):  # which is mended by installing it again
                in_child(lambda: _is_told(stage))
            else:
                in_child(lambda: _is_mended(stage, before, expected))
        except AssertionError as error:
            raise AssertionError(f"trial {trial}: {harm.__name__} in {path.relative_to(stage.home.root)}") from error


def _whole_job(stage: Stage, job: Callable[[Stage], Any]) -> tuple[Any, Any]:
    """The whole job on a fresh home: the answers, and what clients see then."""
    stage.fresh()
    return stage.told(lambda: job(stage)), stage.told(lambda: _held(stage))


def _held(stage: Stage) -> Any:
    with shelf_of(stage.home) as shelf:
        shelf.library.catalog.back_up_daily()
        return _state(shelf)


def _state(shelf: Shelf) -> Any:
    """Everything that clients see of documents and chats, as JSON gives it back."""
    documents = shelf.call("documents.list", {}, Call())["documents"]
    seen = ("id", "title", "path", "state", "tokens", "parts", "encoding", "added_at")
    chats = shelf.call("chats.list", {}, Call())["chats"]
    state = {
        "documents": [{name: row[name] for name in seen} | {"kv": row["bytes"] - row["sidecar_bytes"]} for row in documents],
        "shown": [shelf.call("documents.show", {"id": row["id"]}, Call()) for row in documents],
        "chats": sorted((shelf.call("chats.show", {"id": chat["id"]}, Call()) for chat in chats), key=lambda chat: str(chat["id"])),
    }
    return json.loads(json.dumps(state))


def _serves_nothing_wrong(stage: Stage, expected: Any) -> None:
    """The answers are the same, or it is said what is wrong and what to do."""
    try:
        with shelf_of(stage.home) as shelf:
            assert answers(shelf) == expected
    except LongshelfError as error:
        if not error.hint:
            raise


def _is_told(stage: Stage) -> None:
    with shelf_of(stage.home) as shelf:
        assert [problem["kind"] for problem in examined(shelf)["problems"]] == ["model_damaged"]


def _is_mended(stage: Stage, before: Any, expected: Any) -> None:
    with shelf_of(stage.home) as shelf:
        examined(shelf, repair=True)
        assert [add(shelf, path)["state"] for path in stage.sources] == ["ready", "ready"]
        now = _state(shelf)
        now["chats"] = [chat for chat in now["chats"] if chat["id"] in {known["id"] for known in before["chats"]}]
        for name, value in before.items():
            assert now[name] == value, name
        assert answers(shelf) == expected
        assert examined(shelf)["problems"] == []


@pytest.mark.parametrize("trials", [6, pytest.param(200, marks=pytest.mark.slow)])
def test_the_log_of_a_catalog_that_was_not_closed_changes(stage: Stage, trials: int) -> None:
    alone(_harm_log, stage, trials)


def _harm_log(stage: Stage, trials: int) -> None:
    expected, before = _whole_job(stage, _read_ask_and_die)
    stage.fresh()
    stage.told(lambda: _read_ask_and_die(stage))
    log = stage.home.catalog.with_name("catalog.db-wal")
    assert log.stat().st_size > 10_000
    full = stage.keep("full")
    for trial in range(trials):
        draw = random.Random(trial)
        stage.fresh(full)
        harm = draw.choice((*HARMS, _nothing_left))
        log.write_bytes(harm(draw, bytearray(log.read_bytes())))
        try:
            in_child(lambda: _serves_nothing_wrong(stage, expected))
            in_child(lambda: _goes_on(stage, before, expected))
        except AssertionError as error:
            raise AssertionError(f"trial {trial}: {harm.__name__}") from error


def _nothing_left(draw: random.Random, content: bytearray) -> bytearray:
    return bytearray()


def _read_ask_and_die(stage: Stage) -> Any:
    """The whole job, of which the catalog's log is left as it is when a process is killed."""
    shelf = Shelf(stage.home)
    for path in stage.sources:
        add(shelf, path)
    return answers(shelf)  # and no close


def _goes_on(stage: Stage, before: Any, expected: Any) -> None:
    """Texts and chats are all there, however much of the log was lost."""
    with shelf_of(stage.home) as shelf:
        examined(shelf, repair=True)
        assert [add(shelf, path)["state"] for path in stage.sources] == ["ready", "ready"]
        assert [row["text"] for row in _state(shelf)["shown"]] == [row["text"] for row in before["shown"]]
        assert len(_state(shelf)["chats"]) >= 2
        assert answers(shelf) == expected
        assert (left := examined(shelf)["problems"]) == [], left


@pytest.mark.parametrize("folder", ["segments", "texts", "chats"])
def test_two_files_change_places(stage: Stage, folder: str) -> None:
    alone(_harm_at, stage, folder, _swap)


def _harm_at(stage: Stage, name: str, harm: Callable[[Path], None]) -> None:
    expected, before = _whole_job(stage, read_and_ask)
    harm(stage.home.root / name)
    in_child(lambda: _serves_nothing_wrong(stage, expected))
    in_child(lambda: _is_mended(stage, before, expected))


def _swap(folder: Path) -> None:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    first, second = max(files, key=_size), sorted(files, key=_size)[-2]
    one, two = first.read_bytes(), second.read_bytes()
    first.write_bytes(two)
    second.write_bytes(one)


def _size(path: Path) -> int:
    return path.stat().st_size


@pytest.mark.parametrize("gone", ["segments", "sidecars", "texts", "chats", "catalog.db", "cache"])
def test_something_is_gone(stage: Stage, gone: str) -> None:
    alone(_harm_at, stage, gone, _lose)


def _lose(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()
