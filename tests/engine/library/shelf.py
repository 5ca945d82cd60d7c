"""A library with small documents for tests: a preamble, parts of a few segments, random KV. No model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from blake3 import blake3

from engine.home import Home
from engine.library.documents import DocumentRow, NewDocument
from engine.library.library import Library
from engine.library.parts import Part, PartPlan
from engine.store.format import SegmentHeader, segment_digest
from tests.engine.store.pieces import NAMESPACE, header, kv

MODEL = "tiny"
PREAMBLE = [1, 2, 3]
PREAMBLE_DIGEST = segment_digest(NAMESPACE, "", 0, PREAMBLE)
SEGMENT = 8  # tokens of a full segment here


@dataclass(frozen=True)
class Piece:
    """A segment that can be committed."""

    header: SegmentHeader
    ids: list[int]

    @property
    def digest(self) -> str:
        return self.header.digest(self.ids)


def open_library(root: Path) -> Library:
    return Library.open(Home(root).open(), floor=0)


def new(text: str = "Call me Ishmael.", title: str = "Moby-Dick", path: str = "") -> NewDocument:
    return NewDocument(
        title=title,
        path=path or f"/books/{title}.txt",
        format="text",
        encoding="utf-8",
        encoding_confident=True,
        source_digest=blake3(text.encode()).hexdigest(),
        text=text,
        spans=[["section", "Loomings", 0, len(text)]],
        skipped=[],
    )


def pieces(text: str) -> list[Piece]:
    """A text's segments behind the preamble: one token a character."""
    tokens = [ord(character) for character in text]
    parent, start, result = PREAMBLE_DIGEST, len(PREAMBLE), []
    for at in range(0, len(tokens), SEGMENT):
        ids = tokens[at : at + SEGMENT]
        piece = Piece(header(tokens=len(ids), parent=parent, start=start), ids)
        result.append(piece)
        parent, start = piece.digest, start + len(ids)
    return result


def plans(*texts: str) -> list[PartPlan]:
    """One part a text; the document's text is the texts joined."""
    result, at = [], 0
    for text in texts:
        digests = tuple(piece.digest for piece in pieces(text))
        result.append(PartPlan(at, at + len(text), len(text), at, blake3(text.encode()).hexdigest(), digests))
        at += len(text)
    return result


def add(library: Library, *texts: str, title: str = "Moby-Dick") -> tuple[DocumentRow, list[Part]]:
    """A document cut into one part a text, nothing read yet."""
    row = library.documents.add(new("".join(texts), title))
    return row, library.parts.assign(row.id, NAMESPACE, MODEL, plans(*texts))


def remember_preamble(library: Library) -> None:
    piece = Piece(header(tokens=len(PREAMBLE)), PREAMBLE)
    library.memory.remember_shared(piece.header, piece.ids, kv(piece.header), prefilled=len(PREAMBLE))


def remember(library: Library, part: Part, text: str, segments: int | None = None) -> Part:
    """Read a part whose text is `text`, or its first segments only."""
    for piece in pieces(text)[:segments]:
        part = library.memory.remember(part.id, piece.header, piece.ids, kv(piece.header), prefilled=len(piece.ids))
    return part


def add_and_remember(library: Library, *texts: str, title: str = "Moby-Dick") -> DocumentRow:
    """A document all of whose parts are ready."""
    remember_preamble(library)
    row, parts = add(library, *texts, title=title)
    for part, text in zip(parts, texts, strict=True):
        remember(library, part, text)
    return library.documents.set_state(row.id, "ready")


def abandon(folder: Path) -> None:
    """What a process that was killed while writing leaves."""
    (folder / ".x.12345-0123abcd.tmp").write_text("half")


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 0x20
    path.write_bytes(content)
