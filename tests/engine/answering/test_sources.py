"""What a question is read from: finished parts, opened whole; what is lost is read again, and joins are read once."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from engine.answering.sources import Asked, Chains, Source, asked_documents, of_library, part_offsets, places, segment_tokens
from engine.errors import LongshelfError
from engine.model.loaded import LoadedModel
from engine.reading.rows import stored_document
from engine.shelf import Call, Shelf
from tests.engine.books import Row, add, book, chapter
from tests.engine.gate import Gate


@pytest.fixture
def model(tiny_shelf: Shelf) -> LoadedModel:
    return tiny_shelf.model()[0]


def asked(shelf: Shelf, *names: str, everything: bool = False) -> Asked:
    return asked_documents(shelf, names, everything, shelf.model()[0].namespace)


class Opened:
    """Chains of one question."""

    def __init__(self, shelf: Shelf) -> None:
        self.chains = Chains(shelf, shelf.model()[0], lambda: None)
        self.said: list[int] = []

    @property
    def prefilled(self) -> int:
        return self.chains.document_tokens_prefilled

    def join(self, sources: list[Source]) -> list[int]:
        """The tokens of the joined chain, the preamble's left out."""
        return segment_tokens(self.chains.joined(sources, self.said.append), self.chains.preamble)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[5000] ^= 1
    path.write_bytes(content)


# ---- which parts ----


def test_every_finished_part_of_the_documents_is_a_source(tiny_shelf: Shelf, tmp_path: Path) -> None:
    first, second = add(tiny_shelf, book(tmp_path, 2, "a.txt")), add(tiny_shelf, book(tmp_path, 1, "b.txt", first=5))
    found = asked(tiny_shelf, second["id"], first["id"])
    assert [(source.row.id, source.number) for source in found.sources] == [(second["id"], 1), (first["id"], 1), (first["id"], 2)]
    assert found.parts_total == 3


def test_a_document_named_twice_is_asked_once(tiny_shelf: Shelf, tmp_path: Path) -> None:
    document = add(tiny_shelf, book(tmp_path, 1))
    assert len(asked(tiny_shelf, document["id"], document["id"]).sources) == 1


def test_everything_is_every_document_that_was_read(tiny_shelf: Shelf, tmp_path: Path) -> None:
    add(tiny_shelf, book(tmp_path, 1, "a.txt"))
    add(tiny_shelf, book(tmp_path, 1, "b.txt", first=2), read=False)
    found = asked(tiny_shelf, *(row.id for row in of_library(tiny_shelf, "Who?")), everything=True)
    assert [source.row.title for source in found.sources] == ["a"]


def test_parts_still_to_be_read_are_counted_and_not_asked(tiny_shelf: Shelf, tmp_path: Path) -> None:
    gate = Gate(tiny_shelf, at=4)
    document = add(tiny_shelf, book(tmp_path, 3), wait=False)
    gate.wait()
    found = asked(tiny_shelf, document["id"])
    assert ([source.number for source in found.sources], found.parts_total) == ([1], 3)
    gate.open()
    for job in tiny_shelf.library.jobs.of(document["id"]):
        tiny_shelf.queue.wait(job.id, threading.Event())


def refused(shelf: Shelf, *names: str, everything: bool = False) -> LongshelfError:
    with pytest.raises(LongshelfError) as error:
        asked(shelf, *names, everything=everything)
    return error.value


def test_a_document_without_a_finished_part_says_so(tiny_shelf: Shelf, tmp_path: Path) -> None:
    gate = Gate(tiny_shelf, at=1)
    document = add(tiny_shelf, book(tmp_path, 1), wait=False)
    gate.wait()
    error = refused(tiny_shelf, document["id"])
    assert (error.kind, "no finished part yet" in error.message) == ("not_ready", True)
    gate.open()


def test_a_document_that_is_only_kept_says_so(tiny_shelf: Shelf, tmp_path: Path) -> None:
    error = refused(tiny_shelf, add(tiny_shelf, book(tmp_path, 1), read=False)["id"])
    assert (error.kind, "has not been read" in error.message) == ("not_ready", True)


