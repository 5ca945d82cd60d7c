"""Parts: how a document is cut, and what each part has of its segments."""

from __future__ import annotations

import pytest

from engine.library.library import Library
from engine.library.parts import SegmentRow
from tests.engine.library.shelf import MODEL, PREAMBLE_DIGEST, add, add_and_remember, new, pieces, plans, remember, remember_preamble
from tests.engine.store.pieces import NAMESPACE

ONE, TWO = "It was a bright cold day", "in April"  # 24 and 8 tokens: three segments and one


def row_of(text: str, number: int) -> SegmentRow:
    piece = pieces(text)[number]
    head = piece.header
    return SegmentRow(piece.digest, head.parent, head.namespace, head.start, head.tokens, 1000)


def test_an_assignment_comes_back_as_it_was_made(library: Library) -> None:
    row, parts = add(library, ONE, TWO)
    assert library.parts.of(row.id) == library.parts.of(row.id, NAMESPACE) == parts
    places = [(part.ordinal, part.start, part.end, part.tokens, part.first_token) for part in parts]
    assert places == [(0, 0, 24, 24, 0), (1, 24, 32, 8, 24)]
    assert [part.expected for part in parts] == [plan.segments for plan in plans(ONE, TWO)]
    assert {part.state for part in parts} == {"waiting"}
    assert library.parts.of(row.id, "other") == []


def test_it_is_kept_with_the_text(library: Library) -> None:
    row, parts = add(library, ONE, TWO)
    kept = library.texts.load(row.id).assignments[NAMESPACE]
    assert kept["model"] == MODEL
    assert [tuple(plan["segments"]) for plan in kept["parts"]] == [part.expected for part in parts]


def test_a_part_is_ready_when_it_has_all_its_segments(library: Library) -> None:
    _, (part, _) = add(library, ONE, TWO)
    seen = []
    for number in range(3):
        part = library.parts.add_segment(part.id, row_of(ONE, number))
        seen.append((part.state, part.tokens_done, part.tip))
    digests = [piece.digest for piece in pieces(ONE)]
    assert seen == [("reading", 8, digests[0]), ("reading", 16, digests[1]), ("ready", 24, digests[2])]
    assert library.parts.segments(part.id) == digests


def test_a_segment_that_is_there_already_changes_nothing(library: Library) -> None:
    _, (part, _) = add(library, ONE, TWO)
    first = library.parts.add_segment(part.id, row_of(ONE, 0))
    assert library.parts.add_segment(part.id, row_of(ONE, 0)) == first


def test_a_segment_out_of_order_or_of_another_text_is_refused(library: Library) -> None:
    _, (part, _) = add(library, ONE, TWO)
    for wrong in (row_of(ONE, 1), row_of(TWO, 0)):
        with pytest.raises(ValueError, match="not number 0"):
            library.parts.add_segment(part.id, wrong)
    assert library.parts.get(part.id) == part


def test_the_same_assignment_again_keeps_parts_and_what_they_have(library: Library) -> None:
    row = add_and_remember(library, ONE, TWO)
    before = library.parts.of(row.id)
    assert library.parts.assign(row.id, NAMESPACE, MODEL, plans(ONE, TWO)) == before
    assert {part.state for part in before} == {"ready"}


def test_after_an_edit_only_the_part_that_changed_is_to_be_read(library: Library) -> None:
    row = add_and_remember(library, ONE, TWO)
    library.documents.replace_content(row.id, new(ONE + "in March"))
    parts = library.parts.assign(row.id, NAMESPACE, MODEL, plans(ONE, "in March"))
    assert [part.state for part in parts] == ["ready", "waiting"]


def test_an_edit_in_the_middle_of_a_part_keeps_its_beginning(library: Library) -> None:
    row = add_and_remember(library, ONE)
    changed = ONE[:20] + "noon"
    library.documents.replace_content(row.id, new(changed))
    (part,) = library.parts.assign(row.id, NAMESPACE, MODEL, plans(changed))
    assert (part.state, part.tokens_done) == ("reading", 16)


def test_the_same_text_added_twice_is_read_once(library: Library) -> None:
    add_and_remember(library, ONE)
    _, (part,) = add(library, ONE, title="Again")
    assert part.state == "ready"
    assert len(library.parts.having(pieces(ONE)[0].digest)) == 2


def test_a_document_may_be_cut_for_two_models(library: Library) -> None:
    row, parts = add(library, ONE)
    others = library.parts.assign(row.id, "cd" * 32, "other", plans(ONE[:10], ONE[10:]))
    assert library.parts.of(row.id, NAMESPACE) == parts
    assert library.parts.of(row.id, "cd" * 32) == others
    assert [(entry.model, entry.parts) for entry in library.parts.progress(row.id)] == [(MODEL, 1), ("other", 2)]


def test_cutting_back_leaves_the_segments_before(library: Library) -> None:
    _, (part,) = add(library, ONE)
    remember_preamble(library)
    remember(library, part, ONE)
    cut = library.parts.cut_back(part.id, 1)
    assert (cut.state, cut.tokens_done, cut.tip) == ("damaged", 8, pieces(ONE)[0].digest)


def test_progress_counts_parts_tokens_and_bytes(library: Library) -> None:
    row, parts = add(library, ONE, TWO)
    remember_preamble(library)
    remember(library, parts[0], ONE)
    (entry,) = library.parts.progress(row.id, NAMESPACE)
    sizes = sum(library.store.size(piece.digest) for piece in pieces(ONE))
    assert (entry.parts, entry.parts_ready, entry.tokens, entry.tokens_done, entry.bytes) == (2, 1, 32, 24, sizes)


def test_what_was_used_longest_ago_comes_first(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.library import references

    first, second = add_and_remember(library, ONE), add_and_remember(library, TWO, title="Two")
    library.parts.touch(library.parts.segments(library.parts.of(first.id)[0].id))
    assert list(references.last_use(library.catalog)) == [second.id, first.id]
    assert PREAMBLE_DIGEST in references.needed(library.catalog)
