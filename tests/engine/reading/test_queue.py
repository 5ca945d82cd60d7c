"""The queue of readings: pausing, resuming, giving up, failing alone, and letting questions pass."""

from __future__ import annotations

import threading
from pathlib import Path

from engine.home import Home
from engine.shelf import Call, Shelf
from tests.engine import books
from tests.engine.books import Row, add, ask, book, listen
from tests.engine.gate import PATIENCE_S, Gate

# A chapter is read in two chunks, after one for the preamble: 1 | 2, 3 | 4, 5 | 6, 7.
SECOND_CHAPTER, THIRD_CHAPTER = 4, 6


def begin(shelf: Shelf, *paths: Path) -> list[Row]:
    """Queue documents without waiting for them; their rows."""
    given = {"paths": [str(path) for path in paths], "part_tokens": books.PART, "wait": False}
    documents: list[Row] = shelf.call("documents.add", given, Call())["documents"]
    return documents


def call(shelf: Shelf, method: str, **params: object) -> Row:
    return shelf.call(method, params, Call())


def row(shelf: Shelf, document_id: str) -> Row:
    return next(row for row in call(shelf, "documents.list")["documents"] if row["id"] == document_id)


def wait(shelf: Shelf, document_id: str) -> Row:
    """The document's row once nothing of it is being read any more."""
    for job in shelf.library.jobs.of(document_id):
        shelf.queue.wait(job.id, threading.Event())
    return row(shelf, document_id)


def prefilled(shelf: Shelf) -> int:
    total: int = call(shelf, "doctor")["tokens_prefilled_total"]
    return total


def test_documents_are_read_in_the_order_added(tiny_shelf: Shelf, tmp_path: Path) -> None:
    begun: list[str] = []
    tiny_shelf.subscribe(lambda event, data: begun.append(data["document"]) if data.get("state") == "reading" else None)
    rows = begin(tiny_shelf, *(book(tmp_path, 1, f"{name}.txt", first=n) for n, name in enumerate("cab", 1)))
    for one in rows:
        assert wait(tiny_shelf, one["id"])["state"] == "ready"
    assert begun == [one["id"] for one in rows]


def test_a_paused_reading_keeps_every_finished_part(tiny_shelf: Shelf, tmp_path: Path) -> None:
    gate = Gate(tiny_shelf, at=SECOND_CHAPTER)
    [document] = begin(tiny_shelf, book(tmp_path, 3))
    gate.wait()
    call(tiny_shelf, "jobs.pause")
    gate.open()
    paused = wait(tiny_shelf, document["id"])
    assert (paused["state"], paused["parts_ready"]) == ("paused", 1)
    assert 0 < paused["tokens_done"] < paused["tokens"]


def test_a_pause_is_obeyed_at_the_next_layer(tiny_shelf: Shelf, tmp_path: Path) -> None:
    gate = Gate(tiny_shelf, at=SECOND_CHAPTER)
    [document] = begin(tiny_shelf, book(tmp_path, 3))
    gate.wait()
    call(tiny_shelf, "jobs.pause", id=document["id"])
    gate.open()
    wait(tiny_shelf, document["id"])
    assert gate.chunks == SECOND_CHAPTER


def test_a_resumed_reading_goes_on_where_it_was(tiny_shelf: Shelf, tmp_path: Path) -> None:
    gate = Gate(tiny_shelf, at=SECOND_CHAPTER)
    [document] = begin(tiny_shelf, book(tmp_path, 3))
    gate.wait()
    call(tiny_shelf, "jobs.pause")
    gate.open()
    tokens = wait(tiny_shelf, document["id"])["tokens"]
    call(tiny_shelf, "jobs.resume", wait=True)
    assert row(tiny_shelf, document["id"])["state"] == "ready"
    assert prefilled(tiny_shelf) == tokens


def test_a_document_waiting_in_the_queue_can_be_paused(tiny_shelf: Shelf, tmp_path: Path) -> None:
    gate = Gate(tiny_shelf, at=1, urgent=True)
    first, second = begin(tiny_shelf, book(tmp_path, 1, "a.txt"), book(tmp_path, 1, "b.txt", first=2))
    gate.wait()
    call(tiny_shelf, "jobs.pause", id=second["id"])
    gate.open()
    assert wait(tiny_shelf, first["id"])["state"] == "ready"
    assert row(tiny_shelf, second["id"])["state"] == "paused"


