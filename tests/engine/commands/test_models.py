"""The command models: list, add, use, remove."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.commands.conftest import Longshelf
from tests.engine.model import tiny_gguf


def test_list_shows_installed_models_and_what_can_be_fetched(longshelf: Longshelf) -> None:
    rows = {row["name"]: row for row in longshelf("models", "list", "--json").json["models"]}
    assert rows.keys() == {"tiny", "smollm2"}
    assert (rows["tiny"]["installed"], rows["tiny"]["current"], rows["tiny"]["family"]) == (True, True, "llama")
    assert (rows["smollm2"]["installed"], rows["smollm2"]["current"]) == (False, False)


def test_list_marks_the_current_model(longshelf: Longshelf) -> None:
    lines = longshelf("models", "list").out.splitlines()
    assert [line.split()[:3] for line in lines if line.startswith("*")] == [["*", "tiny", "installed"]]


def test_a_model_of_ones_own_is_added_used_and_removed(longshelf: Longshelf, tmp_path: Path) -> None:
    path = tiny_gguf.write(tmp_path / "Mine.gguf", tiny_gguf.tensors(1), llama__context_length=4096)
    assert "mine is installed" in longshelf("models", "add", path).out
    longshelf("models", "use", "mine")
    assert {row["name"]: row["current"] for row in longshelf("models", "list", "--json").json["models"]}["mine"]
    longshelf("models", "remove", "mine")
    assert "mine" not in [row["name"] for row in longshelf("models", "list", "--json").json["models"]]


@pytest.mark.parametrize("action", ["use", "remove", "fetch"])
def test_an_unknown_model_is_named(longshelf: Longshelf, action: str) -> None:
    done = longshelf("models", action, "gpt9", "--json")
    assert (done.status, done.json["error"]["kind"]) == (1, "unknown_model")
    assert "gpt9" in done.err


def test_a_file_that_is_no_model_is_refused(longshelf: Longshelf, tmp_path: Path) -> None:
    (tmp_path / "poem.gguf").write_text("Tyger Tyger, burning bright", encoding="utf-8")
    done = longshelf("models", "add", tmp_path / "poem.gguf", "--json")
    assert (done.status, done.json["error"]["kind"]) == (1, "not_a_model")
