"""Deleting everything takes what is ours and leaves what isn't, wherever the home lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import LongshelfError
from engine.home import Home
from engine.store import durable
from engine.store.deletion import delete
from engine.store.lock import FileLock

OURS = (
    "catalog.db",
    "catalog.db-wal",
    "catalog.backup.db",
    "catalog.before-m004_chats.db",
    "catalog.db.damaged-20260101-120000",
    "settings.json",
    "ballast",
    "engine.log",
    "engine.log.1",
    "window.ini",
    "window.log",
    "texts/ab12cd34.json",
    "texts/ab12cd34.json.damaged",
    "chats/ab12cd34.json",
    "segments/ab/" + "ab" * 32 + ".kv",
    "sidecars/ab/" + "ab" * 32 + ".sidecar",
    "models/current",
    "models/mine/model.json",
    "models/mine/model.safetensors",
    "models/.install-x/half",
    "cache/downloads/model.whl",
)
THEIRS = (
    "catalog.txt",
    "catalog.xlsx",
    "window.png",
    "engine.log.txt",
    "diary.txt",
    "texts/letter.txt",
    "texts/ab12cd34.txt",
    "models/ship/hull.stl",
    "segments/ab/song.kv",
    "sidecars/ab/engine.sidecar",
    "photos/ab/one.jpg",
)


def fill(home: Home, *names: str) -> None:
    for name in names:
        path = home.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")


def left(home: Home) -> set[str]:
    return {path.relative_to(home.root).as_posix() for path in home.root.rglob("*") if path.is_file()}


def test_a_home_of_its_own_is_gone_altogether(tmp_path: Path) -> None:
    home = Home(tmp_path / "home").open()
    fill(home, *OURS)
    durable.temporary_beside(home.catalog).touch()
    assert delete(home) == []
    assert not home.root.exists()


def test_in_a_folder_of_other_files_those_stay(tmp_path: Path) -> None:
    home = Home(tmp_path / "home").open()
    fill(home, *OURS, *THEIRS)
    names = {path.name for path in delete(home)}
    assert left(home) == set(THEIRS)
    assert {"diary.txt", "photos", "texts", "models"} <= names


def test_nothing_is_deleted_while_an_engine_runs(tmp_path: Path) -> None:
    home = Home(tmp_path / "home").open()
    fill(home, *OURS)
    with FileLock(home.engine_lock), pytest.raises(LongshelfError) as caught:
        delete(home)
    assert caught.value.kind == "locked"
    assert set(OURS) <= left(home)
