"""Adding beside other things that happen to the same document, and adding that can't end well."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.errors import LongshelfError
from engine.home import Home
from engine.library.parts import Part
from engine.reading.rows import document_row
from engine.shelf import Call, Shelf
from engine.store import space
from tests.engine.books import Row, add, ask, book, chapter
from tests.engine.gate import Gate

LONG = 12


def in_background(work: Callable[[], Any]) -> Callable[[], Any]:
    """Begin `work` on a thread; calling what this gives waits for its result."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()

    def result() -> Any:
        thread.join(60)
        return results[0]

    return result


def until_reading(shelf: Shelf) -> Row:
    """The first document, once the model is reading it."""
    while True:
        for row in shelf.library.documents.all():
            if (live := shelf.queue.live(row.id)) is not None and live.tokens_per_s:
                return document_row(shelf, row)
        time.sleep(0.005)


def test_a_source_added_twice_at_once_is_one_document(tiny_shelf: Shelf, tmp_path: Path) -> None:
    path = book(tmp_path, LONG)
    waiting = [in_background(lambda: add(tiny_shelf, path)) for _ in range(3)]
    rows = [wait() for wait in waiting]
    assert {(row["id"], row["state"]) for row in rows} == {(rows[0]["id"], "ready")}
    assert len(tiny_shelf.library.documents.all()) == 1


def test_what_someone_waits_for_is_read_before_what_an_earlier_engine_left(tiny_home: Home, tmp_path: Path) -> None:
    earlier = Shelf(tiny_home)
    gate = Gate(earlier, at=2)
    paths = [str(book(tmp_path, 2, f"{n}.txt", first=10 * n)) for n in (1, 2)]
    earlier.call("documents.add", {"paths": paths, "wait": False}, Call())
    gate.wait()
    closing = in_background(earlier.close)
    while not earlier.queue._closed:
        time.sleep(0.005)
    gate.open()
    closing()
    shelf = Shelf(tiny_home)
    begun: list[str] = []
    shelf.subscribe(lambda event, data: begun.append(data["document"]) if data.get("state") == "reading" else None)
    added = add(shelf, book(tmp_path, 1, "new.txt", first=30), first=True)
    assert (added["state"], added["id"]) == ("ready", begun[0])
    shelf.close()


def test_a_document_removed_while_it_is_read_is_gone_and_the_next_one_is_read(tiny_shelf: Shelf, tmp_path: Path) -> None:
    waiting = in_background(lambda: add(tiny_shelf, book(tmp_path, LONG)))
    tiny_shelf.call("documents.remove", {"id": until_reading(tiny_shelf)["id"]}, Call())
    assert waiting()["error"]["kind"] in ("removed", "cancelled")
    assert tiny_shelf.library.documents.all() == []
    assert add(tiny_shelf, book(tmp_path, 1, "other.txt", first=40))["state"] == "ready"


def test_a_source_that_changed_while_it_is_read_is_read_anew(tiny_shelf: Shelf, tmp_path: Path) -> None:
    first = in_background(lambda: add(tiny_shelf, book(tmp_path, LONG)))
    until_reading(tiny_shelf)
    row = add(tiny_shelf, book(tmp_path, 3, first=50))
    first()
    assert (row["state"], row["parts"], row["segments_computed"]) == ("ready", 3, 3)
    assert "Ward52" in ask(tiny_shelf, row["id"], question="Who keeps lamp 52.3?", parts=[3])["citations"][0]["quote"]


@pytest.mark.parametrize("tokens", [0, 63, 99_999, -1])
def test_a_part_size_that_does_not_fit_leaves_nothing_behind(tiny_shelf: Shelf, tmp_path: Path, tokens: int) -> None:
    with pytest.raises(LongshelfError) as caught:
        add(tiny_shelf, book(tmp_path), part_tokens=tokens)
    assert caught.value.kind == "usage"
    assert tiny_shelf.library.documents.all() == []


