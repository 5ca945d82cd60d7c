"""Stored combinations of documents."""

from __future__ import annotations

import pytest

from engine.library import references
from engine.library.joins import Join
from engine.library.library import Library
from tests.engine.library.shelf import MODEL, Piece, add_and_remember
from tests.engine.store.pieces import NAMESPACE, header, kv

ONE, TWO = "It was a bright cold day", "in April"


def joined(library: Library) -> tuple[Join, Piece]:
    """The two documents as one chain: the second's 8 tokens behind the first."""
    first, second = (add_and_remember(library, text, title=text) for text in (ONE, TWO))
    parts = [library.parts.of(row.id)[0] for row in (first, second)]
    join = library.joins.add(NAMESPACE, MODEL, [part.id for part in parts], tokens=8)
    piece = Piece(header(tokens=8, parent=str(parts[0].tip), start=27), [ord(letter) for letter in TWO])
    return join, piece


def test_a_join_begins_empty_and_is_ready_with_its_segments(library: Library) -> None:
    join, piece = joined(library)
    assert (join.ready, join.segments) == (False, ())
    join = library.memory.remember_join(join.id, piece.header, piece.ids, kv(piece.header), prefilled=8)
    assert (join.ready, join.tip, join.segments) == (True, piece.digest, (piece.digest,))
    assert library.memory.remember_join(join.id, piece.header, piece.ids, kv(piece.header), prefilled=0) == join


def test_the_same_parts_in_the_same_order_are_the_same_join(library: Library) -> None:
    join, _ = joined(library)
    assert library.joins.find(NAMESPACE, join.parts) == join
    assert library.joins.add(NAMESPACE, MODEL, join.parts, tokens=8) == join
    assert library.joins.find(NAMESPACE, join.parts[::-1]) is None
    assert library.joins.all() == [join]


def test_a_segment_that_does_not_follow_is_refused(library: Library) -> None:
    join, _ = joined(library)
    stray = Piece(header(tokens=8, parent="ef" * 32, start=27), [1] * 8)
    with pytest.raises(ValueError, match="does not follow"):
        library.memory.remember_join(join.id, stray.header, stray.ids, kv(stray.header), prefilled=8)


def test_its_segments_are_kept_until_it_goes(library: Library) -> None:
    join, piece = joined(library)
    library.memory.remember_join(join.id, piece.header, piece.ids, kv(piece.header), prefilled=8)
    assert piece.digest in references.needed(library.catalog)
    assert library.memory.remove_join(join.id).segments == 1
    assert not library.store.has(piece.digest)


def test_it_goes_with_any_of_its_documents(library: Library) -> None:
    join, piece = joined(library)
    library.memory.remember_join(join.id, piece.header, piece.ids, kv(piece.header), prefilled=8)
    library.memory.remove_document(library.parts.get(join.parts[1]).document_id)
    assert library.joins.all() == []
    assert not library.store.has(piece.digest)
    assert library.parts.get(join.parts[0]).state == "ready"
