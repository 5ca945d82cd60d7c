"""A home that is copied, a clock that is set back, other threads, another model, two programs at once."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from engine import settings
from engine.home import Home
from engine.model.install import install_model
from engine.service.server import Host
from engine.shelf import Call, Shelf
from tests.engine.books import PART, Row, add, ask, book
from tests.engine.model import tiny_gguf
from tests.engine.survival.whole import examined, shelf_of

REPO = Path(__file__).parents[3]


def longshelf(home: Home, *words: object) -> subprocess.Popen[str]:
    """`longshelf` in a process of its own."""
    command = [sys.executable, "-m", "engine.cli", "--home", str(home.root), *map(str, words), "--json"]
    return subprocess.Popen(command, cwd=REPO, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def result(process: subprocess.Popen[str]) -> Any:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return json.loads(out)


def test_a_copied_home_answers_elsewhere_while_the_original_is_in_use(tiny_home: Home, tmp_path: Path) -> None:
    with shelf_of(tiny_home) as shelf:
        add(shelf, book(tmp_path))
        before = ask(shelf, "book", parts=[1])
    host = Host(tiny_home)
    copy = Home(tmp_path / "elsewhere" / "copied home")
    shutil.copytree(tiny_home.root, copy.root, ignore=shutil.ignore_patterns("engine.sock"))
    second = Host(copy)
    after = ask(second.shelf, "book", parts=[1])
    assert (after["token_ids"], after["document_tokens_prefilled"]) == (before["token_ids"], 0)
    assert examined(second.shelf)["problems"] == []
    second.shelf.call("documents.remove", {"id": "book"}, Call())
    second.close()
    assert ask(host.shelf, "book", parts=[1])["token_ids"] == before["token_ids"]
    host.close()


def test_a_clock_that_goes_backwards_disturbs_nothing(tiny_home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moments = itertools.count(time.time(), -3600.0)
    monkeypatch.setattr(time, "time", lambda: next(moments))
    with shelf_of(tiny_home) as shelf:
        rows = [add(shelf, book(tmp_path, 1, f"{name}.txt", first=n)) for n, name in enumerate("abc", 1)]
        first = ask(shelf, "a", "b")
        assert ask(shelf, "a", "b")["document_tokens_prefilled"] == 0
        chat = ask(shelf, question="And then?", chat=first["chat"])
        shown = shelf.call("chats.show", {"id": chat["chat"]}, Call())
        assert [message["role"] for message in shown["messages"]] == ["user", "assistant"] * 2
        for name in "bca":
            ask(shelf, name)
        given_up = shelf.call("gc", {"down_to": 0, "forget": True}, Call())["forgotten"]
        assert [document["title"] for document in given_up] == ["b", "c", "a"]
        assert add(shelf, tmp_path / "a.txt")["state"] == "ready"
        assert examined(shelf)["problems"] == []
    with shelf_of(tiny_home) as shelf:
        assert {row.id for row in shelf.library.documents.all()} == {row["id"] for row in rows}


def test_what_one_number_of_threads_read_another_answers_from(tiny_home: Home, tmp_path: Path) -> None:
    for threads in (1, 2):
        settings.change(tiny_home, {"threads": threads})
        with shelf_of(tiny_home) as shelf:
            added = add(shelf, book(tmp_path))
            assert ask(shelf, "book")["document_tokens_prefilled"] == 0
            assert added["segments_found" if threads == 2 else "segments_computed"] == 2
            made = shelf.call("documents.show", {"id": "book"}, Call())["made_by"]
            assert [(way["threads"], way["parts"]) for way in made] == [("1", [1, 2])]


def other_model(home: Home, room: Path) -> None:
    values = tiny_gguf.tensors(seed=7)
    values["token_embd.weight"][: len(tiny_gguf.SPECIALS)] = 0
    install_model(home, tiny_gguf.write(room / "other.gguf", values, llama__context_length=4096), "another")


def test_one_model_never_answers_from_what_another_read(tiny_home: Home, tmp_path: Path) -> None:
    other_model(tiny_home, tmp_path)
    with shelf_of(tiny_home) as shelf:
        shelf.call("models.use", {"name": "tiny"}, Call())
        add(shelf, book(tmp_path))
        before = ask(shelf, "book", parts=[1])
        shelf.call("models.use", {"name": "another"}, Call())
        refused = _refusal(shelf)
        assert refused == "not_ready"
        assert add(shelf, tmp_path / "book.txt")["segments_computed"] == 2
        assert ask(shelf, "book", parts=[1])["token_ids"] != before["token_ids"]
        shelf.call("models.use", {"name": "tiny"}, Call())
        again = ask(shelf, "book", parts=[1])
        assert (again["token_ids"], again["document_tokens_prefilled"]) == (before["token_ids"], 0)
        assert examined(shelf)["problems"] == []


def _refusal(shelf: Shelf) -> str:
    from engine.errors import LongshelfError

    with pytest.raises(LongshelfError) as caught:
        ask(shelf, "book")
    return caught.value.kind


def test_a_model_of_the_same_name_with_other_weights_reads_anew(tiny_home: Home, tmp_path: Path) -> None:
    with shelf_of(tiny_home) as shelf:
        add(shelf, book(tmp_path))
    other_model(tiny_home, tmp_path)
    shutil.rmtree(tiny_home.models / "tiny")
    (tiny_home.models / "another").rename(tiny_home.models / "tiny")
    with shelf_of(tiny_home) as shelf:
        assert _refusal(shelf) == "not_ready"
        assert add(shelf, tmp_path / "book.txt")["segments_computed"] == 2


def test_two_programs_that_add_the_same_document_at_once_read_it_once(tiny_home: Home, tmp_path: Path) -> None:
    path = book(tmp_path, 4)
    started = [longshelf(tiny_home, "add", path, "--part-tokens", PART) for _ in range(3)]
    rows: list[Row] = [result(process)["documents"][0] for process in started]
    assert {(row["id"], row["state"]) for row in rows} == {(rows[0]["id"], "ready")}
    with shelf_of(tiny_home) as shelf:
        report = examined(shelf)
        assert report["problems"] == []
        assert report["tokens_prefilled_total"] == rows[0]["tokens"]


def test_a_command_beside_a_window_uses_its_engine(tiny_home: Home, tmp_path: Path) -> None:
    host = Host(tiny_home)
    added = result(longshelf(tiny_home, "add", book(tmp_path)))["documents"][0]
    assert host.shelf.library.documents.get(added["id"]).state == "ready"
    host.shelf.library.close()
    assert ask(host.shelf, "book")["document_tokens_prefilled"] == 0
    host.close()
