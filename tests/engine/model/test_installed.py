"""Which models a home has, which one is used, and what a damaged one says."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from engine.errors import LongshelfError
from engine.home import Home
from engine.model import installed as installed_module
from engine.model import safetensors_file
from engine.model.install import install_model
from engine.model.installed import Models
from engine.shelf import Call, Shelf
from tests.engine.books import add, book
from tests.engine.model import tiny_gguf


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home").open()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return tiny_gguf.write(tmp_path / "tiny.gguf")


def test_without_a_model_the_next_step_is_named(home: Home) -> None:
    with pytest.raises(LongshelfError) as caught:
        Models(home).open()
    assert (caught.value.kind, "models fetch" in caught.value.hint) == ("no_model", True)
    assert Models(home).current() is None


def test_the_chosen_model_stays_chosen(home: Home, source: Path) -> None:
    install_model(home, source, "a")
    install_model(home, source, "b")
    assert Models(home).current() == "a"
    Models(home).use("b")
    assert Models(home).open().name == "b"


def test_installing_another_changes_nothing_about_who_answers(home: Home, source: Path) -> None:
    install_model(home, source, "b")
    install_model(home, source, "a")
    assert Models(home).current() == "b"


def test_when_the_chosen_one_is_removed_another_serves(home: Home, source: Path) -> None:
    install_model(home, source, "a")
    install_model(home, source, "b")
    Models(home).use("b")
    Models(home).remove("b")
    assert (Models(home).names(), Models(home).current()) == (["a"], "a")
    assert list(home.models.glob(".install-*")) == []


def test_an_unknown_name_is_an_error(home: Home) -> None:
    for act in (Models(home).use, Models(home).remove, Models(home).open):
        with pytest.raises(LongshelfError) as caught:
            act("nobody")
        assert caught.value.kind == "unknown_model"


def test_the_list_offers_the_default_model_beside_the_installed_ones(home: Home, source: Path) -> None:
    install_model(home, source, "mine")
    rows = Models(home).list()
    assert [(row["name"], row["installed"], row["current"]) for row in rows] == [("mine", True, True), ("smollm2", False, False)]
    assert rows[0].keys() == rows[1].keys()
    assert rows[1]["bytes"] == 92_871_040
    json.dumps(rows)


def test_a_damaged_model_is_listed_with_its_problem_and_can_be_removed(home: Home, source: Path) -> None:
    install_model(home, source, "mine")
    weights = home.models / "mine" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    models = Models(home)
    assert "damaged" in models.list()[0]["problem"]
    with pytest.raises(LongshelfError) as caught:
        models.open("mine")
    assert caught.value.kind == "model_damaged"
    models.remove("mine")
    assert models.names() == []


def test_a_flipped_bit_in_the_weights_is_found_by_verify(home: Home, source: Path) -> None:
    model = Models(home).open(install_model(home, source))
    model.verify()
    content = bytearray(model.weights.read_bytes())
    content[-1] ^= 1
    model.weights.write_bytes(content)
    with pytest.raises(LongshelfError) as caught:
        model.verify()
    assert caught.value.kind == "model_damaged"


def test_a_card_of_a_later_version_is_refused(home: Home, source: Path) -> None:
    path = home.models / install_model(home, source) / "model.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 2}))
    with pytest.raises(LongshelfError) as caught:
        Models(home).open()
    assert caught.value.kind == "newer_home"


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 0x40
    path.write_bytes(content)


def test_a_model_whose_weights_changed_on_the_disk_is_not_loaded(tiny_home: Home) -> None:
    weights = Models(tiny_home).open().weights
    flip(weights, weights.stat().st_size // 2)
    shelf = Shelf(tiny_home)
    with pytest.raises(LongshelfError) as caught:
        shelf.model()
    assert caught.value.kind == "model_damaged"
    shelf.close()


def test_the_doctor_names_a_damaged_model_and_the_documents_are_still_listed(tiny_home: Home, tmp_path: Path) -> None:
    shelf = Shelf(tiny_home)
    add(shelf, book(tmp_path))
    weights = shelf.models.open().weights
    flip(weights, weights.stat().st_size // 2)
    assert [problem["kind"] for problem in shelf.call("doctor", {"deep": True}, Call())["problems"]] == ["model_damaged"]
    (weights.parent / "config.json").write_text("{")
    assert [problem["kind"] for problem in shelf.call("doctor", {}, Call())["problems"]] == ["model_damaged"]
    assert [row["state"] for row in shelf.call("documents.list", {}, Call())["documents"]] == ["ready"]
    shelf.close()


@pytest.mark.parametrize("name", ["model.json", "config.json", "tokenizer.json", "chat_template.jinja"])
def test_no_letter_of_a_model_s_small_files_can_change_unnoticed(home: Home, source: Path, name: str) -> None:
    folder = home.models / install_model(home, source)
    content = (folder / name).read_bytes()
    for at in range(0, len(content), 29):
        (folder / name).write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        with pytest.raises(LongshelfError) as caught:
            Models(home).open().verify()
        assert caught.value.kind in ("model_damaged", "newer_home"), at
    (folder / name).write_bytes(content)
    Models(home).open().verify()


def test_large_weights_are_read_at_the_first_start_only_until_their_file_changes(
    home: Home, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Models(home).open(install_model(home, source))
    read: list[Path] = []
    digest = safetensors_file.digest
    monkeypatch.setattr(safetensors_file, "digest", lambda path: read.append(path) or digest(path))
    model.verify_once()
    model.verify_once()
    assert len(read) == 2
    monkeypatch.setattr(installed_module, "LARGE", 1000)
    model.verify_once()
    model.verify_once()
    assert len(read) == 3
    status = model.weights.stat()
    flip(model.weights, 5000)
    os.utime(model.weights, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(LongshelfError):
        model.verify_once()
    flip(model.weights, 5000)
    model.verify_once()
    assert len(read) == 5


def test_a_card_that_is_gone_is_told_by_the_doctor(tiny_home: Home) -> None:
    (tiny_home.models / "tiny" / "model.json").unlink()
    shelf = Shelf(tiny_home)
    (problem,) = shelf.call("doctor", {}, Call())["problems"]
    assert (problem["kind"], "tiny" in problem["what"]) == ("model_damaged", True)
    shelf.close()
