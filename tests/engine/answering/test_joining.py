"""Quick join: keys turned to new positions are those that reading there gives, as far as a part's tokens know no others; what is made
is kept, and found by the next question."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from engine import settings
from engine.answering.joining import ANEW, Kept
from engine.answering.sources import Chains, Source, asked_documents
from engine.attention.exact import Exact
from engine.attention.in_memory import InMemory, moved
from engine.attention.sequence import KV, Rows, Tail
from engine.attention.sequence import Sequence as Read
from engine.library import room
from engine.library.sidecars import BUILDERS, QUICK_JOIN, SKETCH, SidecarRow
from engine.reading.memory import Chain
from engine.shelf import Call, Shelf
from engine.store.sidecar import SidecarHeader
from tests.engine.books import add, ask, book


def read_at(shelf: Shelf, ids: list[int], position: int) -> InMemory:
    """KV of the first layer of tokens read at a position; behind nothing, which that layer's keys don't depend on."""
    model = shelf.model()[0]
    zeros = Tail(model.config, torch.bfloat16, position)
    tail = Tail(model.config, torch.bfloat16, len(ids))
    rows = Rows([(Read([InMemory(zeros.kv)], tail), len(ids))])
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


# ---- parts of a book behind one another ----


@dataclass
class Joining:
    """A question's chains over a book of three parts."""

    shelf: Shelf
    chains: Chains
    sources: Sequence[Source]

    @property
    def parts(self) -> list[Chain]:
        return [self.chains.of(source) for source in self.sources]

    def join(self, *numbers: int) -> tuple[tuple[KV, ...], int]:
        """Join the parts of these numbers and keep what was made; gives the chain and how many tokens were computed."""
        before = self.chains.document_tokens_prefilled
        joined, made = self.chains.quickly_joined([self.sources[number] for number in numbers])
        self.chains.keep(made)
        return joined, self.chains.document_tokens_prefilled - before

    @property
    def kept(self) -> list[SidecarRow]:
        return [row for row in self.shelf.library.sidecars.all() if row.kind == QUICK_JOIN]

    def without_sketches(self) -> Joining:
        """So that joins are all that is made of segments."""
        for row in self.shelf.library.sidecars.all():
            if row.kind == SKETCH:
                self.shelf.library.sidecars.drop(row.digest)
        return self


@pytest.fixture
def joining(tiny_shelf: Shelf, tmp_path: Path) -> Joining:
    model = tiny_shelf.model()[0]
    document = add(tiny_shelf, book(tmp_path, 3))
    asked = asked_documents(tiny_shelf, [document["id"]], False, model.namespace)
    return Joining(tiny_shelf, Chains(tiny_shelf, model, lambda: None), asked.sources).without_sketches()


def same(one: Sequence[KV], other: Sequence[KV], layers: int) -> bool:
    """Whether two chains have the same runs, bit for bit."""
    return [kv.tokens for kv in one] == [kv.tokens for kv in other] and all(
        torch.equal(a.key(layer).view(torch.int16), b.key(layer).view(torch.int16))
        and torch.equal(a.value(layer).view(torch.int16), b.value(layer).view(torch.int16))
        and a.key(layer).stride() == b.key(layer).stride()
        for a, b in zip(one, other, strict=True)
        for layer in range(layers)
    )


def test_the_first_part_is_the_stored_one_and_the_others_follow(joining: Joining) -> None:
    joined, computed = joining.join(0, 1, 2)
    first, preamble = joining.parts[0], joining.chains.preamble
    assert same(joined[: len(first.segments)], first.segments, joining.shelf.model()[0].config.layers)
    assert sum(kv.tokens for kv in joined) == sum(part.length for part in joining.parts) - 2 * preamble.length
    assert computed == 2 * ANEW


def test_the_start_of_a_later_part_is_read_behind_the_first(joining: Joining) -> None:
    joined, _ = joining.join(0, 1)
    model = joining.shelf.model()[0]
    first, second = joining.parts[:2]
    ids = [int(i) for i in second.segments[len(joining.chains.preamble.segments)].ids[:ANEW]]
    tail = Tail(model.config, torch.bfloat16, ANEW)
    model.decoder.forward(torch.tensor(ids), Rows([(Read(first.segments, tail), ANEW)]), Exact(model.config), None)
    assert torch.equal(joined[len(first.segments)].key(1), tail.kv[1, 0])


def test_the_second_time_it_is_found_and_is_the_same_bit_for_bit(joining: Joining) -> None:
    made, _ = joining.join(0, 1, 2)
    found, computed = joining.join(0, 1, 2)
    assert computed == 0
    assert all(isinstance(run, Kept) for run in found[len(joining.parts[0].segments) :])
    assert same(made, found, joining.shelf.model()[0].config.layers)
    assert len(joining.kept) == 2


def test_a_join_that_begins_with_another_computes_only_what_comes_behind(joining: Joining) -> None:
    joining.join(0, 1)
    longer, computed = joining.join(0, 1, 2)
    assert computed == ANEW
    again = [*longer[: len(joining.parts[0].segments)], *joining.join(0, 1, 2)[0][len(joining.parts[0].segments) :]]
    assert same(longer, again, joining.shelf.model()[0].config.layers)


@pytest.mark.parametrize("others", [(1, 0), (0, 2), (2, 1), (0, 2, 1)])
def test_other_parts_or_another_order_are_another_join(joining: Joining, others: tuple[int, ...]) -> None:
    joining.join(0, 1)
    assert joining.join(*others)[1] == ANEW * (len(others) - 1)


