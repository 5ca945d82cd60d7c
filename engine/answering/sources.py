"""What a question is read from: the documents asked, their finished parts, and the chains behind which it is put.

A chain is opened in place and every byte of it checked before its first use. A piece that turns out lost is taken out and computed
again from the kept text. Beside joins, that is the only way in which a question makes the model read a document.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.answering.joining import Link, kept_runs, link_recipe, make_link
from engine.attention.sequence import KV
from engine.documents.document import Document
from engine.errors import LongshelfError
from engine.library.counters import TOKENS_PREFILLED
from engine.library.documents import DocumentRow
from engine.library.parts import Part
from engine.model.loaded import LoadedModel
from engine.reading import room
from engine.reading.memory import Chain, LostSegment, Watcher, preamble_chain, remember_join, remember_part, verified_chain
from engine.reading.rows import kv_bytes, stored_document

if TYPE_CHECKING:
    from engine.shelf import Shelf

log = logging.getLogger("longshelf")

PROPOSED = 20
"""Documents of a whole library that are looked at closely; full text picks them."""


@dataclass(frozen=True)
class Source:
    """A finished part of a document that is asked."""

    row: DocumentRow
    part: Part

    @property
    def number(self) -> int:
        """The part's number for people, from 1."""
        return self.part.ordinal + 1


@dataclass(frozen=True)
class Asked:
    """The documents of a question, their finished parts, and how many parts they have in all."""

    rows: tuple[DocumentRow, ...]
    sources: tuple[Source, ...]
    parts_total: int


def of_library(shelf: Shelf, question: str) -> list[DocumentRow]:
    """All documents; where they are many, the ones that full text proposes for the question, else the latest read."""
    from engine.model.identity import namespace

    library = shelf.library
    if library.documents.count() <= PROPOSED:
        return library.documents.all()
    own = namespace(shelf.models.open())
    proposed = library.search.propose(question, own, PROPOSED) or library.parts.documents_with(own, PROPOSED)
    return [library.documents.get(document_id) for document_id in proposed]


def asked_documents(shelf: Shelf, names: Sequence[str], everything: bool, namespace: str) -> Asked:
    """The documents named, with their finished parts. everything: they stand for the whole library, whose parts are counted.

    Raises LongshelfError("not_found"), or ("not_ready") where nothing asked has a finished part.
    """
    library = shelf.library
    rows = [library.documents.find(name) for name in dict.fromkeys(names)]
    if not rows:
        raise LongshelfError("usage", "No document was named to ask.", "Name one, or use --all; `longshelf list` shows what is there.")
    parts = {row.id: library.parts.of(row.id, namespace) for row in rows}
    sources = [Source(row, part) for row in rows for part in parts[row.id] if part.state in ("ready", "damaged")]
    if not sources:
        raise _not_ready(rows[0], bool(library.parts.of(rows[0].id)) and not parts[rows[0].id])
    return Asked(tuple(rows), tuple(sources), library.parts.count(namespace) if everything else sum(map(len, parts.values())))


def _not_ready(row: DocumentRow, another_model: bool) -> LongshelfError:
    if another_model:
        message, hint = f"“{row.title}” was read by another model.", "Add it again to read it with this one, or go back to that model."
    elif row.state in ("queued", "reading", "remembering"):
        message, hint = f"“{row.title}” has no finished part yet.", "Ask again in a moment: the first part is enough."
    else:
        reason = f" ({row.reason})" if row.reason else ""
        message, hint = (
            f"“{row.title}” has not been read: {row.state.replace('_', ' ')}{reason}.",
            f"`longshelf add {row.id}` reads it.",
        )
    return LongshelfError("not_ready", message, hint)


