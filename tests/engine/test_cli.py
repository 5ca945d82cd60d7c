"""The command line: what every command shares."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from engine.cli import main
from engine.home import Home
from engine.service import methods
from tests.engine.books import PART, book

Captured = pytest.CaptureFixture[str]


def run(home: Home, *arguments: str) -> int:
    return main(["--home", str(home.root), *arguments])


def result(capsys: Captured) -> dict[str, Any]:
    """The one JSON object on stdout."""
    printed: dict[str, Any] = json.loads(capsys.readouterr().out)
    return printed


def test_a_mistake_of_ours_is_one_line_and_the_log_says_where(tiny_home: Home, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    def mistaken(*_: object) -> dict[str, Any]:
        raise RuntimeError("the reason")

    monkeypatch.setitem(methods.METHODS, "paths", mistaken)
    assert run(tiny_home, "paths", "--json") == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["error"]["kind"] == "engine_fault"
    assert err.count("\n") == 1
    assert "in mistaken" in tiny_home.log.read_text()


def test_what_goes_wrong_while_reading_stays_out_of_the_terminal(
    tiny_home: Home, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mistaken(*_: object) -> None:
        raise RuntimeError("the reason")

    monkeypatch.setattr("engine.reading.memory.remember_part", mistaken)
    assert run(tiny_home, "add", str(book(tmp_path)), "--json") == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["error"]["kind"] == "engine_fault"
    assert err.count("\n") == 1
    assert "in mistaken" in tiny_home.log.read_text()


def test_an_answer_that_was_stopped_is_printed_and_ends_as_interrupted(
    tiny_home: Home, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(methods.METHODS, "ask", lambda *_: {"stopped": True, "answer": "so far"})
    assert run(tiny_home, "ask", "--all", "Who?", "--json") == 130
    assert result(capsys)["answer"] == "so far"


def test_an_add_that_took_nothing_fails_and_says_so_in_its_object(tiny_home: Home, tmp_path: Path, capsys: Captured) -> None:
    empty = tmp_path / "empty.txt"
    empty.touch()
    assert run(tiny_home, "add", str(empty), "--json") == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["error"]["kind"] == json.loads(out)["documents"][0]["error"]["kind"] == "no_text"
    assert err.count("\n") == 1
    assert run(tiny_home, "add", str(empty), str(book(tmp_path)), "--json") == 0


def test_a_document_is_named_by_a_relative_path_even_when_its_source_is_gone(
    tiny_home: Home, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    book(tmp_path)
    assert run(tiny_home, "add", "book.txt", "--no-read") == 0
    (tmp_path / "book.txt").unlink()
    capsys.readouterr()
    for name in ("book.txt", "./book.txt", f"../{tmp_path.name}/book.txt"):
        assert run(tiny_home, "show", name, "--json") == 0
        assert result(capsys)["path"] == str(tmp_path / "book.txt")
    assert run(tiny_home, "remove", "book.txt") == 0


def test_a_file_name_that_is_no_text_is_named_all_the_same(tiny_home: Home, tmp_path: Path, capsys: Captured) -> None:
    name = os.fsdecode(bytes(tmp_path / "caf") + b"\xe9.txt")
    assert run(tiny_home, "add", name, "--json") == 1
    assert result(capsys)["error"]["kind"] == "not_found"


def test_a_reader_of_the_output_that_has_gone_is_no_error(tiny_home: Home, tmp_path: Path) -> None:
    assert run(tiny_home, "add", str(book(tmp_path)), "--part-tokens", str(PART)) == 0
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "engine.cli", "--home", str(tiny_home.root), "list"]
    ended = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, cwd=Path(__file__).parents[2], check=False)
    os.close(writing)
    assert ended.stderr == b""


def test_listing_loads_no_torch(tiny_home: Home, tmp_path: Path) -> None:
    assert run(tiny_home, "add", str(book(tmp_path)), "--no-read") == 0
    command = f"import sys; from engine.cli import main; main(['--home', {str(tiny_home.root)!r}, 'list']); print('torch' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, cwd=Path(__file__).parents[2], check=True)
    assert ended.stdout.splitlines()[-1] == "False"


def test_a_command_leaves_the_catalog_whole_in_one_file_and_with_its_copy(tiny_home: Home, tmp_path: Path) -> None:
    assert run(tiny_home, "add", str(book(tmp_path)), "--part-tokens", str(PART)) == 0
    assert not tiny_home.catalog.with_name("catalog.db-wal").exists()
    assert tiny_home.catalog.with_name("catalog.backup.db").stat().st_size > 0


def test_a_failure_is_one_line_whatever_it_quotes(tiny_home: Home, tmp_path: Path, capsys: Captured) -> None:
    assert run(tiny_home, "add", str(tmp_path / "two\nlines.txt")) == 1
    assert capsys.readouterr().err.count("\n") == 1
