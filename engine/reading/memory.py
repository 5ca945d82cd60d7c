"""From token ids to stored KV: the chain of a part, segment by segment.

A link's tokens are read on a grid of 512 counted from the start of the link, and kept in segments of 1024, so that a run that was
stopped and goes on computes the very same calls as one that was not. What is already kept is opened, not computed. Everything here
runs on the model thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from engine.attention.in_memory import InMemory
from engine.attention.sequence import KV, Rows, Tail
from engine.attention.sequence import Sequence as Read
from engine.errors import LongshelfError
from engine.library.library import Library
from engine.library.parts import Part
from engine.model.decoder import CHUNK
from engine.model.loaded import LoadedModel
from engine.model.loss import Loss, looked_at, of_rows
from engine.store.segment import Segment
from engine.store.store import Store

SEGMENT = 1024
LOST = ("segment_damaged", "segment_missing")


@dataclass(frozen=True)
class Chain:
    """What the model has read before the question. tip: digest of the last segment, "" for an empty chain."""

    segments: tuple[Segment, ...] = ()
    tip: str = ""
    length: int = 0

    def then(self, segment: Segment) -> Chain:
        return Chain((*self.segments, segment), segment.digest, self.length + segment.tokens)


@dataclass
class Watcher:
    """Who is told while tokens are read. before_layer may raise Stopped; what is kept by then stays."""

    before_layer: Callable[[], None] = lambda: None
    chunk_read: Callable[[int], None] = lambda tokens: None
    segment_kept: Callable[[bool], None] = lambda computed: None


def segment_ids(ids: Sequence[int]) -> list[list[int]]:
    """A link's ids, cut into segments."""
    return [list(ids[start : start + SEGMENT]) for start in range(0, len(ids), SEGMENT)]


def planned_digests(model: LoadedModel, parent: str, start: int, ids: Sequence[int]) -> tuple[str, ...]:
    """Digests of the segments that a link will have behind a chain of `start` tokens that ends in `parent`."""
    digests: list[str] = []
    for piece in segment_ids(ids):
        parent = model.segment_header(parent, start, len(piece)).digest(piece)
        start += len(piece)
        digests.append(parent)
    return tuple(digests)


def preamble_chain(model: LoadedModel, library: Library) -> Chain:
    """The chain that stands before every part: the model's preamble, read once."""
    ids = list(model.card.preamble.ids)
    header = model.segment_header("", 0, len(ids))
    digest = header.digest(ids)
    try:
        segment = library.store.open(digest, ids)
        segment.touch_all()
    except LongshelfError as error:
        if error.kind not in LOST:
            raise
        kv, _ = _prefill(model, (), ids, Watcher())
        library.memory.remember_shared(header, ids, kv, 0)
        segment = library.store.open(digest, ids)
    else:
        library.memory.record_shared(digest, header, 0)
    return Chain().then(segment)


def remember_part(model: LoadedModel, library: Library, part: Part, ids: Sequence[int], watcher: Watcher) -> Part:
    """Keep what is missing of a part; ids: all of its tokens. Gives the part, ready.

    Raises LongshelfError("disk_full", …) from the store, and whatever watcher.before_layer raises.
    """
    chain, pieces = preamble_chain(model, library), segment_ids(ids)
    done = library.parts.segments(part.id)
    chain = verified_chain(library.store, chain, done)
    while True:
        part = library.memory.adopt(part.id)  # also what stands behind a lost segment that has just been computed again
        found = library.parts.segments(part.id)[len(done) :]
        chain = verified_chain(library.store, chain, found)
        for _ in found:
            watcher.segment_kept(False)
        done += found
        if len(done) == len(pieces):
            return part
        piece = pieces[len(done)]
        header = model.segment_header(chain.tip, chain.length, len(piece))
        kv, loss = _prefill(model, chain.segments, piece, watcher)
        library.memory.remember(part.id, header, piece, kv, 0)
        library.losses.record(header.digest(piece), loss.nats, loss.count, loss.letters)
        watcher.segment_kept(True)
        chain = chain.then(library.store.open(header.digest(piece), piece, header.parent))
        done.append(chain.tip)


def remember_join(
    model: LoadedModel, library: Library, join_id: int, chain: Chain, links: Sequence[Sequence[int]], watcher: Watcher
) -> Chain:
    """Read further links behind the chain of a join's first part, each on its own grid; gives the whole chain.

    Segments of the join that are kept are opened; the rest is computed and kept.
    """
    known = list(library.joins.get(join_id).segments)
    for link in links:
        for piece in segment_ids(link):
            header = model.segment_header(chain.tip, chain.length, len(piece))
            digest = header.digest(piece)
            if known[:1] == [digest]:
                known.pop(0)
                chain = verified_chain(library.store, chain, [digest])
                continue
            kv, _ = _prefill(model, chain.segments, piece, watcher)
            library.memory.remember_join(join_id, header, piece, kv, 0)
            watcher.segment_kept(True)
            chain = chain.then(library.store.open(digest, piece, header.parent))
    return chain


def verified_chain(store: Store, chain: Chain, digests: Sequence[str]) -> Chain:
    """The chain continued with stored segments, every byte of them checked (once a process).

    Raises LostSegment for one that is damaged or missing.
    """
    for digest in digests:
        try:
            segment = store.open(digest, expect_parent=chain.tip)
            segment.will_need()
            segment.touch_all()
        except LongshelfError as error:
            if error.kind in LOST:
                raise LostSegment(digest, error) from error
            raise
        chain = chain.then(segment)
    return chain


def compute_segments(model: LoadedModel, chain: Chain, ids: Sequence[int], watcher: Watcher) -> list[torch.Tensor]:
    """KV of a link's segments behind a chain, kept nowhere but here: what storing is compared with."""
    computed: list[InMemory] = []
    for piece in segment_ids(ids):
        behind: list[KV] = [*chain.segments, *computed]
        computed.append(InMemory(_prefill(model, behind, piece, watcher)[0]))
    return [segment.kv for segment in computed]


class LostSegment(LongshelfError):
    """A segment that can't be used, by digest."""

    def __init__(self, digest: str, error: LongshelfError) -> None:
        super().__init__(error.kind, error.message, error.hint)
        self.digest = digest


def _prefill(model: LoadedModel, behind: Sequence[KV], ids: list[int], watcher: Watcher) -> tuple[torch.Tensor, Loss]:
    """KV [layers, 2, Hkv, len(ids), D] of one segment, and how hard its tokens were to foresee."""
    loss = Loss()
    tail = Tail(model.config, model.decoder.dtype, len(ids))
    sequence, attention = Read(behind, tail), model.exact()
    for start in range(0, len(ids), CHUNK):
        chunk = ids[start : start + CHUNK]
        rows = Rows([(sequence, len(chunk))])
        wanted = looked_at(len(chunk))
        logits = model.decoder.forward(torch.tensor(chunk), rows, attention, wanted if len(wanted) else None, watcher.before_layer)
        loss += of_rows(logits, chunk, wanted, model.tokenizer) if len(wanted) else Loss()
        rows.advance()
        watcher.chunk_read(len(chunk))
    return tail.kv, loss
