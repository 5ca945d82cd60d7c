"""The commands add, list, show, remove and jobs."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.home import Home
from engine.version import VERSION
from tests.engine.books import PART, book, chapter
from tests.engine.commands.conftest import Longshelf

# ---- add ----


def test_add_gives_one_object_of_what_was_read(longshelf: Longshelf, tmp_path: Path) -> None:
    path = book(tmp_path, 2)
    done = longshelf("add", path, "--part-tokens", PART, "--json")
    [document] = done.json["documents"]
    assert done.status == 0
    assert (document["path"], document["title"], document["state"], document["reason"]) == (str(path), "book", "ready", "")
    assert (document["parts"], document["segments_computed"], document["segments_found"]) == (2, 2, 0)
    assert document["tokens"] > 0
    assert document["bytes"] > 0
    assert document["seconds"] > 0
    assert len(document["id"]) == 8


def test_add_tells_a_person_what_was_read(longshelf: Longshelf, tmp_path: Path) -> None:
    done = longshelf("add", book(tmp_path, 2), "--part-tokens", PART)
    assert done.status == 0
    assert "book: ready" in done.out
    assert "tokens in 2 parts" in done.out


def test_add_again_says_that_it_is_remembered(longshelf: Longshelf, tmp_path: Path) -> None:
    path = book(tmp_path, 1)
    longshelf("add", path)
    assert "already remembered" in longshelf("add", path).out


def test_a_relative_path_is_the_one_of_the_caller(longshelf: Longshelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = book(tmp_path, 1)
    monkeypatch.chdir(tmp_path)
    assert longshelf("add", "book.txt", "--json").json["documents"][0]["path"] == str(path)


def test_adding_streams_its_progress_as_json_lines(longshelf: Longshelf, tmp_path: Path) -> None:
    lines = longshelf("add", book(tmp_path, 2), "--jsonl").lines
    assert lines[-1]["event"] == "result"
    assert lines[-1]["data"]["documents"][0]["state"] == "ready"
    progress = [line["data"] for line in lines if line["event"] == "progress"]
    assert progress[-1]["percent"] == 100.0


def test_adding_a_missing_file_fails_with_one_line(longshelf: Longshelf, tmp_path: Path) -> None:
    done = longshelf("add", tmp_path / "nowhere.txt", "--json")
    assert done.status == 1
    assert done.json["error"]["kind"] == "not_found"
    assert done.err.count("\n") == 1
    assert "nowhere.txt" in done.err


def test_adding_only_bad_files_fails(longshelf: Longshelf, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").touch()
    done = longshelf("add", tmp_path / "empty.txt", "--json")
    assert done.status == 1
    assert done.json["documents"][0]["state"] == "no_text"


def test_a_bad_file_beside_a_good_one_is_told_and_does_no_harm(longshelf: Longshelf, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").touch()
    done = longshelf("add", tmp_path / "empty.txt", book(tmp_path, 1))
    assert done.status == 0
    assert "book: ready" in done.out
    assert "empty.txt" in done.err


def test_text_alone_can_be_added_without_a_model(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    done = Longshelf(Home(tmp_path / "home"), capsys)("add", book(tmp_path, 1), "--no-read", "--json")
    assert done.status == 0
    assert done.json["documents"][0]["state"] == "paused"


def test_adding_without_a_model_says_how_to_get_one(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    done = Longshelf(Home(tmp_path / "home"), capsys)("add", book(tmp_path, 1))
    assert done.status == 1
    assert "longshelf models fetch" in done.err


@pytest.mark.parametrize("size", ["10", "100000", "many"])
def test_an_impossible_part_size_is_wrong_usage(longshelf: Longshelf, tmp_path: Path, size: str) -> None:
    done = longshelf("add", book(tmp_path, 1), "--part-tokens", size, "--json")
    assert (done.status, done.json["error"]["kind"]) == (2, "usage")


@pytest.mark.parametrize("command", ["add", "show"])
def test_an_unknown_encoding_is_wrong_usage(longshelf: Longshelf, tmp_path: Path, command: str) -> None:
    done = longshelf(command, book(tmp_path, 1), "--encoding", "klingon", "--json")
    assert (done.status, done.json["error"]["kind"]) == (2, "usage")
    assert "klingon" in done.err
    assert "cp949" in done.json["error"]["hint"]
    assert longshelf("list", "--json").json == {"documents": []}


# ---- list ----


def test_list_gives_a_row_for_each_document(longshelf: Longshelf, tmp_path: Path) -> None:
    longshelf("add", book(tmp_path, 1, "a.txt"), book(tmp_path, 1, "b.txt", first=2))
    rows = longshelf("list", "--json").json["documents"]
    assert [row["title"] for row in rows] == ["a", "b"]
    assert {"id", "title", "path", "format", "state", "reason", "tokens", "parts", "bytes"} <= rows[0].keys()


def test_list_tells_a_person_title_and_state(longshelf: Longshelf, tmp_path: Path) -> None:
    longshelf("add", book(tmp_path, 1))
    [line] = longshelf("list").out.splitlines()
    assert "ready" in line
    assert line.endswith("book")


def test_list_takes_words_to_look_for(longshelf: Longshelf, tmp_path: Path) -> None:
    longshelf("add", book(tmp_path, 1, "a.txt"), book(tmp_path, 1, "b.txt", first=2))
    assert [row["title"] for row in longshelf("list", "Ward2007", "--json").json["documents"]] == ["b"]


def test_an_empty_shelf_says_what_to_do(longshelf: Longshelf) -> None:
    assert "longshelf add" in longshelf("list").out
    assert longshelf("list", "--json").json == {"documents": []}


# ---- show ----


def test_show_prints_the_text_to_the_letter(longshelf: Longshelf, tmp_path: Path) -> None:
    longshelf("add", book(tmp_path, 2))
    assert longshelf("show", "book", "--text").out == chapter(1) + chapter(2) + "\n"


def test_show_gives_text_pages_and_parts(longshelf: Longshelf, tmp_path: Path) -> None:
    longshelf("add", book(tmp_path, 2), "--part-tokens", PART)
    shown = longshelf("show", "book", "--json").json
    assert {"id", "title", "format", "encoding", "state", "reason", "text", "pages", "parts"} <= shown.keys()
    assert shown["text"] == chapter(1) + chapter(2)
    assert [part["n"] for part in shown["parts"]] == [1, 2]


def test_show_reads_a_path_that_is_not_added_without_a_model(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    longshelf = Longshelf(Home(tmp_path / "home"), capsys)
    assert longshelf("show", book(tmp_path, 1), "--json").json["text"] == chapter(1)
    assert longshelf("list", "--json").json == {"documents": []}


def test_show_takes_one_page(longshelf: Longshelf, tmp_path: Path) -> None:
    path = tmp_path / "paged.txt"
    path.write_text("The first page.\n\fThe second page.\n", encoding="utf-8")
    shown = longshelf("show", path, "--page", 2, "--json").json
    assert shown["text"].strip("\f\n") == "The second page."


def test_a_page_that_is_not_there_is_wrong_usage(longshelf: Longshelf, tmp_path: Path) -> None:
    done = longshelf("show", book(tmp_path, 1), "--page", 9)
    assert done.status == 2
    assert "no page 9" in done.err


@pytest.mark.parametrize("command", ["show", "remove"])
def test_an_unknown_document_is_named(longshelf: Longshelf, command: str) -> None:
    done = longshelf(command, "nothing", "--json")
    assert (done.status, done.json["error"]["kind"]) == (1, "not_found")
    assert "nothing" in done.err


# ---- remove, jobs ----


def test_remove_forgets_a_document_and_leaves_its_source(longshelf: Longshelf, tmp_path: Path) -> None:
    path = book(tmp_path, 1)
    longshelf("add", path)
    assert "Removed “book”" in longshelf("remove", "book").out
    assert longshelf("list", "--json").json == {"documents": []}
    assert path.exists()


def test_without_jobs_nothing_is_waiting(longshelf: Longshelf) -> None:
    assert longshelf("jobs").out == "Nothing is waiting.\n"
    assert longshelf("jobs", "list", "--json").json == {"jobs": []}


def test_a_job_of_nobody_is_named(longshelf: Longshelf) -> None:
    done = longshelf("jobs", "pause", "77", "--json")
    assert (done.status, done.json["error"]["kind"]) == (1, "not_found")


def test_show_tells_a_person_what_was_skipped_and_what_an_earlier_version_read(
    longshelf: Longshelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book(tmp_path / "code", 1, "a.py")
    (tmp_path / "code" / "logo.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    longshelf("add", tmp_path / "code")
    shown = longshelf("show", "code").out
    assert "skipped: logo.png (binary)" in shown
    assert "read by" not in shown
    monkeypatch.setattr("engine.commands.documents.VERSION", "9.9.9")
    assert f"read by Longshelf {VERSION}, and still good" in longshelf("show", "code").out