def test_pausing_one_lets_the_next_begin(tiny_shelf: Shelf, tmp_path: Path) -> None:
    gate = Gate(tiny_shelf, at=2, urgent=True)
    first, second = begin(tiny_shelf, book(tmp_path, 1, "a.txt"), book(tmp_path, 1, "b.txt", first=2))
    gate.wait()
    call(tiny_shelf, "jobs.pause", id=first["id"])
    gate.open()
    assert wait(tiny_shelf, second["id"])["state"] == "ready"
    assert row(tiny_shelf, first["id"])["state"] == "paused"


def test_a_cancelled_reading_leaves_the_queue_and_keeps_what_was_read(tiny_shelf: Shelf, tmp_path: Path) -> None:
    gate = Gate(tiny_shelf, at=SECOND_CHAPTER)
    [document] = begin(tiny_shelf, book(tmp_path, 3))
    gate.wait()
    call(tiny_shelf, "jobs.cancel", id=document["id"])
    gate.open()
    cancelled = wait(tiny_shelf, document["id"])
    assert (cancelled["state"], cancelled["reason"], cancelled["parts_ready"]) == ("paused", "cancelled", 1)
    assert call(tiny_shelf, "jobs.list")["jobs"] == []


def test_a_cancelled_reading_can_be_tried_again(tiny_shelf: Shelf, tmp_path: Path) -> None:
    gate = Gate(tiny_shelf, at=SECOND_CHAPTER)
    [document] = begin(tiny_shelf, book(tmp_path, 3))
    gate.wait()
    call(tiny_shelf, "jobs.cancel", id=document["id"])
    gate.open()
    wait(tiny_shelf, document["id"])
    call(tiny_shelf, "jobs.retry", id=document["id"], wait=True)
    assert row(tiny_shelf, document["id"])["state"] == "ready"


def fault() -> None:
    raise RuntimeError("a fault of ours")


def test_a_document_that_fails_does_not_stop_the_next(tiny_shelf: Shelf, tmp_path: Path) -> None:
    Gate(tiny_shelf, at=2, instead=fault)
    first, second = begin(tiny_shelf, book(tmp_path, 1, "a.txt"), book(tmp_path, 1, "b.txt", first=2))
    assert wait(tiny_shelf, second["id"])["state"] == "ready"
    failed = row(tiny_shelf, first["id"])
    assert failed["state"] == "failed"
    assert "mistake" in failed["reason"]


def test_a_failed_reading_can_be_tried_again(tiny_shelf: Shelf, tmp_path: Path) -> None:
    Gate(tiny_shelf, at=2, instead=fault)
    [document] = begin(tiny_shelf, book(tmp_path, 1))
    assert wait(tiny_shelf, document["id"])["state"] == "failed"
    call(tiny_shelf, "jobs.retry", wait=True)
    assert row(tiny_shelf, document["id"])["state"] == "ready"


def test_a_full_disk_pauses_and_says_so(tiny_shelf: Shelf, tmp_path: Path) -> None:
    gate = Gate(tiny_shelf, at=SECOND_CHAPTER)
    [document] = begin(tiny_shelf, book(tmp_path, 3))
    gate.wait()
    tiny_shelf.library.store.floor = 10**18
    gate.open()
    paused = wait(tiny_shelf, document["id"])
    assert (paused["state"], paused["parts_ready"]) == ("paused", 1)
    assert "full" in paused["reason"]
    tiny_shelf.library.store.floor = None
    call(tiny_shelf, "jobs.resume", wait=True)
    assert row(tiny_shelf, document["id"])["state"] == "ready"


def test_a_question_asked_while_a_book_is_read_is_answered_first(tiny_shelf: Shelf, tmp_path: Path) -> None:
    known = add(tiny_shelf, book(tmp_path, 1, "known.txt"))
    gate = Gate(tiny_shelf, at=1)
    [document] = begin(tiny_shelf, book(tmp_path, 3, first=2))
    gate.wait()
    answers: list[Row] = []
    asking = threading.Thread(target=lambda: answers.append(ask(tiny_shelf, known["id"])))
    asking.start()
    while tiny_shelf.model_thread._urgent.empty():
        assert asking.is_alive()
    passing = Gate(tiny_shelf, at=2)  # the reading gets no further than the chunk it is in
    gate.open()
    asking.join(PATIENCE_S)
    assert len(answers[0]["token_ids"]) == 8
    assert row(tiny_shelf, document["id"])["state"] == "remembering"
    passing.open()
    assert wait(tiny_shelf, document["id"])["state"] == "ready"