def test_where_nothing_could_be_taken_the_answer_says_so_as_a_whole(tiny_shelf: Shelf, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").touch()
    result = tiny_shelf.call("documents.add", {"paths": [str(tmp_path / "empty.txt")]}, Call())
    assert result["error"]["kind"] == "no_text"
    assert result["documents"][0]["error"] == result["error"]


def test_a_document_for_which_the_disk_is_too_small_waits_and_says_why(
    tiny_shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = book(tmp_path)
    with monkeypatch.context() as full:
        full.setattr(space, "default_floor", lambda total: total)
        row = add(tiny_shelf, path)
    assert (row["state"], row["error"]["kind"]) == ("paused", "disk_full")
    assert add(tiny_shelf, path)["state"] == "ready"


def test_a_disk_that_fills_up_while_reading_pauses_and_what_is_read_is_kept(
    tiny_shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, kept = book(tmp_path, 4), tiny_shelf.library.store.commit
    with monkeypatch.context() as full:

        def commit(header: Any, ids: Any, kv: Any) -> str:
            if len(list(tiny_shelf.library.store.digests())) == 3:
                raise space.disk_full(tmp_path)
            return kept(header, ids, kv)

        full.setattr(tiny_shelf.library.store, "commit", commit)
        row = add(tiny_shelf, path)
    assert (row["state"], row["error"]["kind"], row["segments_computed"]) == ("paused", "disk_full", 2)
    again = add(tiny_shelf, path)
    assert (again["state"], again["segments_computed"]) == ("ready", 2)


def test_a_catalog_that_takes_no_row_ends_the_wait(tiny_shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def claim() -> None:
        raise space.disk_full(tmp_path)

    monkeypatch.setattr(tiny_shelf.library.jobs, "claim", claim)
    row = add(tiny_shelf, book(tmp_path))
    assert (row["state"], row["error"]["kind"]) == ("queued", "disk_full")


def test_finding_what_is_there_already_can_be_stopped(tiny_shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "refrain.txt"
    path.write_text(chapter(1) * LONG, encoding="utf-8")
    adopt, parts = tiny_shelf.library.memory.adopt, set[int]()

    def adopt_some(part_id: int) -> Part:
        parts.add(part_id)
        if len(parts) == 3:
            tiny_shelf.call("jobs.pause", {}, Call())
        return adopt(part_id)

    monkeypatch.setattr(tiny_shelf.library.memory, "adopt", adopt_some)
    row = add(tiny_shelf, path)
    assert (row["state"], row["error"]["kind"], row["segments_computed"], row["segments_found"]) == ("paused", "paused", 1, 2)


def test_resuming_everything_goes_on_with_what_a_killed_engine_left_queued(tiny_shelf: Shelf, tmp_path: Path) -> None:
    row = add(tiny_shelf, book(tmp_path), read=False)
    tiny_shelf.library.jobs.add(row["id"], "tiny")
    result = tiny_shelf.call("jobs.resume", {"wait": True}, Call())
    assert [job["state"] for job in result["jobs"]] == ["done"]
    assert tiny_shelf.library.documents.get(row["id"]).state == "ready"


def test_a_document_whose_job_was_never_written_is_queued_at_the_next_start(tiny_home: Home, tmp_path: Path) -> None:
    shelf = Shelf(tiny_home)
    row = add(shelf, book(tmp_path), read=False)
    shelf.library.documents.set_state(row["id"], "queued")
    shelf.close()
    shelf = Shelf(tiny_home)
    assert [job.document_id for job in shelf.library.jobs.all()] == [row["id"]]
    shelf.close()


def test_a_job_number_beyond_all_bounds_is_not_found(tiny_shelf: Shelf) -> None:
    with pytest.raises(LongshelfError) as caught:
        tiny_shelf.call("jobs.cancel", {"id": "9" * 30}, Call())
    assert caught.value.kind == "not_found"
