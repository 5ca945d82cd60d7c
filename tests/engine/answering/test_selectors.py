"""Sampled answers by hash tables: drawn by what meets the question, made once, kept with the part, told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine import placement
from engine.answering import modes
from engine.answering.modes import Mode
from engine.answering.selectors import Chosen, named
from engine.attention import sampled
from engine.errors import LongshelfError
from engine.library.sidecars import TABLES
from engine.placement import Plan
from engine.retrieval import kept_tables
from engine.shelf import Shelf
from tests.engine.answering.test_modes import calibrate
from tests.engine.books import add, ask, book


@pytest.fixture
def document(tiny_shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The id of a book of one part, which is long enough to be sampled."""
    monkeypatch.setattr(modes, "LEAST", 16)
    monkeypatch.setattr(sampled, "LOCAL", 8)
    monkeypatch.setattr(modes, "LOCAL", 8)
    monkeypatch.setattr(modes, "COMPACT", 8)
    return str(add(tiny_shelf, book(tmp_path, 1))["id"])


def by_tables(shelf: Shelf, document: str, selector: str = "lsh:5,20") -> dict[str, Any]:
    return ask(shelf, document, mode="sampled", selector=selector)


def kept(shelf: Shelf) -> list[str]:
    return [row.digest for row in shelf.library.sidecars.all() if row.kind == TABLES]


def test_an_answer_by_tables_says_what_it_read_and_how_far_off_it_was(tiny_shelf: Shelf, document: str) -> None:
    result = by_tables(tiny_shelf, document)
    assert result["mode"] == "sampled"
    assert 0 < result["error_measured"] < 1
    assert 0 < result["keys_read_fraction"] < result["rows_read_fraction"] < 1
    assert result["citations"]


def test_with_tables_that_all_keys_meet_in_it_is_the_exact_answer(tiny_shelf: Shelf, document: str) -> None:
    result = by_tables(tiny_shelf, document, "lsh:1,300")
    assert result["token_ids"] == ask(tiny_shelf, document)["token_ids"]
    assert result["error_measured"] < 1e-3
    assert result["keys_read_fraction"] == result["rows_read_fraction"] == 1


def test_layers_that_do_not_bear_sampling_are_read_whole(tiny_shelf: Shelf, document: str) -> None:
    fractions = []
    for dense in ((), (0,), (0, 1)):
        calibrate(tiny_shelf, dense_layers=dense)
        fractions.append(by_tables(tiny_shelf, document)["keys_read_fraction"])
    assert fractions[0] < fractions[1] < fractions[2] == 1


@pytest.mark.parametrize("selector", ["lsh:5,20", "sketch"])
def test_behind_a_chain_in_memory_a_model_on_a_device_says_the_same(
    tiny_shelf: Shelf, document: str, selector: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = pytest.importorskip("tests.engine.on_device").KIND
    monkeypatch.setattr(placement, "plan", lambda *given: Plan(0, 0, room=0))
    how = {"mode": "sampled", "selector": selector, "seed": 1, "max_tokens": 6}
    here, there = (ask(tiny_shelf, document, device=device, **how) for device in ("cpu", kind))
    assert [here["device"], there["device"]] == ["cpu", kind]
    assert there["mode"] == "sampled"
    assert there["token_ids"] == here["token_ids"]
    assert there["keys_read_fraction"] == pytest.approx(here["keys_read_fraction"], rel=0.02)
    assert there["error_measured"] == pytest.approx(here["error_measured"], rel=0.1)


def test_tables_are_kept_with_the_part_and_never_made_again(tiny_shelf: Shelf, document: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not kept(tiny_shelf)
    first = by_tables(tiny_shelf, document)
    assert len(kept(tiny_shelf)) == 1
    monkeypatch.setattr(kept_tables, "make", refuse)
    assert by_tables(tiny_shelf, document)["token_ids"] == first["token_ids"]


def refuse(*arguments: object) -> None:
    raise AssertionError("tables are made again")


def test_other_tables_of_a_part_are_kept_beside_them(tiny_shelf: Shelf, document: str) -> None:
    by_tables(tiny_shelf, document)
    by_tables(tiny_shelf, document, "lsh:4,20")
    assert len(kept(tiny_shelf)) == 2


def test_the_size_of_tables_is_said_before_they_are_made_and_is_that_of_the_file(
    tiny_shelf: Shelf, document: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[dict[str, Any]] = []
    emitted = "engine.answering.reader.Reader._say_preparing"
    monkeypatch.setattr(emitted, lambda self, size: said.append({"bytes": size}))
    by_tables(tiny_shelf, document)
    by_tables(tiny_shelf, document)
    (row,) = [row for row in tiny_shelf.library.sidecars.all() if row.kind == TABLES]
    assert said == [{"bytes": row.bytes}]


def test_damaged_tables_are_made_again(tiny_shelf: Shelf, document: str) -> None:
    first = by_tables(tiny_shelf, document)
    (digest,) = kept(tiny_shelf)
    path = tiny_shelf.library.sidecars.store.path(digest)
    content = bytearray(path.read_bytes())
    content[5000] ^= 1
    path.write_bytes(content)
    assert by_tables(tiny_shelf, document)["token_ids"] == first["token_ids"]
    assert tiny_shelf.library.sidecars.find(digest) is not None


def test_without_room_for_tables_the_answer_is_the_same(tiny_shelf: Shelf, document: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.reading.room.spare", lambda shelf, needed: False)
    without = by_tables(tiny_shelf, document)
    assert not kept(tiny_shelf)
    monkeypatch.undo()
    assert without["mode"] == "sampled"


def test_removing_the_document_removes_its_tables(tiny_shelf: Shelf, document: str) -> None:
    by_tables(tiny_shelf, document)
    tiny_shelf.library.memory.remove_document(document)
    assert not kept(tiny_shelf)


# ---- names ----


def test_selectors_are_known_by_name_and_numbers() -> None:
    assert named("sketch") == Chosen("sketch")
    assert named("lsh") == Chosen("lsh", 10, 150)
    assert named("lsh:9,120") == Chosen("lsh", 9, 120)


@pytest.mark.parametrize("wrong", ["best", "", "sketch:3,4", "lsh:", "lsh:9", "lsh:a,b", "lsh:9,120,3", "lsh:12,100", "lsh:9,1", "lsh:0,9"])
def test_what_names_no_selector_is_wrong_usage(wrong: str) -> None:
    with pytest.raises(LongshelfError) as error:
        Mode("sampled", 1.0, wrong)
    assert error.value.kind == "usage"


def test_selectors_go_with_sampled_answers_and_budgets_with_sketches() -> None:
    for made in (lambda: Mode("exact", 1.0, "lsh"), lambda: Mode("sampled", 0.5, "lsh")):
        with pytest.raises(LongshelfError) as error:
            made()
        assert error.value.kind == "usage"
