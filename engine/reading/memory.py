"""From token ids to stored KV: the chain of a part, link by link, segment by segment.

A link's tokens are read on a grid of 512 counted from the start of the link, and committed in segments of 1024, so that a run that
was stopped and goes on computes the very same calls as one that was not. What the store already has is opened, not computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from engine.attention.exact import Exact
from engine.attention.sequence import Rows, Tail
from engine.attention.sequence import Sequence as Read
from engine.errors import LongshelfError
from engine.model.decoder import CHUNK
from engine.model.loaded import LoadedModel
from engine.store.format import SegmentHeader
from engine.store.segment import Segment
from engine.store.store import Store

SEGMENT = 1024


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
    """Who is told while a link is read. before_layer may raise Stopped. Called on the model thread."""

    before_layer: Callable[[], None] = lambda: None
    chunk_read: Callable[[int], None] = lambda tokens: None
    committed: Callable[[Chain, int, bool], None] = lambda chain, tokens, computed: None


def read_link(model: LoadedModel, store: Store, chain: Chain, ids: Sequence[int], watcher: Watcher | None = None) -> Chain:
    """The chain that continues `chain` with the link `ids`; every segment of it is committed. Runs on the model thread.

    Raises LongshelfError("disk_full", …) from the store and whatever watcher.before_layer raises; segments committed until then
    stay and are found the next time.
    """
    watcher = watcher or Watcher()
    for start in range(0, len(ids), SEGMENT):
        piece = list(ids[start : start + SEGMENT])
        header = model.segment_header(chain.tip, chain.length, len(piece))
        found = stored(store, header, piece)
        if found is None:
            kv = _prefill(model, chain, piece, watcher)
            found = store.open(store.commit(header, piece, kv), piece, chain.tip)
            computed = True
        else:
            computed = False
        chain = chain.then(found)
        watcher.committed(chain, len(piece), computed)
    return chain


def stored(store: Store, header: SegmentHeader, ids: Sequence[int]) -> Segment | None:
    """The segment, if the store has it whole. A damaged one counts as missing: it is computed again and replaced."""
    digest = header.digest(ids)
    if not store.has(digest):
        return None
    try:
        segment = store.open(digest, ids, header.parent)
        segment.touch_all()
    except LongshelfError:
        return None
    return segment


def open_chain(store: Store, digests: Sequence[str]) -> Chain:
    """The stored chain of these segments. Raises LongshelfError("segment_damaged") or ("segment_missing")."""
    chain = Chain()
    for digest in digests:
        chain = chain.then(store.open(digest, expect_parent=chain.tip))
    return chain


def _prefill(model: LoadedModel, chain: Chain, ids: list[int], watcher: Watcher) -> torch.Tensor:
    """KV [layers, 2, Hkv, len(ids), D] of one segment."""
    tail = Tail(model.config, model.decoder.dtype, len(ids))
    sequence, attention = Read(chain.segments, tail), Exact()
    for start in range(0, len(ids), CHUNK):
        chunk = ids[start : start + CHUNK]
        rows = Rows([(sequence, len(chunk))])
        model.decoder.forward(torch.tensor(chunk), rows, attention, None, watcher.before_layer)
        rows.advance()
        watcher.chunk_read(len(chunk))
    return tail.kv
