"""A folder as one document: its files in sorted order, each behind a line that names it."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from pathlib import Path

from blake3 import blake3

from engine.documents import code, encodings, formats, markdown, text
from engine.documents.document import FILE_HEADER, Document, Skipped, Span, sort_spans
from engine.documents.files import TextFile, read_text, shown
from engine.documents.skipping import FOLDER_FILE_LIMIT, is_private_key
from engine.documents.walk import Found, walk
from engine.errors import LongshelfError, Stopped

TEXT_LIMIT = 64 * 1024 * 1024
"""Bytes (as UTF-8) of text taken of one folder."""

_REASONS = {"no_text": "empty", "unsupported": "binary", "not_found": "unreadable"}


def read_folder(
    root: Path,
    encoding: str | None = None,
    stop: Callable[[], bool] = lambda: False,
    progress: Callable[[str, int, int], None] = lambda name, done, total: None,
) -> Document:
    """Read a folder. `encoding` is for the files that are neither UTF-8 nor marked; progress(name, files done, files in all).

    Raises LongshelfError "no_text" (nothing to take), "unreadable", "too_large", "usage" (no such encoding), and Stopped.
    """
    name = unicodedata.normalize("NFC", shown(root.name or root))
    if encoding:
        encodings.check_known(encoding)
    files, skipped = walk(root, stop)
    digest = blake3()
    pieces: list[str] = []
    spans: list[Span] = []
    taken: dict[str, str] = {}
    length = size = 0
    confident = True
    for done, file in enumerate(files):
        if stop():
            raise Stopped
        progress(file.name, done, len(files))
        read = _read(file, encoding)
        if isinstance(read, str):
            skipped.append(Skipped(file.name, read))
            continue
        if taken.get(file.name) == read.digest:  # one name in two Unicode forms, the same file
            skipped.append(Skipped(file.name, "duplicate"))
            continue
        taken[file.name] = read.digest
        digest.update(f"{file.name}\0{read.digest}\n".encode())
        size += len(read.text.encode("utf-8"))
        if size > TEXT_LIMIT:
            raise LongshelfError("too_large", f"{name} holds more than {TEXT_LIMIT // 2**20} MB of text.", "Add a folder inside it.")
        confident = confident and read.confident
        header = FILE_HEADER.format(file.name)
        start = length + len(header)
        spans.append(Span("file", file.name, start, start + len(read.text)))
        spans += [Span("section", s.label, start + s.start, start + s.end) for s in sections(read.text, file.name)]
        piece = f"{header}{read.text}{'' if read.text.endswith(chr(10)) else chr(10)}\n"
        pieces.append(piece)
        length += len(piece)
    progress(name, len(files), len(files))
    if not taken:
        raise LongshelfError("no_text", _nothing(name, skipped), "Add a folder with text, Markdown or source code.")
    return Document(
        path=shown(root),
        title=name,
        format=formats.FOLDER,
        encoding=None,
        encoding_confident=confident,
        text="".join(pieces),
        spans=sort_spans(spans),
        skipped=tuple(sorted(skipped, key=lambda each: (each.path, each.reason))),
        source_digest=digest.hexdigest(),
    )


def sections(content: str, name: str) -> list[Span]:
    """Section spans of one file's text, by the reader its name asks for."""
    kind = formats.format_of(name, content)
    if kind == formats.MARKDOWN:
        return markdown.read_spans(content)
    if kind == formats.CODE:
        return code.read_spans(content, name)
    return text.section_spans(content)


def _read(file: Found, encoding: str | None) -> TextFile | str:
    """The file's text, or the reason why it is left out."""
    try:
        read = read_text(file.path, file.name, fallback=encoding, limit=FOLDER_FILE_LIMIT)
    except LongshelfError as error:
        return _REASONS.get(error.kind, error.kind)
    return "secret" if is_private_key(read.text) else read


def _nothing(name: str, skipped: list[Skipped]) -> str:
    reasons = sorted({each.reason for each in skipped})
    if not skipped:
        return f"{name} is empty: there is nothing to read in it."
    return f"There is nothing to read in {name}: {len(skipped)} left out ({', '.join(reasons)})."
