"""What is given up first when the remembered takes more than it may."""

from __future__ import annotations

from engine.library import room
from engine.library.library import Library
from engine.store.format import Layout
from tests.engine.library.shelf import MODEL, add_and_remember, new
from tests.engine.library.test_joins import joined
from tests.engine.library.test_sidecars import keep
from tests.engine.store.pieces import NAMESPACE, kv

ONE, TWO = "It was a bright cold day", "in April"


def use(library: Library, document_id: str) -> None:
    library.parts.touch(digest for part in library.parts.of(document_id) for digest in library.parts.segments(part.id))


def test_what_is_used_is_the_sum_of_all_segments_and_sidecars(library: Library) -> None:
    assert room.used(library) == 0
    add_and_remember(library, ONE, TWO)
    assert room.used(library) == library.store.usage()
    keep(library, ONE, TWO)
    assert room.used(library) == library.store.usage() + library.sidecars.store.usage() > library.store.usage()


def test_sidecars_go_one_by_one_the_one_unused_for_longest_first(library: Library) -> None:
    add_and_remember(library, ONE, TWO)
    first, second, third = keep(library, ONE), keep(library, TWO), keep(library, ONE, TWO)
    library.sidecars.find(first)
    total = room.used(library)
    assert room.give_up_sidecars(library, most=total) == 0
    assert room.give_up_sidecars(library, most=total - 1) == 1
    assert [row.digest for row in library.sidecars.all()] == [third, first]
    assert room.give_up_sidecars(library, most=0) == 2
    assert room.used(library) == library.store.usage()
    assert second not in library.sidecars.store.digests()


def test_combinations_go_before_documents_the_one_unused_for_longest_first(library: Library) -> None:
    join, piece = joined(library)
    library.memory.remember_join(join.id, piece.header, piece.ids, kv(piece.header), prefilled=8)
    library.joins.add(NAMESPACE, MODEL, join.parts[::-1], tokens=8)
    library.joins.touch(join.id)
    assert room.give_up_joins(library, most=room.used(library)) == 0
    assert room.give_up_joins(library, most=0, keep=join.id) == 1
    assert [left.id for left in library.joins.all()] == [join.id]
    before = room.used(library)
    assert room.give_up_joins(library, most=before - 1) == 1
    assert room.used(library) == library.store.usage() == before - Layout.of(piece.header).size
    assert len(room.candidates(library)) == 2


def test_documents_are_named_longest_unused_first_but_not_those_that_are_to_be_read(library: Library) -> None:
    first, second = add_and_remember(library, ONE, title="One"), add_and_remember(library, TWO, title="Two")
    library.documents.add(new("never read", title="Three"))
    use(library, first.id)
    assert [candidate.row.title for candidate in room.candidates(library)] == ["Two", "One"]
    library.jobs.add(second.id, MODEL)
    assert [candidate.row.title for candidate in room.candidates(library)] == ["One"]


def test_forgetting_is_told_in_the_kept_text_too(library: Library) -> None:
    row = add_and_remember(library, ONE)
    freed = room.forget(library, row.id)
    assert freed.segments == 3
    assert (library.documents.get(row.id).state, library.documents.get(row.id).reason) == ("paused", room.FORGOTTEN)
    assert library.texts.load(row.id).document["state"] == "paused"
    assert library.documents.text(row.id) == ONE
