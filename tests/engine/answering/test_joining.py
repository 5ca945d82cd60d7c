"""Quick join: keys turned to new positions are those that reading there gives, as far as a part's tokens know no others."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine.answering.joining import ANEW, moved, quick_join
from engine.answering.sources import Chains, asked_documents
from engine.attention.exact import Exact
from engine.attention.sequence import Rows, Sequence, Tail
from engine.reading.memory import Chain, InMemory
from engine.shelf import Shelf
from tests.engine.books import add, book


def read_at(shelf: Shelf, ids: list[int], position: int) -> InMemory:
    """KV of the first layer of tokens read at a position; behind nothing, which that layer's keys don't depend on."""
    model = shelf.model()[0]
    zeros = Tail(model.config, torch.bfloat16, position)
    tail = Tail(model.config, torch.bfloat16, len(ids))
    rows = Rows([(Sequence([InMemory(zeros.kv)], tail), len(ids))])
    model.decoder.forward(torch.tensor(ids), rows, Exact(model.config), None)
    return InMemory(tail.kv)


def test_turned_keys_are_those_read_at_the_new_position(tiny_shelf: Shelf) -> None:
    config = tiny_shelf.model()[0].config
    here, there = read_at(tiny_shelf, [5, 9, 70], 16), read_at(tiny_shelf, [5, 9, 70], 1016)
    turned = moved(config, here, 1000)
    assert torch.allclose(turned.key(0).float(), there.key(0).float(), atol=0.02 * there.key(0).abs().max().item())
    assert torch.equal(turned.value(0), here.value(0))


def test_a_move_by_nothing_changes_no_bit(tiny_shelf: Shelf) -> None:
    here = read_at(tiny_shelf, [5, 9, 70], 16)
    assert torch.equal(moved(tiny_shelf.model()[0].config, here, 0).kv, here.kv)


def test_skipped_tokens_are_left_out(tiny_shelf: Shelf) -> None:
    here = read_at(tiny_shelf, [5, 9, 70], 16)
    assert torch.equal(moved(tiny_shelf.model()[0].config, here, 0, skip=2).kv, here.kv[:, :, :, 2:])


@pytest.fixture
def chains(tiny_shelf: Shelf, tmp_path: Path) -> tuple[Chain, list[Chain]]:
    """The preamble and the chains of a book of three chapters."""
    model = tiny_shelf.model()[0]
    document = add(tiny_shelf, book(tmp_path, 3))
    opened = Chains(tiny_shelf, model, lambda: None)
    asked = asked_documents(tiny_shelf, [document["id"]], False, model.namespace)
    return opened.preamble, [opened.of(source) for source in asked.sources]


def test_the_first_part_is_the_stored_one_and_the_others_follow(tiny_shelf: Shelf, chains: tuple[Chain, list[Chain]]) -> None:
    preamble, parts = chains
    joined, computed = quick_join(tiny_shelf.model()[0], preamble, parts, lambda: None)
    assert joined[: len(parts[0].segments)] == parts[0].segments
    assert sum(kv.tokens for kv in joined) == sum(part.length for part in parts) - 2 * preamble.length
    assert computed == 2 * ANEW


def test_the_start_of_a_later_part_is_read_behind_the_first(tiny_shelf: Shelf, chains: tuple[Chain, list[Chain]]) -> None:
    preamble, parts = chains
    model = tiny_shelf.model()[0]
    joined, _ = quick_join(model, preamble, parts[:2], lambda: None)
    ids = [int(i) for i in parts[1].segments[len(preamble.segments)].ids[:ANEW]]
    tail = Tail(model.config, torch.bfloat16, ANEW)
    model.decoder.forward(torch.tensor(ids), Rows([(Sequence(parts[0].segments, tail), ANEW)]), Exact(tiny_shelf.model()[0].config), None)
    assert torch.equal(joined[len(parts[0].segments)].key(1), tail.kv[1, 0])
