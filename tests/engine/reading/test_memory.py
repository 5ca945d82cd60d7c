"""What is read is kept on disk, and what is kept equals what was read: bit for bit, however often the reading was broken off."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch

from engine.attention.exact import Exact
from engine.attention.in_memory import InMemory
from engine.attention.sequence import KV, Rows, Sequence, Tail
from engine.errors import LongshelfError, Stopped
from engine.home import Home
from engine.library.library import Library
from engine.library.parts import Part, PartPlan
from engine.model.installed import Models
from engine.model.loaded import LoadedModel
from engine.reading.memory import (
    Chain,
    LostSegment,
    Watcher,
    compute_segments,
    planned_digests,
    preamble_chain,
    remember_join,
    remember_part,
    segment_ids,
    verified_chain,
)
from tests.engine.library.shelf import new

LONG = 2300
"""Tokens of a part of three segments, read in chunks of 512, 512 | 512, 512 | 252."""


@pytest.fixture(scope="module")
def model(tiny_models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoadedModel]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    root = tmp_path_factory.mktemp("loaded")
    (root / "models").symlink_to(tiny_models)
    yield LoadedModel(Models(Home(root)).open())
    torch.set_num_threads(threads)


@pytest.fixture
def library(tiny_home: Home) -> Iterator[Library]:
    opened = Library.open(tiny_home)
    yield opened
    opened.close()


def tokens(count: int, seed: int = 0) -> list[int]:
    """Ids of bytes, none of them special."""
    return torch.randint(3, 259, (count,), generator=torch.Generator().manual_seed(seed)).tolist()


def assign(model: LoadedModel, library: Library, *links: list[int]) -> list[Part]:
    """A document whose parts have these token ids."""
    document = library.documents.add(new("x" * sum(map(len, links)))).id
    preamble = model.card.preamble.ids
    tip = planned_digests(model, "", 0, preamble)[-1]
    plans, at = [], 0
    for ids in links:
        plans.append(PartPlan(at, at + len(ids), len(ids), at, "digest", planned_digests(model, tip, len(preamble), ids)))
        at += len(ids)
    return library.parts.assign(document, model.namespace, model.name, plans)


def stored_chain(model: LoadedModel, library: Library, part: Part) -> Chain:
    return verified_chain(library.store, preamble_chain(model, library), library.parts.segments(part.id))


def logits_behind(model: LoadedModel, chain: list[KV]) -> torch.Tensor:
    sequence = Sequence(chain, Tail(model.config, torch.bfloat16))
    return model.decoder.forward(torch.tensor(tokens(12, seed=9)), Rows([(sequence, 12)]), Exact(model.config), slice(None))


@dataclass
class Diary:
    """A watcher that writes down what it is told, and may stop the reading before the n-th layer."""

    stop_at: int | None = None
    layers: int = 0
    chunks: list[int] = field(default_factory=list)
    kept: list[bool] = field(default_factory=list)

    def watcher(self) -> Watcher:
        return Watcher(self._layer, self.chunks.append, self.kept.append)

    def _layer(self) -> None:
        self.layers += 1
        if self.layers == self.stop_at:
            raise Stopped


# ---- what is kept ----


def test_reloaded_logits_are_bit_identical_to_never_having_been_stored(model: LoadedModel, library: Library) -> None:
    ids = tokens(LONG)
    [part] = assign(model, library, ids)
    remember_part(model, library, part, ids, Watcher())
    preamble = InMemory(compute_segments(model, Chain(), model.card.preamble.ids, Watcher())[0])
    behind = Chain((preamble,), "", preamble.tokens)
    never_stored = [preamble, *map(InMemory, compute_segments(model, behind, ids, Watcher()))]
    stored = stored_chain(model, library, part)
    assert torch.equal(logits_behind(model, list(stored.segments)), logits_behind(model, never_stored))


def test_the_digests_of_a_part_are_known_before_it_is_read(model: LoadedModel, library: Library) -> None:
    ids = tokens(LONG)
    [part] = assign(model, library, ids)
    remember_part(model, library, part, ids, Watcher())
    assert library.parts.segments(part.id) == list(part.expected)


def test_a_part_that_is_read_is_ready_and_holds_its_tokens(model: LoadedModel, library: Library) -> None:
    ids = tokens(LONG)
    [part] = assign(model, library, ids)
    assert remember_part(model, library, part, ids, Watcher()).state == "ready"
    chain = stored_chain(model, library, part)
    read = [int(i) for segment in chain.segments for i in segment.ids]
    assert read == [*model.card.preamble.ids, *ids]
    assert chain.length == len(read)


def test_segments_hold_1024_tokens_and_stand_one_behind_the_other(model: LoadedModel, library: Library) -> None:
    ids = tokens(LONG)
    [part] = assign(model, library, ids)
    remember_part(model, library, part, ids, Watcher())
    first, *rest = stored_chain(model, library, part).segments
    start = first.tokens
    assert [(segment.header.start, segment.tokens) for segment in rest] == [(start, 1024), (start + 1024, 1024), (start + 2048, 252)]
    assert [segment.header.parent for segment in rest] == [first.digest, rest[0].digest, rest[1].digest]


def test_a_link_is_read_on_a_grid_of_512_counted_from_its_start(model: LoadedModel, library: Library) -> None:
    ids, diary = tokens(LONG), Diary()
    [part] = assign(model, library, ids)
    remember_part(model, library, part, ids, diary.watcher())
    assert diary.chunks == [512, 512, 512, 512, 252]


def test_ids_are_cut_into_segments_of_1024() -> None:
    assert [len(piece) for piece in segment_ids(range(2049))] == [1024, 1024, 1]
    assert segment_ids([]) == []


def test_what_is_kept_is_not_computed_again(model: LoadedModel, library: Library) -> None:
    ids = tokens(LONG)
    [part] = assign(model, library, ids)
    first, second = Diary(), Diary()
    remember_part(model, library, part, ids, first.watcher())
    remember_part(model, library, library.parts.get(part.id), ids, second.watcher())
    assert first.kept == [True, True, True]
    assert (second.chunks, second.kept) == ([], [])


def test_the_same_tokens_in_another_document_are_found(model: LoadedModel, library: Library) -> None:
    ids = tokens(LONG)
    [part] = assign(model, library, ids)
    remember_part(model, library, part, ids, Watcher())
    [other] = assign(model, library, ids)
    library.parts.cut_back(other.id, 0)
    diary = Diary()
    assert remember_part(model, library, other, ids, diary.watcher()).state == "ready"
    assert (diary.chunks, diary.kept) == ([], [False, False, False])


# ---- stop and resume ----


def files(library: Library) -> dict[str, bytes]:
    return {digest: library.store.path(digest).read_bytes() for digest in library.store.digests()}


@pytest.fixture(scope="module")
def unbroken(model: LoadedModel, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The segment files of a part that was read in one go."""
    library = Library.open(Home(tmp_path_factory.mktemp("unbroken")).open())
    [part] = assign(model, library, tokens(LONG))
    remember_part(model, library, part, tokens(LONG), Watcher())
    library.close()
    return files(library)


