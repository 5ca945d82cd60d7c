"""What clients that watch are told when the models change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.home import Home
from engine.model.install import install_model
from engine.shelf import Call, Shelf
from tests.engine.books import add, book
from tests.engine.model import tiny_gguf


@pytest.fixture
def shelf(tiny_home: Home, tmp_path: Path) -> Iterator[Shelf]:
    """The engine of a home with a second model, "another"."""
    install_model(tiny_home, tiny_gguf.write(tmp_path / "other.gguf", tiny_gguf.tensors(seed=7)), "another")
    opened = Shelf(tiny_home)
    opened.call("models.use", {"name": "tiny"}, Call())
    yield opened
    opened.close()


def told_by(shelf: Shelf, method: str, name: str) -> dict[str, list[dict[str, Any]]]:
    """Rows by event that watchers get while a method runs."""
    heard: list[tuple[str, dict[str, Any]]] = []
    end = shelf.subscribe(lambda event, data: heard.append((event, data)))
    shelf.call(method, {"name": name}, Call())
    end()
    return {event: data[event] for event, data in heard}


def test_another_model_changes_what_is_read_of_documents(shelf: Shelf, tmp_path: Path) -> None:
    add(shelf, book(tmp_path))
    other = told_by(shelf, "models.use", "another")
    assert {row["name"]: row["current"] for row in other["models"] if row["installed"]} == {"another": True, "tiny": False}
    assert [(row["state"], row["parts_ready"]) for row in other["documents"]] == [("ready", 0)]
    back = told_by(shelf, "models.use", "tiny")
    assert [row["parts_ready"] for row in back["documents"]] == [2]


def test_a_removed_model_is_told_as_gone(shelf: Shelf) -> None:
    told = told_by(shelf, "models.remove", "another")
    assert {"name": "another", "removed": True} in told["models"]
