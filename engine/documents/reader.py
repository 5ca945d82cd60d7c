"""From a path to a Document: the one door to all readers."""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from collections.abc import Callable
from pathlib import Path

from engine.documents import code, formats, markdown, text
from engine.documents.document import Document, Span, sort_spans
from engine.documents.files import read_text, shown, system_error
from engine.documents.folder import read_folder
from engine.errors import LongshelfError, Stopped

_GUTENBERG_TITLE = re.compile(r"^Title:[ \t]*(\S.{0,150})$", re.MULTILINE)


def read(
    path: Path,
    encoding: str | None = None,
    stop: Callable[[], bool] = lambda: False,
    progress: Callable[[str, int, int], None] = lambda name, done, total: None,
) -> Document:
    """Read a file or a folder: its text, spans, and what was left out. A link given here is followed; links inside a folder are not.

    encoding: a codec name that overrides the guess (in a folder: for files that are neither UTF-8 nor marked). progress(name, done,
    total) counts files of a folder, or one file. stop() is asked often.
    Raises LongshelfError: "not_found", "unreadable", "no_text", "binary", "unsupported", "special", "too_large", "undecodable",
    "usage" (there is no such encoding); Stopped.
    """
    path = Path(os.path.abspath(os.path.expanduser(path)))
    name = unicodedata.normalize("NFC", shown(path.name or path))
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:
        raise _no_such(path, name, error) from error
    if stat.S_ISDIR(mode):
        return read_folder(path, encoding, stop, progress)
    progress(name, 0, 1)
    file = read_text(path, name, encoding, stop=stop)
    kind = formats.format_of(name, file.text)
    spans = _spans(kind, file.text, name)
    if stop():
        raise Stopped
    progress(name, 1, 1)
    return Document(
        path=shown(path),
        title=_title(kind, file.text, name, spans),
        format=kind,
        encoding=file.encoding,
        encoding_confident=file.confident,
        text=file.text,
        spans=sort_spans(spans),
        skipped=(),
        source_digest=file.digest,
    )


def _spans(kind: str, content: str, name: str) -> list[Span]:
    if kind == formats.MARKDOWN:
        return markdown.read_spans(content)
    return code.read_spans(content, name) if kind == formats.CODE else text.read_spans(content)


def _title(kind: str, content: str, name: str, spans: list[Span]) -> str:
    """A title that the text itself states, else the file's name; of source code the whole name."""
    stated: str | None = None
    if kind == formats.MARKDOWN:
        stated = markdown.title(spans)
    elif kind == formats.TEXT and "Project Gutenberg" in content[:1000] and (match := _GUTENBERG_TITLE.search(content[:3000])):
        stated = match[1].strip()
    return stated or (name if kind == formats.CODE else Path(name).stem)


def _no_such(path: Path, name: str, error: OSError | ValueError) -> LongshelfError:
    if isinstance(error, ValueError):  # a NUL in the name
        return LongshelfError("not_found", f"{name} does not exist.", "Check the path.")
    if isinstance(error, FileNotFoundError) and path.is_symlink():
        return LongshelfError("not_found", f"{name} is a link that leads nowhere.", "Add the file or folder itself.")
    return system_error(error, name)