@pytest.mark.parametrize("stop_at", [1, 2, 3, 4, 5, 7, 9, 10])
def test_a_reading_stopped_before_any_layer_resumes_to_the_very_same_files(
    model: LoadedModel, library: Library, unbroken: dict[str, bytes], stop_at: int
) -> None:
    """Two layers and five chunks: ten places to stop at."""
    ids = tokens(LONG)
    [part] = assign(model, library, ids)
    broken = Diary(stop_at)
    with pytest.raises(Stopped):
        remember_part(model, library, part, ids, broken.watcher())
    assert remember_part(model, library, part, ids, Watcher()).state == "ready"
    assert files(library) == unbroken


def test_a_reading_stopped_again_and_again_resumes_to_the_very_same_files(
    model: LoadedModel, library: Library, unbroken: dict[str, bytes]
) -> None:
    ids = tokens(LONG)
    [part] = assign(model, library, ids)
    kept = []
    for stop_at in (3, 7, 1, 6, 2):
        with pytest.raises(Stopped):
            remember_part(model, library, part, ids, Diary(stop_at).watcher())
        kept.append(library.parts.get(part.id).tokens_done)
    assert kept == [0, 1024, 1024, 2048, 2048]
    remember_part(model, library, part, ids, Watcher())
    assert files(library) == unbroken


def test_a_resumed_reading_computes_only_what_no_segment_holds(model: LoadedModel, library: Library) -> None:
    ids, rest = tokens(LONG), Diary()
    [part] = assign(model, library, ids)
    with pytest.raises(Stopped):
        remember_part(model, library, part, ids, Diary(stop_at=7).watcher())
    remember_part(model, library, part, ids, rest.watcher())
    assert rest.chunks == [512, 512, 252]


