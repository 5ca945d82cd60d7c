"""Reading several parts: one after another and combined, or quickly joined, which says that it is an approximation."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import pytest

from engine.answering.answer import Asking, Counts
from engine.answering.joining import ANEW
from engine.answering.reader import Reader
from engine.answering.sampling import Sampling
from engine.answering.sources import asked_documents
from engine.shelf import Shelf
from tests.engine.books import add, ask, book

QUESTION = "Who keeps lamp 2.3?"


@pytest.fixture
def reader(tiny_shelf: Shelf, tmp_path: Path) -> Reader:
    """Who answers a question about a book of three parts."""
    model = tiny_shelf.model()[0]
    document = add(tiny_shelf, book(tmp_path, 3))
    documents = asked_documents(tiny_shelf, [document["id"]], False, model.namespace)
    asking = Asking(QUESTION, (), Sampling(), 8, "auto", False, lambda event, data: None, Event())
    return Reader(tiny_shelf, model, documents, asking, Counts())


def test_joined_parts_are_one_chain_of_which_the_starts_are_computed(reader: Reader) -> None:
    sources = reader.documents.sources[:2]
    answer = reader.joined(sources)
    assert (answer.approximate, answer.sources) == (True, tuple(sources))
    assert reader.counts.reused_tokens == reader.chains.preamble.length + sum(source.part.tokens for source in sources)
    assert reader.chains.document_tokens_prefilled == ANEW


def test_passages_of_joined_parts_lie_in_their_own_parts(reader: Reader) -> None:
    answer = reader.joined(reader.documents.sources[1:])
    for source, passage in answer.cited:
        assert source.part.start <= passage.start < passage.end <= source.part.end


def test_a_second_question_to_the_same_parts_computes_none_of_their_tokens(tiny_shelf: Shelf, tmp_path: Path) -> None:
    document = add(tiny_shelf, book(tmp_path, 4))["id"]
    first, second = (ask(tiny_shelf, document, parts=[2, 4, 3], max_tokens=16) for _ in range(2))
    assert [result["document_tokens_prefilled"] for result in (first, second)] == [2 * ANEW, 0]
    for name in ("token_ids", "citations", "support", "approximate", "parts_read"):
        assert second[name] == first[name]
    assert second["approximate"]


def test_named_parts_are_joined_where_they_fit_the_window(tiny_shelf: Shelf, tmp_path: Path) -> None:
    document = add(tiny_shelf, book(tmp_path, 7))["id"]
    few = ask(tiny_shelf, document, parts=[2, 3])
    assert (few["approximate"], [part["part"] for part in few["parts_read"]]) == (True, [2, 3])
    assert few["document_tokens_prefilled"] == ANEW
    many = ask(tiny_shelf, document, parts=[1, 2, 3, 4, 5, 6, 7], max_tokens=2)
    assert (many["approximate"], many["document_tokens_prefilled"]) == (False, 0)


def test_every_part_is_read_exactly(tiny_shelf: Shelf, tmp_path: Path) -> None:
    document = add(tiny_shelf, book(tmp_path, 2))["id"]
    result = ask(tiny_shelf, document, parts="all", max_tokens=2)
    assert (result["approximate"], len(result["parts_read"]), result["document_tokens_prefilled"]) == (False, 2, 0)


def test_one_part_and_each_part_are_read_exactly(reader: Reader) -> None:
    assert not reader.alone(reader.documents.sources[0]).approximate
    answer = reader.each(reader.documents.sources[:2])
    assert (answer.approximate, answer.sources) == (False, reader.documents.sources[:2])


def test_what_choosing_measured_is_not_measured_again(reader: Reader) -> None:
    chosen = reader.routed().sources[0]
    tokens = reader.counts.routing_tokens
    answer = reader.alone(chosen)
    assert reader.counts.routing_tokens == tokens
    again = Reader(reader.shelf, reader.model, reader.documents, reader.asking, Counts()).alone(chosen)
    assert answer.evidence.explained == pytest.approx(again.evidence.explained, abs=0.02)


def test_support_is_told_with_its_signs(reader: Reader) -> None:
    answer = reader.alone(reader.documents.sources[1])
    assert 0 <= answer.support <= 1
    assert -1 < answer.evidence.explained < 1
    assert answer.evidence.coverage > 0
