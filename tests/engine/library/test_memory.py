"""Files and rows of segments in step, whatever happens in between."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from engine.errors import LongshelfError
from engine.library import references
from engine.library.counters import TOKENS_PREFILLED
from engine.library.library import Library
from tests.engine.library.shelf import (
    PREAMBLE_DIGEST,
    add,
    add_and_remember,
    flip,
    new,
    open_library,
    pieces,
    plans,
    remember,
    remember_preamble,
)
from tests.engine.store.crashing import Step, crashes
from tests.engine.store.pieces import NAMESPACE, kv

ONE, TWO = "It was a bright cold day", "in April"

forks = pytest.mark.skipif(sys.platform == "win32", reason="forks")


def files(library: Library) -> set[str]:
    return set(library.store.digests())


def rows(library: Library) -> set[str]:
    return {row["digest"] for row in library.catalog.rows("SELECT digest FROM segments")}


def digests(*texts: str) -> set[str]:
    return {piece.digest for text in texts for piece in pieces(text)}


def test_what_is_remembered_is_on_the_disk_in_rows_and_counted(library: Library) -> None:
    add_and_remember(library, ONE, TWO)
    assert files(library) == rows(library) == digests(ONE, TWO) | {PREAMBLE_DIGEST}
    assert library.counters.get(TOKENS_PREFILLED) == 3 + 24 + 8


def test_a_full_disk_leaves_the_part_as_it_was(tmp_path: Path) -> None:
    library = open_library(tmp_path / "home")
    _, (part,) = add(library, ONE)
    part = remember(library, part, ONE, segments=1)
    library.store.floor = 1 << 62
    with pytest.raises(LongshelfError) as caught:
        remember(library, part, ONE)
    assert caught.value.kind == "disk_full"
    assert library.parts.get(part.id) == part
    library.store.floor = 0
    assert remember(library, part, ONE).state == "ready"


def test_files_that_are_there_are_adopted_and_nothing_is_counted(library: Library) -> None:
    _, (part,) = add(library, ONE)
    for piece in pieces(ONE):
        library.store.commit(piece.header, piece.ids, kv(piece.header))
    assert library.memory.adopt(part.id).state == "ready"
    assert library.counters.get(TOKENS_PREFILLED) == 0


def test_adopting_ends_at_the_first_file_that_is_damaged(library: Library) -> None:
    _, (part,) = add(library, ONE)
    for piece in pieces(ONE):
        library.store.commit(piece.header, piece.ids, kv(piece.header))
    flip(library.store.path(pieces(ONE)[1].digest), 5000)
    assert library.memory.adopt(part.id).tokens_done == 8
    assert remember(library, part, ONE).state == "ready"  # committing replaces the damaged file
    library.store.verify(pieces(ONE)[1].digest)


def test_a_lost_segment_is_taken_out_and_the_ones_behind_it_are_found_again(library: Library) -> None:
    row = add_and_remember(library, ONE)
    first, lost, last = pieces(ONE)
    flip(library.store.path(lost.digest), 5000)
    (part,) = library.memory.lose(lost.digest)
    assert (part.state, part.tokens_done, part.tip) == ("damaged", 8, first.digest)
    assert not library.store.has(lost.digest)
    assert library.store.has(last.digest)
    library.memory.remember(part.id, lost.header, lost.ids, kv(lost.header), prefilled=8)
    assert library.memory.adopt(part.id).state == "ready"
    assert library.parts.of(row.id)[0].tip == last.digest


def test_a_lost_shared_segment_leaves_the_parts_as_they_are(library: Library) -> None:
    row = add_and_remember(library, ONE)
    assert library.memory.lose(PREAMBLE_DIGEST) == []
    assert not library.store.has(PREAMBLE_DIGEST)
    assert library.parts.of(row.id)[0].state == "ready"
    remember_preamble(library)
    assert PREAMBLE_DIGEST in references.needed(library.catalog)


def test_removing_a_document_removes_its_text_and_what_only_it_needs(library: Library) -> None:
    first = add_and_remember(library, ONE, TWO)
    second = add_and_remember(library, TWO, title="Two")
    freed = library.memory.remove_document(first.id)
    assert freed.segments == 3
    assert files(library) == rows(library) == digests(TWO) | {PREAMBLE_DIGEST}
    assert list(library.texts.ids()) == [second.id]
    assert library.parts.of(second.id)[0].state == "ready"
    library.memory.remove_document(second.id)
    assert files(library) == rows(library) == set()
    assert library.catalog.rows("SELECT * FROM removals") == []


def test_what_is_read_for_a_document_that_was_removed_meanwhile_leaves_nothing(library: Library) -> None:
    row, (part,) = add(library, ONE)
    piece = pieces(ONE)[0]
    digest = library.store.commit(piece.header, piece.ids, kv(piece.header))
    library.memory.remove_document(row.id)
    for late in (lambda: library.memory.record(part.id, digest, piece.header, 8), lambda: remember(library, part, ONE)):
        with pytest.raises(LongshelfError) as caught:
            late()
        assert caught.value.kind == "not_found"
        assert files(library) == rows(library) == set()
    assert library.counters.get(TOKENS_PREFILLED) == 0


def test_a_document_that_is_not_there_cannot_be_removed(library: Library) -> None:
    with pytest.raises(LongshelfError) as caught:
        library.memory.remove_document("nothing")
    assert caught.value.kind == "not_found"
    assert library.catalog.rows("SELECT * FROM removals") == []


def test_forgetting_keeps_the_text_and_how_it_is_cut(library: Library) -> None:
    row = add_and_remember(library, ONE, TWO)
    freed = library.memory.forget(row.id)
    assert freed.segments == 4
    assert freed.bytes > 0
    assert files(library) == {PREAMBLE_DIGEST}
    states = [(part.state, part.tokens_done, len(part.expected)) for part in library.parts.of(row.id)]
    assert states == [("waiting", 0, 3), ("waiting", 0, 1)]
    assert library.documents.text(row.id) == ONE + TWO
    for part, text in zip(library.parts.of(row.id), (ONE, TWO), strict=True):
        assert remember(library, part, text).state == "ready"


def test_unassigning_forgets_one_model_only(library: Library) -> None:
    row = add_and_remember(library, ONE)
    library.parts.assign(row.id, "cd" * 32, "other", plans(ONE))
    library.memory.unassign(row.id, NAMESPACE)
    assert [part.model for part in library.parts.of(row.id)] == ["other"]
    assert list(library.texts.load(row.id).assignments) == ["cd" * 32]


def test_a_file_that_cannot_be_removed_keeps_nobody_from_the_rest(tmp_path: Path) -> None:
    library = open_library(tmp_path / "home")
    first, second = add_and_remember(library, ONE, title="One"), add_and_remember(library, TWO, title="Two")
    in_the_way = library.store.path(pieces(ONE)[1].digest)
    in_the_way.unlink()
    in_the_way.mkdir()
    with pytest.raises(LongshelfError) as caught:
        library.memory.remove_document(first.id)
    assert (caught.value.kind, str(in_the_way) in caught.value.message) == ("store_unavailable", True)
    with pytest.raises(LongshelfError):
        library.memory.remove_document(second.id)
    assert files(library) == set()
    library.close()
    library = open_library(tmp_path / "home")
    library.settle()
    assert library.documents.all() == []
    in_the_way.rmdir()
    assert library.settle().removals == 1
    assert files(library) == set()
    library.close()


def test_collecting_removes_what_nothing_needs_and_nothing_else(library: Library) -> None:
    row = add_and_remember(library, ONE)
    library.documents.replace_content(row.id, new(TWO))
    library.parts.assign(row.id, NAMESPACE, "tiny", plans(TWO))
    freed = library.memory.collect()
    assert freed.segments == 3
    assert files(library) == rows(library) == {PREAMBLE_DIGEST}
    assert library.memory.collect().segments == 0


@forks
def test_reading_killed_at_any_step_goes_on_and_computes_at_most_one_segment_twice(tmp_path: Path) -> None:
    root = tmp_path / "home"
    library = open_library(root)
    row, _ = add(library, ONE)
    library.close()

    def read(step: Step) -> None:
        library = open_library(root)
        library.settle()
        remember_all(library)
        library.close()

    def remember_all(library: Library) -> None:
        part = library.memory.adopt(library.parts.of(row.id)[0].id)
        for piece in pieces(ONE)[len(library.parts.segments(part.id)) :]:
            library.memory.remember(part.id, piece.header, piece.ids, kv(piece.header), prefilled=len(piece.ids))

    deaths = 0
    for _ in crashes(read):
        deaths += 1
        library = open_library(root)
        assert rows(library) <= files(library)
        assert library.counters.get(TOKENS_PREFILLED) <= 24
        for digest in files(library):
            library.store.verify(digest)
        for digest in list(files(library)):  # begin anew, so that every step is met once
            library.memory.lose(digest)
        with library.catalog.transaction() as db:
            db.execute("DELETE FROM counters")
        library.close()
    library = open_library(root)
    assert library.parts.of(row.id)[0].state == "ready"
    assert library.settle().temporaries == 0
    library.close()
    assert deaths > 30


@forks
def test_a_removal_killed_at_any_step_is_finished_at_the_next_start(tmp_path: Path) -> None:
    root = tmp_path / "home"
    library = open_library(root)
    kept = add_and_remember(library, TWO, title="Two")
    library.close()

    def remove(step: Step) -> None:
        library = open_library(root)
        library.memory.remove_document(next(row.id for row in library.documents.all() if row.title == "Moby-Dick"))
        library.close()

    def begin() -> str:
        library = open_library(root)
        row = add_and_remember(library, ONE, TWO)
        library.close()
        return row.id

    removed = begin()
    outcomes = set()
    for _ in crashes(remove):
        library = open_library(root)
        assert rows(library) <= files(library)
        library.settle()
        there = removed in {row.id for row in library.documents.all()}
        outcomes.add(there)
        assert library.texts.path(removed).exists() == there
        assert files(library) == rows(library) == digests(TWO, *([ONE] if there else [])) | {PREAMBLE_DIGEST}
        assert library.parts.of(kept.id)[0].state == "ready"
        library.close()
        if not there:
            removed = begin()
    assert outcomes == {True, False}


@forks
def test_a_document_whose_adding_was_killed_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    root = tmp_path / "home"
    open_library(root).close()

    def add_one(step: Step) -> None:
        library = open_library(root)
        add(library, ONE, TWO)
        library.close()

    seen = set()
    for _ in crashes(add_one):
        library = open_library(root)
        settled = library.settle()
        documents = library.documents.all()
        seen.add((len(documents), len(settled.restored)))
        for row in documents:
            assert library.documents.text(row.id) == ONE + TWO
            assert row.state == "queued"
            assert len(library.parts.of(row.id)) in (0, 2)
            library.memory.remove_document(row.id)
        assert not library.temporaries()
        library.close()
    assert seen == {(0, 0), (1, 1), (1, 0)}