# ---- the preamble ----


def test_the_preamble_is_computed_once(model: LoadedModel, library: Library) -> None:
    preamble_chain(model, library)
    [digest] = library.store.digests()
    written = library.store.path(digest).stat()
    chain = preamble_chain(model, library)
    assert chain.tip == digest
    assert chain.length == len(model.card.preamble.ids)
    assert library.store.path(digest).stat() == written


def test_a_damaged_preamble_is_computed_again(model: LoadedModel, library: Library) -> None:
    path = library.store.path(preamble_chain(model, library).tip)
    good = path.read_bytes()
    flip(path)
    preamble_chain(model, library)
    assert path.read_bytes() == good


# ---- what is lost ----


def flip(path: Path, at: int = 5000) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("loss", ["damaged", "missing"])
def test_a_lost_segment_is_named(model: LoadedModel, library: Library, loss: str) -> None:
    ids = tokens(LONG)
    [part] = assign(model, library, ids)
    remember_part(model, library, part, ids, Watcher())
    digests = library.parts.segments(part.id)
    path = library.store.path(digests[1])
    flip(path) if loss == "damaged" else path.unlink()
    with pytest.raises(LostSegment) as lost:
        verified_chain(library.store, preamble_chain(model, library), digests)
    assert (lost.value.digest, lost.value.kind) == (digests[1], f"segment_{loss}")


def test_a_segment_of_another_chain_is_lost(model: LoadedModel, library: Library) -> None:
    ids = tokens(LONG)
    [part] = assign(model, library, ids)
    remember_part(model, library, part, ids, Watcher())
    with pytest.raises(LostSegment):
        verified_chain(library.store, preamble_chain(model, library), library.parts.segments(part.id)[1:])


def test_other_errors_of_the_store_are_not_taken_for_a_loss(model: LoadedModel, library: Library) -> None:
    library.store.floor = 10**18
    ids = tokens(70)
    [part] = assign(model, library, ids)
    with pytest.raises(LongshelfError) as refused:
        remember_part(model, library, part, ids, Watcher())
    assert refused.value.kind == "disk_full"


# ---- joins ----


def join(model: LoadedModel, library: Library, first: Part, links: list[list[int]], parts: list[Part], watcher: Watcher) -> Chain:
    row = library.joins.add(model.namespace, model.name, [first.id, *(part.id for part in parts)], sum(map(len, links)))
    return remember_join(model, library, row.id, stored_chain(model, library, first), links, watcher)


def test_each_link_of_a_join_is_read_on_its_own_grid(model: LoadedModel, library: Library) -> None:
    links = [tokens(700, 1), tokens(1030, 2), tokens(600, 3)]
    parts, diary = assign(model, library, *links), Diary()
    remember_part(model, library, parts[0], links[0], Watcher())
    chain = join(model, library, parts[0], links[1:], parts[1:], diary.watcher())
    assert diary.chunks == [512, 512, 6, 512, 88]
    assert [segment.tokens for segment in chain.segments[1:]] == [700, 1024, 6, 600]


def test_a_join_equals_reading_its_links_one_behind_the_other(model: LoadedModel, library: Library) -> None:
    links = [tokens(700, 1), tokens(600, 2)]
    parts = assign(model, library, *links)
    remember_part(model, library, parts[0], links[0], Watcher())
    chain = join(model, library, parts[0], links[1:], parts[1:], Watcher())
    [computed] = compute_segments(model, stored_chain(model, library, parts[0]), links[1], Watcher())
    kept = torch.stack([torch.stack([chain.segments[-1].key(layer), chain.segments[-1].value(layer)]) for layer in range(2)])
    assert torch.equal(kept, computed)


def test_a_join_broken_off_goes_on_behind_what_is_kept(model: LoadedModel, library: Library) -> None:
    links = [tokens(70, 1), tokens(2100, 2)]
    parts, rest = assign(model, library, *links), Diary()
    remember_part(model, library, parts[0], links[0], Watcher())
    with pytest.raises(Stopped):
        join(model, library, parts[0], links[1:], parts[1:], Diary(stop_at=7).watcher())
    join(model, library, parts[0], links[1:], parts[1:], rest.watcher())
    assert rest.chunks == [512, 512, 52]
