"""Homes of earlier versions, and of this one, open with all they hold, and nothing is read again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.home import Home
from engine.library.recovery import rebuild
from engine.shelf import Call, Shelf
from engine.version import VERSION
from tests.engine.store.memory_folder import memory_folder
from tests.homes.make import FOLDER, Row, held, make, unpack


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    yield from memory_folder()


@pytest.fixture(params=sorted(FOLDER.glob("*.zip")), ids=lambda path: path.stem)
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Home, Row]:
    """A home of that version, and what it held when it was made."""
    return unpack(request.param, tmp_path)


@pytest.fixture
def shelf(kept: tuple[Home, Row]) -> Iterator[Shelf]:
    opened = Shelf(kept[0])
    yield opened
    opened.close()


def ask(shelf: Shelf, *titles: str) -> Row:
    return shelf.call("ask", {"documents": titles, "question": "Who is it?", "max_tokens": 4}, Call())


def test_there_is_a_home_of_this_version() -> None:
    assert (FOLDER / f"{VERSION}.zip").exists(), "keep one: python -m tests.homes.make"


def test_it_holds_what_it_held(shelf: Shelf, kept: tuple[Home, Row]) -> None:
    assert held(shelf) == kept[1]


def test_it_answers_from_what_was_read_then(shelf: Shelf) -> None:
    for titles in (["lamps"], ["doors"], ["doors", "gates"]):
        answer = ask(shelf, *titles)
        assert answer["document_tokens_prefilled"] == 0, titles
        assert answer["generated_tokens"] == 4


def test_the_deep_check_finds_nothing_wrong(shelf: Shelf) -> None:
    assert shelf.call("doctor", {"deep": True}, Call())["problems"] == []


def test_the_same_text_added_again_is_found_and_not_read(shelf: Shelf, tmp_path: Path) -> None:
    (tmp_path / "again.txt").write_text(shelf.library.documents.text(shelf.library.documents.find("doors").id), encoding="utf-8")
    added = shelf.call("documents.add", {"paths": [str(tmp_path / "again.txt")]}, Call())["documents"][0]
    assert (added["state"], added["segments_computed"], added["segments_found"]) == ("ready", 0, 1)


def test_its_catalog_can_be_made_again(kept: tuple[Home, Row]) -> None:
    home, before = kept
    for name in ("catalog.db", "catalog.backup.db"):
        (home.root / name).unlink()
    rebuild(home)
    shelf = Shelf(home)
    assert held(shelf) == before
    assert ask(shelf, "lamps")["document_tokens_prefilled"] == 0
    shelf.close()


def test_a_home_can_be_kept_of_every_version(tmp_path: Path) -> None:
    home, before = unpack(make(tmp_path), tmp_path / "there")
    shelf = Shelf(home)
    assert held(shelf) == before
    shelf.close()
