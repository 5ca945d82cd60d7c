"""Adding, showing and removing documents: every state, nothing computed twice, every bad file alone with its reason."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from engine.errors import LongshelfError, Stopped
from engine.home import Home
from engine.shelf import Call, Shelf
from engine.store import space
from tests.engine.books import Row, add, book, chapter, listen
from tests.engine.gate import Gate


def call(shelf: Shelf, method: str, **params: object) -> Row:
    return shelf.call(method, params, Call())


def listed(shelf: Shelf) -> list[Row]:
    rows: list[Row] = call(shelf, "documents.list")["documents"]
    return rows


def prefilled(shelf: Shelf) -> int:
    total: int = call(shelf, "doctor")["tokens_prefilled_total"]
    return total


# ---- what is read ----


def test_a_document_that_was_read_is_ready(tiny_shelf: Shelf, tmp_path: Path) -> None:
    added = add(tiny_shelf, book(tmp_path, 3))
    assert (added["state"], added["reason"], added["title"], added["parts"]) == ("ready", "", "book", 3)
    assert (added["segments_computed"], added["segments_found"]) == (3, 0)
    assert "error" not in added


def test_the_bytes_of_a_document_hold_the_kv_of_all_its_tokens(tiny_shelf: Shelf, tmp_path: Path) -> None:
    added = add(tiny_shelf, book(tmp_path, 3))
    per_token = tiny_shelf.models.open().config.kv_bytes_per_token
    assert added["bytes"] >= added["tokens"] * per_token
    assert added["tokens"] == prefilled(tiny_shelf)


def test_parts_stand_where_chapters_do(tiny_shelf: Shelf, tmp_path: Path) -> None:
    added = add(tiny_shelf, book(tmp_path, 3))
    shown = call(tiny_shelf, "documents.show", id=added["id"])
    starts = [shown["text"][part["start"] :].split("\n")[0] for part in shown["parts"]]
    assert starts == ["CHAPTER 1", "CHAPTER 2", "CHAPTER 3"]
    assert [(part["n"], part["state"]) for part in shown["parts"]] == [(1, "ready"), (2, "ready"), (3, "ready")]
    assert sum(part["tokens"] for part in shown["parts"]) == added["tokens"]


def test_the_models_own_part_size_holds_unless_another_is_wanted(tiny_shelf: Shelf, tmp_path: Path) -> None:
    assert add(tiny_shelf, book(tmp_path, 3), part_tokens=None)["parts"] == 1


def test_a_folder_is_one_document(tiny_shelf: Shelf, tmp_path: Path) -> None:
    book(tmp_path / "code", 1, "a.py")
    book(tmp_path / "code", 1, "b.py", first=2)
    (tmp_path / "code" / "logo.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    added = add(tiny_shelf, tmp_path / "code")
    assert (added["state"], added["title"]) == ("ready", "code")
    assert added["skipped"] == [{"path": "logo.png", "reason": "binary"}]
    assert [file["label"] for file in call(tiny_shelf, "documents.show", id=added["id"])["files"]] == ["a.py", "b.py"]


def test_several_documents_are_added_in_one_go(tiny_shelf: Shelf, tmp_path: Path) -> None:
    paths = [str(book(tmp_path, 1, f"{name}.txt", first=n)) for n, name in enumerate("ab", 1)]
    documents = call(tiny_shelf, "documents.add", paths=paths)["documents"]
    assert [(one["title"], one["state"]) for one in documents] == [("a", "ready"), ("b", "ready")]


def test_without_waiting_the_answer_comes_while_the_document_is_queued(tiny_shelf: Shelf, tmp_path: Path) -> None:
    gate = Gate(tiny_shelf, at=1)
    assert add(tiny_shelf, book(tmp_path, 1), wait=False)["state"] in ("queued", "remembering")
    gate.open()


# ---- nothing twice ----


def test_the_same_file_added_again_computes_nothing(tiny_shelf: Shelf, tmp_path: Path) -> None:
    path = book(tmp_path, 3)
    first, before = add(tiny_shelf, path), prefilled(tiny_shelf)
    second = add(tiny_shelf, path)
    assert (second["id"], second["state"]) == (first["id"], "ready")
    assert (second["segments_computed"], second["segments_found"]) == (0, 3)
    assert prefilled(tiny_shelf) == before


def test_the_same_bytes_under_another_name_compute_nothing(tiny_shelf: Shelf, tmp_path: Path) -> None:
    path = book(tmp_path, 3)
    first, before = add(tiny_shelf, path), prefilled(tiny_shelf)
    second = add(tiny_shelf, Path(shutil.copy(path, tmp_path / "copy.txt")))
    assert second["id"] != first["id"]
    assert (second["state"], second["segments_computed"], second["segments_found"]) == ("ready", 0, 3)
    assert prefilled(tiny_shelf) == before


def test_a_new_engine_finds_what_an_earlier_one_read(tiny_home: Home, tmp_path: Path) -> None:
    path = book(tmp_path, 3)
    first = Shelf(tiny_home)
    add(first, path)
    first.close()
    second = Shelf(tiny_home)
    assert (again := add(second, path))["segments_computed"] == 0
    assert again["segments_found"] == 3
    second.close()


def test_a_changed_source_is_read_anew_under_the_same_id(tiny_shelf: Shelf, tmp_path: Path) -> None:
    path = book(tmp_path, 2)
    first = add(tiny_shelf, path)
    path.write_text(chapter(8) + chapter(9), encoding="utf-8")
    second = add(tiny_shelf, path)
    assert (second["id"], second["state"], second["segments_computed"]) == (first["id"], "ready", 2)
    assert call(tiny_shelf, "documents.show", id=first["id"])["text"] == path.read_text(encoding="utf-8")
    assert len(listed(tiny_shelf)) == 1


def test_an_edit_reads_only_the_part_it_is_in(tiny_shelf: Shelf, tmp_path: Path) -> None:
    path = book(tmp_path, 3)
    add(tiny_shelf, path)
    path.write_text(chapter(1) + chapter(9) + chapter(3), encoding="utf-8")
    again = add(tiny_shelf, path)
    assert (again["state"], again["segments_computed"], again["segments_found"]) == ("ready", 1, 2)
    assert call(tiny_shelf, "doctor", deep=True)["problems"] == []


def test_other_parts_of_the_same_content_leave_nothing_behind(tiny_shelf: Shelf, tmp_path: Path) -> None:
    path = book(tmp_path, 3)
    add(tiny_shelf, path)
    assert add(tiny_shelf, path, part_tokens=3000)["parts"] == 1
    assert call(tiny_shelf, "gc")["segments"] == 0


def test_what_only_the_old_content_needed_is_forgotten(tiny_shelf: Shelf, tmp_path: Path) -> None:
    path = book(tmp_path, 2)
    before = add(tiny_shelf, path)["bytes"]
    path.write_text(chapter(8), encoding="utf-8")
    added = add(tiny_shelf, path)
    assert added["bytes"] < before
    assert call(tiny_shelf, "gc")["segments"] == 0


def test_content_that_changed_and_is_only_kept_has_nothing_remembered(tiny_shelf: Shelf, tmp_path: Path) -> None:
    path = book(tmp_path, 2)
    add(tiny_shelf, path)
    path.write_text(chapter(8), encoding="utf-8")
    assert add(tiny_shelf, path, read=False)["bytes"] == 0
    assert call(tiny_shelf, "gc")["segments"] == 0
    assert call(tiny_shelf, "doctor", deep=True)["problems"] == []


def test_another_encoding_reads_the_source_anew(tiny_shelf: Shelf, tmp_path: Path) -> None:
    path = tmp_path / "book.txt"
    path.write_bytes("서울의 봄은 짧고 여름은 길다.\n".encode("cp949") * 9)
    first = add(tiny_shelf, path, encoding="latin-1")
    second = add(tiny_shelf, path, encoding="cp949")
    assert second["id"] == first["id"]
    shown = call(tiny_shelf, "documents.show", id=first["id"])
    assert shown["encoding"] == "cp949"
    assert shown["text"].startswith("서울의 봄은")


LATIN = "ÇÑ±Û ".encode("latin-1") * 40
"""Latin letters that the guess takes for Korean."""


def encoding_of(shelf: Shelf, document: Row) -> str:
    encoding: str = call(shelf, "documents.show", id=document["id"])["encoding"]
    return encoding


def test_an_encoding_that_was_named_holds_until_another_is(tiny_shelf: Shelf, tmp_path: Path) -> None:
    path = tmp_path / "book.txt"
    path.write_bytes(LATIN)
    assert encoding_of(tiny_shelf, add(tiny_shelf, path)) == "cp949"
    named = add(tiny_shelf, path, encoding="latin-1")
    again = add(tiny_shelf, path)
    assert (again["id"], again["segments_computed"], encoding_of(tiny_shelf, again)) == (named["id"], 0, "latin-1")
    path.write_bytes(LATIN * 2)
    assert encoding_of(tiny_shelf, add(tiny_shelf, path)) == "latin-1"
    assert encoding_of(tiny_shelf, add(tiny_shelf, path, encoding="cp949")) == "cp949"
    assert encoding_of(tiny_shelf, add(tiny_shelf, path)) == "cp949"


def test_naming_the_encoding_that_was_guessed_reads_nothing_anew(tiny_shelf: Shelf, tmp_path: Path) -> None:
    path = tmp_path / "book.txt"
    path.write_bytes(LATIN)
    add(tiny_shelf, path)
    assert add(tiny_shelf, path, encoding="cp949")["segments_computed"] == 0
    path.write_text("Quite ordinary words, which are guessed to be UTF-8.", encoding="utf-8")
    assert encoding_of(tiny_shelf, add(tiny_shelf, path)) == "cp949"


def test_an_encoding_named_before_that_no_longer_fits_is_said(tiny_shelf: Shelf, tmp_path: Path) -> None:
    path = tmp_path / "book.txt"
    path.write_bytes("서울의 봄은 짧고 여름은 길다.\n".encode("cp949"))
    add(tiny_shelf, path, encoding="cp949")
    path.write_text("봄 — “길다” é\n", encoding="utf-8")
    error = add(tiny_shelf, path)["error"]
    assert (error["kind"], "cp949 was named" in error["hint"]) == ("undecodable", True)
    assert encoding_of(tiny_shelf, add(tiny_shelf, path, encoding="utf-8")) == "utf-8"


def test_the_encoding_named_for_a_folder_holds_too(tiny_shelf: Shelf, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_bytes(LATIN)
    texts = []
    for encoding in (None, "latin-1", None):
        added = add(tiny_shelf, tmp_path / "notes", encoding=encoding)
        texts.append(call(tiny_shelf, "documents.show", id=added["id"])["text"])
    assert ["ÇÑ±Û" in text for text in texts] == [False, True, True]


# ---- text only ----


def test_text_can_be_kept_without_reading(tiny_shelf: Shelf, tmp_path: Path) -> None:
    added = add(tiny_shelf, book(tmp_path, 1), read=False, part_tokens=None)
    assert (added["state"], added["tokens"], added["segments_computed"]) == ("paused", 0, 0)
    assert call(tiny_shelf, "documents.show", id=added["id"])["text"] == chapter(1)
    assert call(tiny_shelf, "jobs.list")["jobs"] == []


def test_text_kept_without_reading_needs_no_model(tmp_path: Path) -> None:
    shelf = Shelf(Home(tmp_path / "home"))
    assert add(shelf, book(tmp_path, 1), read=False, part_tokens=None)["state"] == "paused"
    shelf.close()


def test_what_was_kept_without_reading_is_read_when_it_is_added_again(tiny_shelf: Shelf, tmp_path: Path) -> None:
    path = book(tmp_path, 1)
    first = add(tiny_shelf, path, read=False)
    second = add(tiny_shelf, path)
    assert (second["id"], second["state"], second["segments_computed"]) == (first["id"], "ready", 1)


def test_a_changed_source_kept_without_reading_waits_for_nothing(tiny_shelf: Shelf, tmp_path: Path) -> None:
    path = book(tmp_path, 1)
    add(tiny_shelf, path)
    path.write_text(chapter(9), encoding="utf-8")
    assert add(tiny_shelf, path, read=False)["state"] == "paused"
    assert call(tiny_shelf, "jobs.list")["jobs"] == []


# ---- what can't be read ----


@pytest.mark.parametrize(
    ("name", "content", "state", "kind"),
    [
        ("empty.txt", b"", "no_text", "no_text"),
        ("picture.txt", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8, "skipped", "binary"),
        ("paper.pdf", b"%PDF-1.7\n", "skipped", "unsupported"),
    ],
)
def test_a_file_without_text_is_refused_with_its_reason(
    tiny_shelf: Shelf, tmp_path: Path, name: str, content: bytes, state: str, kind: str
) -> None:
    (tmp_path / name).write_bytes(content)
    refused = add(tiny_shelf, tmp_path / name)
    assert (refused["id"], refused["state"], refused["error"]["kind"]) == (None, state, kind)
    assert refused["reason"]
    assert listed(tiny_shelf) == []


def test_a_bad_file_fails_alone(tiny_shelf: Shelf, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").touch()
    paths = [str(tmp_path / "empty.txt"), str(tmp_path / "missing.txt"), str(book(tmp_path, 1))]
    documents = call(tiny_shelf, "documents.add", paths=paths)["documents"]
    assert [one["state"] for one in documents] == ["no_text", "failed", "ready"]
    assert [one.get("error", {}).get("kind") for one in documents] == ["no_text", "not_found", None]


def test_one_missing_file_is_an_error(tiny_shelf: Shelf, tmp_path: Path) -> None:
    with pytest.raises(LongshelfError) as refused:
        add(tiny_shelf, tmp_path / "missing.txt")
    assert refused.value.kind == "not_found"


def test_nothing_named_is_wrong_usage(tiny_shelf: Shelf) -> None:
    with pytest.raises(LongshelfError) as refused:
        call(tiny_shelf, "documents.add", paths=[])
    assert refused.value.kind == "usage"


def test_without_a_model_nothing_is_taken(tmp_path: Path) -> None:
    shelf = Shelf(Home(tmp_path / "home"))
    with pytest.raises(LongshelfError) as refused:
        add(shelf, book(tmp_path, 1))
    assert refused.value.kind == "no_model"
    assert listed(shelf) == []
    shelf.close()


@pytest.mark.parametrize("size", [0, 10, 5000])
def test_an_impossible_part_size_is_refused_before_anything_is_taken(tiny_shelf: Shelf, tmp_path: Path, size: int) -> None:
    with pytest.raises(LongshelfError) as refused:
        add(tiny_shelf, book(tmp_path, 1), part_tokens=size)
    assert refused.value.kind == "usage"
    assert listed(tiny_shelf) == []


def test_a_very_large_document_waits_for_leave(tiny_shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(space, "ASK_ABOVE", 1000)
    path = book(tmp_path, 1)
    held = add(tiny_shelf, path)
    assert held["state"] == "paused"
    assert "on the disk" in held["reason"]
    assert add(tiny_shelf, path, yes=True)["state"] == "ready"


def test_without_room_on_the_disk_a_document_is_taken_and_waits(tiny_shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(space, "default_floor", lambda total: total)
    held = add(tiny_shelf, book(tmp_path, 1))
    assert held["state"] == "paused"
    assert "full" in held["reason"]
    assert call(tiny_shelf, "documents.show", id=held["id"])["text"] == chapter(1)


def test_a_stopped_add_pauses_the_reading(tiny_shelf: Shelf, tmp_path: Path) -> None:
    gate = Gate(tiny_shelf, at=2)
    stopping = Call()

    def stop(name: str, data: Row) -> None:
        if name == "document":
            gate.wait()
            stopping.stop.set()
            gate.open()

    stopping.emit = listen([], stop).emit
    with pytest.raises(Stopped):
        add(tiny_shelf, book(tmp_path, 3), call=stopping)
    assert [job["state"] for job in call(tiny_shelf, "jobs.list")["jobs"]] == ["paused"]


# ---- list, show, remove ----


def test_a_row_tells_all_about_a_document(tiny_shelf: Shelf, tmp_path: Path) -> None:
    path = book(tmp_path, 3)
    added = add(tiny_shelf, path)
    [row] = listed(tiny_shelf)
    assert row["path"] == str(path)
    assert (row["format"], row["encoding"], row["encoding_confident"], row["model"]) == ("text", "utf-8", True, "tiny")
    assert (row["tokens_done"], row["percent"], row["parts_ready"], row["bytes"]) == (added["tokens"], 100.0, 3, added["bytes"])
    assert (row["source_missing"], row["seconds_left"], row["place"]) == (False, None, None)
    assert abs(row["estimate_bytes"] - row["bytes"]) < 0.2 * row["bytes"]


def test_a_missing_source_is_said_and_the_text_still_shown(tiny_shelf: Shelf, tmp_path: Path) -> None:
    path = book(tmp_path, 1)
    added = add(tiny_shelf, path)
    path.unlink()
    assert listed(tiny_shelf)[0]["source_missing"]
    assert call(tiny_shelf, "documents.show", id=added["id"])["text"] == chapter(1)


def test_documents_are_found_by_title_and_text(tiny_shelf: Shelf, tmp_path: Path) -> None:
    first, second = add(tiny_shelf, book(tmp_path, 1, "lamps.txt")), add(tiny_shelf, book(tmp_path, 1, "more.txt", first=2))
    found = [[row["id"] for row in call(tiny_shelf, "documents.list", query=query)["documents"]] for query in ("lamps", "Ward2003", "none")]
    assert found == [[first["id"]], [second["id"]], []]


@pytest.mark.parametrize("name", ["id", "path", "title"])
def test_a_document_is_shown_by_id_path_or_title(tiny_shelf: Shelf, tmp_path: Path, name: str) -> None:
    added = add(tiny_shelf, book(tmp_path, 1))
    assert call(tiny_shelf, "documents.show", id=added[name])["id"] == added["id"]


def test_a_path_can_be_shown_without_adding_it(tmp_path: Path) -> None:
    shelf = Shelf(Home(tmp_path / "home"))
    shown = call(shelf, "documents.read", paths=[str(book(tmp_path, 2))])
    assert (shown["id"], shown["text"]) == (None, chapter(1) + chapter(2))
    assert [section["label"] for section in shown["sections"]] == ["CHAPTER 1", "CHAPTER 2"]
    assert listed(shelf) == []
    shelf.close()


def test_a_removed_document_leaves_no_segment_but_the_preamble(tiny_shelf: Shelf, tmp_path: Path) -> None:
    added = add(tiny_shelf, book(tmp_path, 3))
    removed = call(tiny_shelf, "documents.remove", id=added["id"])
    assert (removed["id"], removed["title"]) == (added["id"], "book")
    assert removed["segments_removed"] >= 3
    assert listed(tiny_shelf) == []
    assert call(tiny_shelf, "doctor", deep=True)["problems"] == []


def test_what_another_document_needs_stays_when_one_is_removed(tiny_shelf: Shelf, tmp_path: Path) -> None:
    path = book(tmp_path, 3)
    first = add(tiny_shelf, path)
    add(tiny_shelf, Path(shutil.copy(path, tmp_path / "copy.txt")))
    assert call(tiny_shelf, "documents.remove", id=first["id"])["segments_removed"] == 0
    assert call(tiny_shelf, "doctor", deep=True)["problems"] == []


def test_the_source_is_never_removed(tiny_shelf: Shelf, tmp_path: Path) -> None:
    path = book(tmp_path, 1)
    call(tiny_shelf, "documents.remove", id=add(tiny_shelf, path)["id"])
    assert path.read_text(encoding="utf-8") == chapter(1)


@pytest.mark.parametrize("method", ["documents.show", "documents.remove", "jobs.pause"])
def test_an_unknown_document_is_named(tiny_shelf: Shelf, method: str) -> None:
    with pytest.raises(LongshelfError, match="nowhere") as refused:
        call(tiny_shelf, method, id="nowhere")
    assert refused.value.kind == "not_found"


def test_changes_are_told_to_everyone_who_watches(tiny_shelf: Shelf, tmp_path: Path) -> None:
    told: list[tuple[str, Row]] = []
    tiny_shelf.subscribe(lambda event, data: told.append((event, data)))
    added = add(tiny_shelf, book(tmp_path, 1))
    call(tiny_shelf, "documents.remove", id=added["id"])
    rows = [row for event, data in told if event == "documents" for row in data["documents"] if row["id"] == added["id"]]
    assert rows[-1] == {"id": added["id"], "removed": True}
    states = [row["state"] for row in rows[:-1]]
    assert list(dict.fromkeys(states)) == ["queued", "remembering", "ready"]
