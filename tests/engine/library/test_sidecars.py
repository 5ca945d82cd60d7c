"""Sidecars and their rows in step: found while all that they derive from is there, dropped with the first of it that goes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from engine.errors import LongshelfError
from engine.library import sidecars as of_library
from engine.library.library import Library
from engine.library.recovery import rebuild
from engine.library.sidecars import BUILDERS, QUICK_JOIN
from engine.store.sidecar import Array, Recipe, SidecarHeader
from tests.engine.library.shelf import add_and_remember, flip, open_library, pieces
from tests.engine.store.crashing import Step, crashes
from tests.engine.store.pieces import NAMESPACE

ONE, TWO = "It was a bright cold day", "in April"
DATA = torch.arange(5000, dtype=torch.int32)


def made_of(*texts: str, shift: int = 24) -> SidecarHeader:
    """What could be made of the segments of these texts."""
    sources = tuple(piece.digest for text in texts for piece in pieces(text))
    return SidecarHeader(Recipe(QUICK_JOIN, BUILDERS[QUICK_JOIN], NAMESPACE, sources, {"shift": shift}), (Array.of("0", DATA, 0),))


def keep(library: Library, *texts: str, shift: int = 24) -> str:
    """Keep that; gives its digest."""
    header = made_of(*texts, shift=shift)
    assert library.sidecars.keep(header, [DATA])
    return header.recipe.digest


def files(library: Library) -> list[str]:
    return list(library.sidecars.store.digests())


def rows(library: Library) -> list[str]:
    return [row.digest for row in library.sidecars.all()]


@pytest.fixture
def documents(library: Library) -> list[str]:
    """Ids of two remembered documents."""
    return [add_and_remember(library, text, title=text).id for text in (ONE, TWO)]


def test_it_is_found_while_what_it_is_made_of_is_there(library: Library, documents: list[str]) -> None:
    header = made_of(ONE, TWO)
    assert library.sidecars.find(header.recipe.digest) is None
    keep(library, ONE, TWO)
    found = library.sidecars.find(header.recipe.digest)
    assert found is not None
    assert torch.equal(found.tensor("0"), DATA)
    assert found.header == header
    [row] = library.sidecars.all()
    assert (row.bytes, row.sources) == (library.sidecars.store.usage(), header.recipe.sources)


def test_keeping_it_again_keeps_one(library: Library, documents: list[str]) -> None:
    assert keep(library, ONE, TWO) == keep(library, ONE, TWO)
    assert len(rows(library)) == len(files(library)) == 1


def test_one_made_of_the_same_text_twice_is_kept(library: Library, documents: list[str]) -> None:
    assert library.sidecars.find(keep(library, TWO, TWO)) is not None


@pytest.mark.parametrize("gone", [0, 1])
def test_it_goes_with_any_document_it_is_made_of(library: Library, documents: list[str], gone: int) -> None:
    keep(library, ONE, TWO)
    kept, size = keep(library, (ONE, TWO)[1 - gone]), library.sidecars.all()[0].bytes
    alone = sum(library.store.size(piece.digest) for piece in pieces((ONE, TWO)[gone]))
    freed = library.memory.remove_document(documents[gone])
    assert rows(library) == files(library) == [kept]
    assert freed.bytes == size + alone


def test_it_goes_when_a_document_is_forgotten(library: Library, documents: list[str]) -> None:
    keep(library, ONE, TWO)
    library.memory.forget(documents[1])
    assert rows(library) == files(library) == []


def test_it_goes_with_a_segment_that_is_lost(library: Library, documents: list[str]) -> None:
    keep(library, ONE, TWO)
    library.memory.lose(pieces(ONE)[1].digest)
    assert rows(library) == files(library) == []


def test_it_stays_where_another_document_has_the_same_text(library: Library, documents: list[str]) -> None:
    kept = keep(library, ONE, TWO)
    add_and_remember(library, TWO, title="again")
    library.memory.remove_document(documents[1])
    assert library.sidecars.find(kept) is not None


def test_it_keeps_no_segment_from_going(library: Library, documents: list[str]) -> None:
    keep(library, ONE)
    library.parts.drop(documents[0])
    assert library.memory.collect().segments == 3
    assert rows(library) == files(library) == []


def test_one_whose_text_was_removed_meanwhile_is_not_kept(library: Library, documents: list[str]) -> None:
    library.memory.remove_document(documents[1])
    assert not library.sidecars.keep(made_of(ONE, TWO), [DATA])
    assert rows(library) == files(library) == []


@pytest.mark.parametrize("harm", ["flipped", "cut", "gone"])
def test_one_that_is_damaged_or_missing_is_dropped(library: Library, documents: list[str], harm: str) -> None:
    kept = keep(library, ONE, TWO)
    path = library.sidecars.store.path(kept)
    if harm == "flipped":
        flip(path, 5000)
    elif harm == "cut":
        path.write_bytes(path.read_bytes()[:5000])
    else:
        path.unlink()
    assert library.sidecars.find(kept) is None
    assert rows(library) == files(library) == []
    assert library.sidecars.find(keep(library, ONE, TWO)) is not None


def test_on_a_full_disk_nothing_is_kept(library: Library, documents: list[str]) -> None:
    library.sidecars.store.floor = 1 << 62
    with pytest.raises(LongshelfError) as caught:
        keep(library, ONE, TWO)
    assert caught.value.kind == "disk_full"
    assert rows(library) == files(library) == library.sidecars.store.temporaries() == []


def test_a_file_whose_row_cannot_be_written_is_not_left(library: Library, documents: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def full(header: SidecarHeader) -> bool:
        raise LongshelfError("disk_full", "The disk is full.")

    monkeypatch.setattr(library.sidecars, "_add_row", full)
    with pytest.raises(LongshelfError):
        keep(library, ONE, TWO)
    assert files(library) == []


def test_what_code_before_this_made_is_swept_away(library: Library, documents: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    keep(library, ONE, TWO)
    monkeypatch.setattr(of_library, "BUILDERS", {QUICK_JOIN: BUILDERS[QUICK_JOIN] + 1})
    library.settle()
    assert rows(library) == files(library) == []


def test_a_file_without_a_row_is_swept_away_at_the_next_start(library: Library, documents: list[str]) -> None:
    library.sidecars.store.commit(made_of(ONE), [DATA])
    kept = keep(library, TWO)
    library.settle()
    assert rows(library) == files(library) == [kept]


def test_what_was_made_for_a_model_that_is_gone_is_dropped(library: Library, documents: list[str]) -> None:
    keep(library, ONE, TWO)
    library.sidecars.drop_other_models({NAMESPACE})
    assert len(rows(library)) == 1
    library.sidecars.drop_other_models({"cd" * 32})
    assert rows(library) == files(library) == []


def test_the_one_used_last_is_named_last(library: Library, documents: list[str]) -> None:
    first, second = keep(library, ONE), keep(library, TWO)
    library.sidecars.find(first)
    assert rows(library) == [second, first]


def test_a_catalog_that_is_made_again_has_none_and_leaves_no_file(library: Library, documents: list[str]) -> None:
    keep(library, ONE, TWO)
    library.catalog.back_up_daily()
    library.close()
    library.home.catalog.write_bytes(b"garbage " * 4096)
    rebuild(library.home, floor=0)
    again = open_library(library.home.root)
    assert rows(again) == files(again) == []
    assert len(again.documents.all()) == 2
    again.close()


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_keeping_killed_at_any_step_leaves_no_row_without_its_file(tmp_path: Path) -> None:
    root = tmp_path / "home"
    library = open_library(root)
    for text in (ONE, TWO):
        add_and_remember(library, text, title=text)
    library.close()

    def keep_one(step: Step) -> None:
        library = open_library(root)
        keep(library, ONE, TWO)
        step()
        library.close()

    outcomes = set()
    for _ in crashes(keep_one):
        library = open_library(root)
        outcomes.add((len(rows(library)), len(files(library))))
        library.settle()
        assert rows(library) == files(library)
        assert not library.temporaries()
        for digest in rows(library):
            assert library.sidecars.find(digest) is not None
            library.sidecars.drop(digest)
        library.close()
    assert outcomes == {(0, 0), (0, 1), (1, 1)}


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_dropping_killed_at_any_step_leaves_no_row_without_its_file(tmp_path: Path) -> None:
    root = tmp_path / "home"
    library = open_library(root)
    add_and_remember(library, ONE)
    kept = keep(library, ONE)
    library.close()

    def drop(step: Step) -> None:
        library = open_library(root)
        library.sidecars.drop(kept)
        library.close()

    outcomes = set()
    for _ in crashes(drop):
        library = open_library(root)
        outcomes.add((len(rows(library)), len(files(library))))
        library.settle()
        if not rows(library):
            assert files(library) == []
            keep(library, ONE)
        library.close()
    assert outcomes == {(1, 1), (0, 1), (0, 0)}
