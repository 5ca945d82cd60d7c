"""Sketches are made while a document is added: kept step by step, counted, and never what a document waits for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.errors import Stopped
from engine.library.parts import Part
from engine.library.sidecars import SKETCH
from engine.model.config import ModelConfig
from engine.model.fetch import DEFAULT
from engine.reading import indexing
from engine.retrieval import kept_sketches, projections
from engine.retrieval.fitting import layout_for
from engine.retrieval.layout import index_bytes_per_token
from engine.shelf import Call, Shelf
from tests.engine.books import PART, Row, add, book


def call(shelf: Shelf, method: str, **params: object) -> Row:
    return shelf.call(method, params, Call())


def row(shelf: Shelf) -> Row:
    [one] = call(shelf, "documents.list")["documents"]
    return dict(one)


def segments(shelf: Shelf) -> list[str]:
    """Digests of what all parts have."""
    library = shelf.library
    parts: list[Part] = [part for document in library.documents.all() for part in library.parts.of(document.id)]
    return [digest for part in parts for digest in library.parts.segments(part.id)]


def sketched(shelf: Shelf) -> dict[str, str]:
    """Segment → its sketch."""
    return {each.sources[0]: each.digest for each in shelf.library.sidecars.all() if each.kind == SKETCH}


def drop(shelf: Shelf, *segments: str) -> None:
    for segment, digest in sketched(shelf).items():
        if not segments or segment in segments:
            shelf.library.sidecars.drop(digest)


def index(shelf: Shelf, before_layer: Callable[[], None] = lambda: None) -> None:
    model, _ = shelf.model()
    shelf.model_thread.run(lambda: indexing.index(model, shelf, segments(shelf), before_layer))


def test_a_document_that_is_added_has_a_sketch_of_each_of_its_segments(tiny_shelf: Shelf, tmp_path: Path) -> None:
    assert add(tiny_shelf, book(tmp_path, 3))["state"] == "ready"
    assert sketched(tiny_shelf).keys() == set(segments(tiny_shelf))
    assert len(segments(tiny_shelf)) == 3


def test_a_sketch_made_while_adding_is_the_one_that_a_question_would_make(tiny_shelf: Shelf, tmp_path: Path) -> None:
    add(tiny_shelf, book(tmp_path, 1))
    [(segment, digest)] = sketched(tiny_shelf).items()
    path = tiny_shelf.library.sidecars.store.path(digest)
    content = path.read_bytes()
    drop(tiny_shelf)
    model, _ = tiny_shelf.model()
    made = projections.of(model, lambda: None)
    tiny_shelf.model_thread.run(lambda: kept_sketches.of(model, tiny_shelf, tiny_shelf.library.store.open(segment), made))
    assert path.read_bytes() == content


def test_sizes_shown_count_sketches(tiny_shelf: Shelf, tmp_path: Path) -> None:
    add(tiny_shelf, book(tmp_path, 3))
    kv = sum(tiny_shelf.library.store.size(digest) for digest in segments(tiny_shelf))
    index = tiny_shelf.library.sidecars.bytes()
    assert (row(tiny_shelf)["bytes"], row(tiny_shelf)["sidecar_bytes"]) == (kv + index, index)
    assert 0 < index < kv


def test_estimates_count_sketches(tiny_shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(tiny_shelf, book(tmp_path, 3))
    with_them = row(tiny_shelf)["estimate_bytes"]
    monkeypatch.setattr("engine.reading.rows.index_bytes", lambda installed, tokens: 0)
    assert with_them - row(tiny_shelf)["estimate_bytes"] > row(tiny_shelf)["tokens"]


def test_the_bytes_of_a_token_are_those_of_the_layout(tiny_shelf: Shelf) -> None:
    config: ModelConfig = tiny_shelf.models.open().config
    per_key = layout_for(config.head_dim).bytes_per_key
    assert index_bytes_per_token(config) == config.layers * config.kv_heads * per_key
    assert DEFAULT.index_bytes_per_token == DEFAULT.kv_bytes_per_token / 16


# ---- any step can stop, and goes on ----


@pytest.mark.parametrize("stop_at", [1, 2, 3, 5])
def test_one_that_is_stopped_before_any_layer_goes_on_behind_what_is_kept(tiny_shelf: Shelf, tmp_path: Path, stop_at: int) -> None:
    add(tiny_shelf, book(tmp_path, 3))
    whole = sketched(tiny_shelf)
    drop(tiny_shelf)
    layers = 0

    def stop() -> None:
        nonlocal layers
        layers += 1
        if layers == stop_at:
            raise Stopped

    with pytest.raises(Stopped):
        index(tiny_shelf, stop)
    assert len(sketched(tiny_shelf)) == (stop_at - 1) // tiny_shelf.models.open().config.layers
    index(tiny_shelf)
    assert sketched(tiny_shelf) == whole


def test_what_an_engine_that_was_killed_had_not_sketched_the_next_does(tiny_shelf: Shelf, tmp_path: Path) -> None:
    document = add(tiny_shelf, book(tmp_path, 3))
    whole = sketched(tiny_shelf)
    drop(tiny_shelf, segments(tiny_shelf)[2])
    job = tiny_shelf.library.jobs.add(document["id"], "tiny")
    tiny_shelf.queue.wake()
    tiny_shelf.queue.wait(job.id, threading.Event())
    assert sketched(tiny_shelf) == whole
    assert row(tiny_shelf)["state"] == "ready"


def test_a_document_without_sketches_gets_them_when_it_is_added_again(tiny_shelf: Shelf, tmp_path: Path) -> None:
    add(tiny_shelf, book(tmp_path, 3))
    whole = sketched(tiny_shelf)
    drop(tiny_shelf)
    again = add(tiny_shelf, tmp_path / "book.txt")
    assert (again["state"], again["segments_computed"], again["segments_found"]) == ("ready", 0, 3)
    assert sketched(tiny_shelf) == whole


def test_opening_makes_none(tiny_shelf: Shelf, tmp_path: Path) -> None:
    add(tiny_shelf, book(tmp_path, 3))
    drop(tiny_shelf)
    home = tiny_shelf.home
    tiny_shelf.close()
    second = Shelf(home)
    second.queue.wake()
    assert call(second, "documents.show", id="book")["state"] == "ready"
    second.close()
    assert not sketched(second)


def test_the_first_of_a_model_fits_its_projections_where_the_install_could_not(tiny_shelf: Shelf, tmp_path: Path) -> None:
    kept = tiny_shelf.models.open().folder / projections.FILE
    kept.unlink()
    add(tiny_shelf, book(tmp_path, 1))
    assert kept.exists()
    assert len(sketched(tiny_shelf)) == 1


# ---- nothing waits for them ----


def test_without_room_for_sketches_a_document_is_ready(tiny_shelf: Shelf, tmp_path: Path) -> None:
    add(tiny_shelf, book(tmp_path, 1, "first.txt", first=9))
    needed = sum(tiny_shelf.library.store.size(digest) for digest in segments(tiny_shelf))
    drop(tiny_shelf)
    used = tiny_shelf.library.store.usage()
    call(tiny_shelf, "settings.set", limit_bytes=used + needed + 8192)
    added = add(tiny_shelf, book(tmp_path, 1))
    assert (added["state"], sketched(tiny_shelf)) == ("ready", {})
    call(tiny_shelf, "settings.set", limit_bytes=10 * used)
    add(tiny_shelf, tmp_path / "book.txt")
    assert len(sketched(tiny_shelf)) == 1


def test_on_a_disk_too_full_for_sketches_a_document_is_ready(tiny_shelf: Shelf, tmp_path: Path) -> None:
    tiny_shelf.library.sidecars.store.floor = 1 << 62
    assert add(tiny_shelf, book(tmp_path, 2))["state"] == "ready"
    assert sketched(tiny_shelf) == {}


def test_a_ready_document_is_not_held_where_more_is_kept_than_may_be(tiny_shelf: Shelf, tmp_path: Path) -> None:
    add(tiny_shelf, book(tmp_path, 2))
    drop(tiny_shelf)
    call(tiny_shelf, "settings.set", limit_bytes=1000)
    assert add(tiny_shelf, tmp_path / "book.txt")["state"] == "ready"


def test_damaged_projections_keep_no_document_from_being_ready(tiny_shelf: Shelf, tmp_path: Path) -> None:
    (tiny_shelf.models.open().folder / projections.FILE).write_bytes(b"nothing")
    assert add(tiny_shelf, book(tmp_path, 1))["state"] == "ready"
    [problem] = call(tiny_shelf, "doctor", deep=True)["problems"]
    assert problem["kind"] == "model_damaged"


def test_part_by_part_a_book_has_its_sketches_before_the_next_part_is_read(
    tiny_shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[tuple[int, int]] = []
    real = indexing.index

    def watched(*arguments: object) -> None:
        real(*arguments)  # type: ignore[arg-type]
        kept.append((len(segments(tiny_shelf)), len(sketched(tiny_shelf))))

    monkeypatch.setattr(indexing, "index", watched)
    add(tiny_shelf, book(tmp_path, 3), part_tokens=PART)
    assert kept == [(1, 1), (2, 2), (3, 3)]


# ---- they go with what they are made of ----


@pytest.mark.parametrize("method", ["documents.remove", "documents.forget"])
def test_what_is_removed_or_forgotten_takes_its_sketches_along(tiny_shelf: Shelf, tmp_path: Path, method: str) -> None:
    added = add(tiny_shelf, book(tmp_path, 2))
    files = [tiny_shelf.library.sidecars.store.path(digest) for digest in sketched(tiny_shelf).values()]
    freed = call(tiny_shelf, method, id=added["id"])["bytes_freed"]
    assert freed >= added["bytes"]
    assert not sketched(tiny_shelf)
    assert not any(path.exists() for path in files)


def test_a_part_that_was_lost_is_asked_and_sketched_anew(tiny_shelf: Shelf, tmp_path: Path) -> None:
    add(tiny_shelf, book(tmp_path, 2))
    whole = sketched(tiny_shelf)
    tiny_shelf.library.memory.lose(segments(tiny_shelf)[1])
    assert len(sketched(tiny_shelf)) == 1
    assert add(tiny_shelf, tmp_path / "book.txt")["state"] == "ready"
    assert sketched(tiny_shelf) == whole
