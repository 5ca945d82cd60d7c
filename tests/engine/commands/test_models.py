"""The command models: list, add, use, remove."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from engine.errors import LongshelfError
from tests.engine.books import PART, book
from tests.engine.commands.conftest import Longshelf
from tests.engine.model import tiny_folder, tiny_gguf


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
    said = longshelf("models", "add", path).out
    assert "mine is installed" in said
    assert "parts of 1024 tokens from now on" in said
    longshelf("models", "use", "mine")
    assert {row["name"]: row["current"] for row in longshelf("models", "list", "--json").json["models"]}["mine"]
    longshelf("models", "remove", "mine")
    assert "mine" not in [row["name"] for row in longshelf("models", "list", "--json").json["models"]]


def test_a_model_that_would_take_long_to_calibrate_is_installed_with_a_hint(
    longshelf: Longshelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.model.calibration._CALIBRATING_S", 1e9)
    said = longshelf("models", "add", tiny_gguf.write(tmp_path / "Mine.gguf", tiny_gguf.tensors(1))).out
    assert "mine is installed" in said
    assert "`longshelf models calibrate mine` measures it (about" in said
    assert not list(tmp_path.rglob("calibration.json"))


def test_a_model_that_can_not_be_calibrated_stays_installed(longshelf: Longshelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*arguments: object) -> None:
        raise LongshelfError("disk_full", "The disk is full.", "Free some space.")

    monkeypatch.setattr("engine.model.calibration.save", refused)
    done = longshelf("models", "add", tiny_gguf.write(tmp_path / "Mine.gguf", tiny_gguf.tensors(1), llama__context_length=4096))
    assert done.status == 0
    assert "could not be calibrated: The disk is full." in done.err
    assert "mine" in [row["name"] for row in longshelf("models", "list", "--json").json["models"]]


def test_what_was_quickly_joined_for_a_model_goes_with_it_and_what_was_read_stays(longshelf: Longshelf, tmp_path: Path) -> None:
    longshelf("add", book(tmp_path, 2), "--part-tokens", PART)
    longshelf("ask", "book", "Who?", "--parts", "1,2", "--max-tokens", 2)
    longshelf("models", "add", tiny_gguf.write(tmp_path / "Mine.gguf", tiny_gguf.tensors(1), llama__context_length=4096))
    longshelf("models", "remove", "mine")
    assert list(longshelf.home.sidecars.rglob("*.sidecar"))
    longshelf("models", "remove", "tiny")
    assert not list(longshelf.home.sidecars.rglob("*.sidecar"))
    assert list(longshelf.home.segments.rglob("*.kv"))
    assert longshelf("doctor", "--deep", "--json").json["problems"] == []


@pytest.mark.parametrize("action", ["use", "remove", "fetch"])
def test_an_unknown_model_is_named(longshelf: Longshelf, action: str) -> None:
    done = longshelf("models", action, "gpt9", "--json")
    assert (done.status, done.json["error"]["kind"]) == (1, "unknown_model")
    assert "gpt9" in done.err


def test_a_file_that_is_no_model_is_refused(longshelf: Longshelf, tmp_path: Path) -> None:
    (tmp_path / "poem.gguf").write_text("Tyger Tyger, burning bright", encoding="utf-8")
    done = longshelf("models", "add", tmp_path / "poem.gguf", "--json")
    assert (done.status, done.json["error"]["kind"]) == (1, "not_a_model")


def test_list_says_what_each_model_costs_and_whether_it_fits(longshelf: Longshelf, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {row["name"]: row for row in longshelf("models", "list", "--json").json["models"]}
    assert rows["smollm2"]["kv_gb_per_100_pages"] == 1.152  # 23,040 bytes a token, 500 tokens a page
    assert rows["smollm2"]["gb_per_100_pages"] == 1.224  # and sketches, a sixteenth of that
    assert all(row["fits"] and row["memory_needed"] > row["bytes"] for row in rows.values())
    monkeypatch.setattr("engine.model.needs.psutil.virtual_memory", lambda: SimpleNamespace(total=500_000_000, available=1))
    listed = longshelf("models", "list").out
    assert "more than this machine has (500.0 MB)" in listed
    assert "500 tokens" in listed


def test_a_model_that_does_not_fit_into_memory_is_not_loaded(longshelf: Longshelf, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Once upon a time.", encoding="utf-8")
    memory = SimpleNamespace(total=8_000_000_000, available=100_000)
    monkeypatch.setattr("engine.model.needs.psutil.virtual_memory", lambda: memory)
    done = longshelf("add", tmp_path / "a.txt", "--json")
    error = done.json["error"]
    assert (error["kind"], "GB are free" in error["message"], "--pack" in error["hint"]) == ("not_enough_memory", True, True)


def test_a_folder_is_added_and_packed(longshelf: Longshelf, tmp_path: Path) -> None:
    folder = tiny_folder.write(tmp_path / "Tiny", "Qwen3")
    assert "tiny-folder is installed" in longshelf("models", "add", folder, "--name", "tiny-folder", "--pack", "q8_0").out
    rows = {row["name"]: row for row in longshelf("models", "list", "--json").json["models"]}
    assert (rows["tiny-folder"]["family"], rows["tiny-folder"]["weights"]) == ("qwen3", "q8_0")
    for wrong in (("--pack", "q3_9"), ("--template", "fancy")):
        assert longshelf("models", "add", folder, *wrong, "--json").json["error"]["kind"] == "usage"