def test_a_book_can_be_asked_from_its_first_finished_part(tiny_shelf: Shelf, tmp_path: Path) -> None:
    gate = Gate(tiny_shelf, at=SECOND_CHAPTER)
    [document] = begin(tiny_shelf, book(tmp_path, 3))
    gate.wait()
    asking = threading.Thread(target=lambda: answers.append(ask(tiny_shelf, document["id"])))
    answers: list[Row] = []
    asking.start()
    while tiny_shelf.model_thread._urgent.empty():
        assert asking.is_alive()
    gate.open()
    asking.join(PATIENCE_S)
    assert [(read["part"], answers[0]["parts_total"]) for read in answers[0]["parts_read"]] == [(1, 3)]


def test_a_document_removed_while_it_is_read_is_gone(tiny_shelf: Shelf, tmp_path: Path) -> None:
    gate = Gate(tiny_shelf, at=SECOND_CHAPTER, urgent=True)
    first, second = begin(tiny_shelf, book(tmp_path, 3, "a.txt"), book(tmp_path, 1, "b.txt", first=7))
    gate.wait()
    removing = threading.Thread(target=lambda: call(tiny_shelf, "documents.remove", id=first["id"]))
    removing.start()
    while tiny_shelf.library.jobs.of(first["id"])[0].state == "running":
        assert removing.is_alive()
    gate.open()
    removing.join(PATIENCE_S)
    assert wait(tiny_shelf, second["id"])["state"] == "ready"
    assert [one["id"] for one in call(tiny_shelf, "documents.list")["documents"]] == [second["id"]]
    assert call(tiny_shelf, "doctor", deep=True)["problems"] == []


def test_an_engine_that_ends_queues_what_it_was_reading_for_the_next(tiny_home: Home, tmp_path: Path) -> None:
    first = Shelf(tiny_home)
    gate = Gate(first, at=SECOND_CHAPTER)
    [document] = begin(first, book(tmp_path, 3))
    gate.wait()
    closing = threading.Thread(target=first.close)
    closing.start()
    while not first.queue._closed:
        assert closing.is_alive()
    gate.open()
    closing.join(PATIENCE_S)
    second = Shelf(tiny_home)
    assert [job["state"] for job in call(second, "jobs.list")["jobs"]] == ["queued"]
    second.queue.wake()
    assert wait(second, document["id"])["state"] == "ready"
    assert prefilled(second) == row(second, document["id"])["tokens"]
    second.close()


def test_progress_counts_what_is_read_and_never_goes_back(tiny_shelf: Shelf, tmp_path: Path) -> None:
    events: list[tuple[str, Row]] = []
    add(tiny_shelf, book(tmp_path, 3), call=listen(events))
    rows = [data for name, data in events if name == "progress" and data.get("tokens")]
    done = [data["tokens_done"] for data in rows]
    assert done == sorted(done)
    assert done[-1] == rows[-1]["tokens"]
    assert rows[-1]["percent"] == 100.0
    assert {data["state"] for data in rows} == {"remembering", "ready"}


def test_progress_says_where_in_the_book_it_is(tiny_shelf: Shelf, tmp_path: Path) -> None:
    gate = Gate(tiny_shelf, at=SECOND_CHAPTER)
    [document] = begin(tiny_shelf, book(tmp_path, 3))
    gate.wait()
    assert row(tiny_shelf, document["id"])["place"] == "CHAPTER 2"
    gate.open()
    assert wait(tiny_shelf, document["id"])["place"] is None


def test_segments_say_how_many_threads_read_them(tiny_shelf: Shelf, tmp_path: Path) -> None:
    """Those of the thread that runs the model, whatever another thread of the process uses."""
    said = []
    for n in (1, 2):
        call(tiny_shelf, "settings.set", threads=n)
        document = add(tiny_shelf, book(tmp_path, 1, f"{n}.txt", first=n))
        [part] = tiny_shelf.library.parts.of(document["id"])
        said.append(tiny_shelf.library.store.open(part.expected[0]).header.provenance["threads"])
    assert said == ["1", "2"]