class Chains:
    """Opens chains of parts for one question. Everything here runs on the model thread."""

    def __init__(self, shelf: Shelf, model: LoadedModel, before_layer: Callable[[], None]) -> None:
        self._shelf = shelf
        self._model = model
        self._watcher = Watcher(before_layer, self.count)
        self.document_tokens_prefilled = 0
        self.preamble = preamble_chain(model, shelf.library)

    def of(self, source: Source) -> Chain:
        """Preamble and part. A lost segment is computed again first."""
        library = self._shelf.library
        for _ in range(len(source.part.expected) + 1):
            try:
                digests = library.parts.segments(source.part.id)
                if len(digests) < len(source.part.expected):
                    self._read_again(source)
                    digests = library.parts.segments(source.part.id)
                return verified_chain(library.store, self.preamble, digests)
            except LostSegment as lost:
                library.memory.lose(lost.digest)
        raise LongshelfError("segment_damaged", f"A part of “{source.row.title}” can't be kept whole on this disk.", "Check the disk.")

    def will_need(self, sources: Sequence[Source]) -> None:
        """Ask the system to start reading the files of these parts, all at once, before they are opened one by one."""
        for source in sources:
            for digest in self._shelf.library.parts.segments(source.part.id):
                with contextlib.suppress(LongshelfError):  # what is wrong with it is said when it is opened
                    self._shelf.library.store.open(digest).will_need()

    def joined(self, sources: Sequence[Source], say: Callable[[int], None]) -> Chain:
        """One chain over several parts in this order: what is not stored of it yet is read now and stored.

        say(tokens): how much that is, before it starts.
        """
        library, model = self._shelf.library, self._model
        for _ in range(2):  # a lost segment takes its whole join with it, which is then read again
            try:
                return self._joined(sources, say)
            except LostSegment as lost:
                library.memory.lose(lost.digest)
                if (join := library.joins.find(model.namespace, [source.part.id for source in sources])) is not None:
                    library.memory.remove_join(join.id)
        raise LongshelfError("segment_damaged", "What these documents are together can't be kept whole on this disk.", "Check the disk.")

    def _joined(self, sources: Sequence[Source], say: Callable[[int], None]) -> Chain:
        library, model = self._shelf.library, self._model
        chain = self.of(sources[0])
        behind = [segment_tokens(self.of(source), self.preamble) for source in sources[1:]]
        join = library.joins.add(model.namespace, model.name, [source.part.id for source in sources], sum(map(len, behind)))
        if not join.ready:
            say(join.tokens - join.tokens_done)
            room.make(self._shelf, kv_bytes(model.installed, join.tokens - join.tokens_done), keep=join.id)
        chain = remember_join(model, library, join.id, chain, behind, self._watcher)
        library.joins.touch(join.id)
        return chain

    def quickly_joined(self, sources: Sequence[Source]) -> tuple[tuple[KV, ...], list[Link]]:
        """The parts put behind one another in this order without reading them again; and what was made for that, which `keep` keeps.

        What was kept before is mapped from the disk.
        """
        chains = [self.of(source) for source in sources]
        joined: list[KV] = list(chains[0].segments)
        made: list[Link] = []
        for last, chain in enumerate(chains[1:], 1):
            recipe = link_recipe(self._model, self.preamble, chains[: last + 1])
            if (kept := self._shelf.library.sidecars.find(recipe.digest)) is not None:
                joined += kept_runs(kept)
                continue
            made.append(make_link(self._model, self.preamble, recipe, chain, joined, self._watcher.before_layer))
            self.count(made[-1].computed)
            joined += made[-1].runs
        return tuple(joined), made

    def keep(self, links: Sequence[Link]) -> None:
        """Keep what was made for a quick join, where there is room for it. Where it can't be kept it is made again by the next question."""
        for link in links:
            header = link.header(self._model)
            try:
                if room.spare(self._shelf, header.size):
                    self._shelf.library.sidecars.keep(header, [run.kv for run in link.runs])
            except LongshelfError as error:
                log.info("a quick join isn't kept: %s", error.message)

    def _read_again(self, source: Source) -> None:
        document = stored_document(self._shelf, source.row)
        part = source.part
        ids = self._model.tokenizer.encode_ids(document.text)[part.first_token : part.first_token + part.tokens]
        remember_part(self._model, self._shelf.library, part, ids, self._watcher)

    def count(self, tokens: int) -> None:
        """So many tokens of documents were computed for this question."""
        self.document_tokens_prefilled += tokens
        self._shelf.library.counters.increment(TOKENS_PREFILLED, tokens)


def segment_tokens(chain: Chain, preamble: Chain) -> list[int]:
    """Token ids of a chain behind its preamble."""
    return [int(i) for segment in chain.segments[len(preamble.segments) :] for i in segment.ids]


def part_offsets(model: LoadedModel, document: Document, part: Part, ids: Sequence[int]) -> list[tuple[int, int]]:
    """For each token of a part the code points of the document that it covers."""
    alone = model.tokenizer.encode(document.text[part.start : part.end])
    if alone.ids == list(ids):
        return [(part.start + start, part.start + end) for start, end in alone.offsets]
    whole = model.tokenizer.encode(document.text)
    return whole.offsets[part.first_token : part.first_token + part.tokens]


def places(document: Document, part: Part) -> dict[str, Any]:
    """Where a part lies, for people: {first, last} section or page labels."""
    first, last = document.place(part.start), document.place(max(part.start, part.end - 1))
    return {"first": first.section or first.page_label, "last": last.section or last.page_label}