def test_a_document_read_by_another_model_says_so(tiny_shelf: Shelf, tmp_path: Path) -> None:
    document = add(tiny_shelf, book(tmp_path, 1))
    with pytest.raises(LongshelfError, match="read by another model"):
        asked_documents(tiny_shelf, [document["id"]], False, "another namespace")


def test_an_unknown_document_and_none_at_all_are_refused(tiny_shelf: Shelf) -> None:
    assert refused(tiny_shelf, "nothing").kind == "not_found"
    assert refused(tiny_shelf).kind == "usage"
    assert refused(tiny_shelf, everything=True).kind == "usage"


# ---- opening ----


def test_a_chain_is_the_preamble_and_the_parts_own_tokens(tiny_shelf: Shelf, model: LoadedModel, tmp_path: Path) -> None:
    document, opened = add(tiny_shelf, book(tmp_path, 2)), Opened(tiny_shelf)
    second = asked(tiny_shelf, document["id"]).sources[1]
    assert segment_tokens(opened.chains.of(second), opened.chains.preamble) == model.tokenizer.encode_ids(chapter(2))
    assert opened.prefilled == 0


@pytest.mark.parametrize("loss", ["damaged", "missing"])
def test_a_lost_segment_is_computed_again_and_counted(tiny_shelf: Shelf, tmp_path: Path, loss: str) -> None:
    document = add(tiny_shelf, book(tmp_path, 2))
    source = asked(tiny_shelf, document["id"]).sources[1]
    path = tiny_shelf.library.store.path(source.part.expected[0])
    good = path.read_bytes()
    flip(path) if loss == "damaged" else path.unlink()
    opened = Opened(tiny_shelf)
    assert opened.chains.of(source).length == opened.chains.preamble.length + source.part.tokens
    assert opened.prefilled == source.part.tokens
    assert path.read_bytes() == good


def test_what_was_computed_again_is_in_the_total_of_the_home(tiny_shelf: Shelf, tmp_path: Path) -> None:
    document = add(tiny_shelf, book(tmp_path, 2))
    source = asked(tiny_shelf, document["id"]).sources[1]
    tiny_shelf.library.store.path(source.part.expected[0]).unlink()
    Opened(tiny_shelf).chains.of(source)
    total = tiny_shelf.call("doctor", {}, Call())["tokens_prefilled_total"]
    assert total == document["tokens"] + source.part.tokens


def test_only_what_is_lost_is_computed_again(tiny_shelf: Shelf, tmp_path: Path) -> None:
    document = add(tiny_shelf, book(tmp_path, 5), part_tokens=3584)
    [source] = asked(tiny_shelf, document["id"]).sources
    assert len(source.part.expected) == 4
    flip(tiny_shelf.library.store.path(source.part.expected[1]))
    opened = Opened(tiny_shelf)
    assert opened.chains.of(source).length == opened.chains.preamble.length + source.part.tokens
    assert opened.prefilled == 1024


# ---- joins ----


@pytest.fixture
def pair(tiny_shelf: Shelf, tmp_path: Path) -> list[Source]:
    """The parts of two small documents."""
    rows = [add(tiny_shelf, book(tmp_path, 1, f"{n}.txt", first=n)) for n in (1, 2)]
    return list(asked(tiny_shelf, *(row["id"] for row in rows)).sources)


def test_a_join_reads_the_documents_one_behind_the_other(tiny_shelf: Shelf, model: LoadedModel, pair: list[Source]) -> None:
    assert Opened(tiny_shelf).join(pair) == model.tokenizer.encode_ids(chapter(1)) + model.tokenizer.encode_ids(chapter(2))


def test_a_join_is_computed_once_its_cost_said_before(tiny_shelf: Shelf, pair: list[Source]) -> None:
    first, second = Opened(tiny_shelf), Opened(tiny_shelf)
    assert first.join(pair) == second.join(pair)
    assert first.said == [first.prefilled] == [pair[1].part.tokens]
    assert (second.said, second.prefilled) == ([], 0)