def test_it_is_kept_as_made_of_the_segments_of_all_its_parts(joining: Joining) -> None:
    joining.join(0, 1)
    [row] = joining.kept
    preamble, first, second = joining.chains.preamble, *joining.parts[:2]
    chain = [*first.segments, *second.segments[len(preamble.segments) :]]
    assert row.sources == tuple(segment.digest for segment in chain)
    assert (row.kind, row.namespace) == (QUICK_JOIN, joining.shelf.model()[0].namespace)


def test_it_is_no_segment_and_no_exact_join(joining: Joining) -> None:
    before = list(joining.shelf.library.store.digests())
    joining.join(0, 1)
    assert list(joining.shelf.library.store.digests()) == before
    assert joining.shelf.library.joins.all() == []


def test_another_version_of_the_builder_makes_it_again(joining: Joining, monkeypatch: pytest.MonkeyPatch) -> None:
    joining.join(0, 1)
    monkeypatch.setitem(BUILDERS, QUICK_JOIN, BUILDERS[QUICK_JOIN] + 1)
    assert joining.join(0, 1)[1] == ANEW
    assert len(joining.kept) == 2
    joining.shelf.call("gc", {}, Call())
    assert [row.builder for row in joining.kept] == [BUILDERS[QUICK_JOIN]]


def test_a_damaged_one_is_dropped_and_made_again(joining: Joining) -> None:
    whole, _ = joining.join(0, 1)
    path = joining.shelf.library.sidecars.store.path(joining.kept[0].digest)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    again, computed = joining.join(0, 1)
    assert computed == ANEW
    assert same(whole, again, joining.shelf.model()[0].config.layers)
    assert joining.join(0, 1)[1] == 0
    assert joining.shelf.call("doctor", {"deep": True}, Call())["problems"] == []


def test_it_is_made_again_once_a_segment_of_its_parts_was_lost(joining: Joining) -> None:
    joining.join(0, 1)
    joining.shelf.library.store.path(joining.sources[1].part.expected[0]).unlink()
    part = joining.sources[1].part.tokens
    assert joining.join(0, 1)[1] == part + ANEW
    assert len(joining.kept) == 1


# ---- where it can't be kept ----


def test_on_a_full_disk_it_serves_all_the_same(joining: Joining) -> None:
    joining.shelf.library.sidecars.store.floor = 1 << 62
    made, computed = joining.join(0, 1)
    assert (computed, joining.kept, joining.shelf.library.sidecars.store.usage()) == (ANEW, [], 0)
    joining.shelf.library.sidecars.store.floor = 0
    assert same(made, joining.join(0, 1)[0], joining.shelf.model()[0].config.layers)
    assert len(joining.kept) == 1


@pytest.mark.parametrize("fails", ["write", "fsync", "replace"])
def test_a_disk_that_fills_while_it_is_written_fails_no_question(joining: Joining, monkeypatch: pytest.MonkeyPatch, fails: str) -> None:
    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    document = joining.sources[0].row.id
    whole = ask(joining.shelf, document, parts=[1, 2])
    joining.shelf.library.sidecars.drop(joining.kept[0].digest)
    committed = joining.shelf.library.sidecars.store.commit

    def commit(header: SidecarHeader, arrays: Sequence[torch.Tensor]) -> str:
        with monkeypatch.context() as patch:
            patch.setattr(os, fails, full)
            return committed(header, arrays)

    monkeypatch.setattr(joining.shelf.library.sidecars.store, "commit", commit)
    again = ask(joining.shelf, document, parts=[1, 2])
    assert (again["token_ids"], again["document_tokens_prefilled"]) == (whole["token_ids"], ANEW)
    assert (joining.kept, joining.shelf.library.sidecars.store.usage()) == ([], 0)


def limit(shelf: Shelf, more: int) -> None:
    """Let everything remembered take so many bytes more than it does without quick joins."""
    settings.change(shelf.home, {"limit_bytes": room.used(shelf.library) - shelf.library.sidecars.bytes() + more})


def test_it_is_not_kept_where_the_limit_has_no_room_for_it(joining: Joining) -> None:
    joining.join(0, 1)
    size = joining.kept[0].bytes
    limit(joining.shelf, size - 1)
    joining.join(0, 2)
    assert len(joining.kept) == 1
    assert joining.join(0, 1)[1] == 0


def test_room_for_it_is_made_by_the_one_unused_for_longest_alone(joining: Joining, tmp_path: Path) -> None:
    rows = [add(joining.shelf, book(tmp_path, 1, f"{n}.txt", first=n)) for n in (5, 6)]
    ask(joining.shelf, *(row["id"] for row in rows))
    joining.without_sketches()
    joining.join(0, 1)
    joining.join(1, 0)
    first, second = joining.kept
    limit(joining.shelf, first.bytes + second.bytes)
    joining.join(0, 1)
    joining.join(0, 2)
    assert first.digest in [row.digest for row in joining.kept]
    assert second.digest not in [row.digest for row in joining.kept]
    assert len(joining.shelf.library.joins.all()) == 1
    assert room.used(joining.shelf.library) <= settings.load(joining.shelf.home).limit_bytes  # type: ignore[operator]


def test_what_reads_a_document_may_take_its_room(joining: Joining, tmp_path: Path) -> None:
    joining.join(0, 1)
    [whole] = joining.shelf.library.parts.progress()
    size = (whole.bytes - whole.sidecar_bytes) // 3
    settings.change(joining.shelf.home, {"limit_bytes": room.used(joining.shelf.library) + size // 2})
    assert add(joining.shelf, book(tmp_path, 1, "more.txt", first=8))["state"] == "ready"
    assert joining.kept == []