def test_another_order_is_another_join(tiny_shelf: Shelf, pair: list[Source]) -> None:
    Opened(tiny_shelf).join(pair)
    turned = Opened(tiny_shelf)
    turned.join(pair[::-1])
    assert turned.prefilled == pair[0].part.tokens
    assert len(tiny_shelf.library.joins.all()) == 2


def test_a_join_with_a_damaged_piece_is_read_again(tiny_shelf: Shelf, pair: list[Source]) -> None:
    whole = Opened(tiny_shelf).join(pair)
    [join] = tiny_shelf.library.joins.all()
    flip(tiny_shelf.library.store.path(join.segments[0]))
    again = Opened(tiny_shelf)
    assert again.join(pair) == whole
    assert again.prefilled == pair[1].part.tokens
    assert tiny_shelf.call("doctor", {"deep": True}, Call())["problems"] == []


def test_a_join_goes_with_any_of_its_documents(tiny_shelf: Shelf, pair: list[Source]) -> None:
    Opened(tiny_shelf).join(pair)
    tiny_shelf.call("documents.remove", {"id": pair[1].row.id}, Call())
    assert tiny_shelf.library.joins.all() == []
    assert tiny_shelf.call("doctor", {"deep": True}, Call())["problems"] == []


# ---- from tokens to text ----


def test_the_offsets_of_a_parts_tokens_cover_its_text(tiny_shelf: Shelf, model: LoadedModel, tmp_path: Path) -> None:
    row: Row = add(tiny_shelf, book(tmp_path, 2))
    source = asked(tiny_shelf, row["id"]).sources[1]
    document = stored_document(tiny_shelf, source.row)
    opened = Opened(tiny_shelf).chains
    ids = segment_tokens(opened.of(source), opened.preamble)
    offsets = part_offsets(model, document, source.part, ids)
    assert len(offsets) == len(ids)
    assert "".join(document.text[start:end] for start, end in offsets) == chapter(2)


def test_a_part_that_is_cut_otherwise_alone_has_the_offsets_of_the_whole(tiny_shelf: Shelf, model: LoadedModel, tmp_path: Path) -> None:
    source = asked(tiny_shelf, add(tiny_shelf, book(tmp_path, 2))["id"]).sources[1]
    document = stored_document(tiny_shelf, source.row)
    alone = part_offsets(model, document, source.part, model.tokenizer.encode_ids(chapter(2)))
    assert part_offsets(model, document, source.part, [0] * source.part.tokens) == alone


def test_a_part_is_placed_by_its_first_and_last_section(tiny_shelf: Shelf, tmp_path: Path) -> None:
    [source] = asked(tiny_shelf, add(tiny_shelf, book(tmp_path, 3), part_tokens=None)["id"]).sources
    assert places(stored_document(tiny_shelf, source.row), source.part) == {"first": "CHAPTER 1", "last": "CHAPTER 3"}


# ---- a whole library ----


def test_of_many_documents_those_that_the_question_is_about_are_asked(
    tiny_shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.answering.sources.PROPOSED", 2)
    books = [add(tiny_shelf, book(tmp_path, 1, f"{n}.txt", first=n)) for n in (1, 2, 3)]
    rows = of_library(tiny_shelf, "Who is Ward3004?")
    assert [row.id for row in rows] == [books[2]["id"]]
    assert asked(tiny_shelf, rows[0].id, everything=True).parts_total == sum(row["parts"] for row in books)


def test_a_question_without_words_is_put_to_the_latest_documents(
    tiny_shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.answering.sources.PROPOSED", 2)
    books = [add(tiny_shelf, book(tmp_path, 1, f"{n}.txt", first=n)) for n in (1, 2, 3)]
    assert {row.id for row in of_library(tiny_shelf, "What is this?")} == {books[1]["id"], books[2]["id"]}
