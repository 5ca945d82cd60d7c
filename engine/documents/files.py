"""One file's bytes, checked before they are believed: is it a file, may it be read, is it text, is it small enough.

A file that isn't text is told by its first 64 KB, so that a huge one is refused at once.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePath

from blake3 import blake3

from engine.documents import encodings
from engine.errors import LongshelfError, Stopped

HEAD = 64 * 1024
FILE_LIMIT = 64 * 1024 * 1024
"""Bytes of the largest text file that is read."""

_CHUNK = 4 * 1024 * 1024
_CONTROL = re.compile(rb"[\x00-\x07\x0e-\x19\x1c-\x1f\x7f]")  # not tab, line ends, backspace, escape, DOS end of file
_READS = "this version reads plain text, Markdown and source code"
_SAVE_AS_TEXT = "Save or export it as plain text, and add that."
_FORMATS = {
    ".pdf": "a PDF",
    ".epub": "an EPUB book",
    ".mobi": "a Kindle book",
    ".azw": "a Kindle book",
    ".azw3": "a Kindle book",
    ".djvu": "a DjVu document",
    ".docx": "a Word document",
    ".doc": "a Word document",
    ".odt": "an OpenDocument text",
    ".ods": "an OpenDocument spreadsheet",
    ".odp": "an OpenDocument presentation",
    ".rtf": "a Rich Text document",
    ".pptx": "a PowerPoint presentation",
    ".ppt": "a PowerPoint presentation",
    ".xlsx": "an Excel workbook",
    ".xls": "an Excel workbook",
    ".hwp": "a Hangul document",
    ".hwpx": "a Hangul document",
    ".pages": "a Pages document",
    ".key": "a Keynote presentation",
    ".numbers": "a Numbers spreadsheet",
}


@dataclass(frozen=True)
class TextFile:
    """The text of one file (LF line ends, no byte-order mark, no NUL), its encoding, and the blake3 of its bytes."""

    text: str
    encoding: str
    confident: bool
    digest: str


def shown(path: str | PurePath) -> str:
    """A path as it may stand in text, JSON and one line of a message: bytes that are no UTF-8, and control characters, escaped."""
    name = os.fsencode(os.fspath(path)).decode("utf-8", "backslashreplace")
    return re.sub("[\0-\x1f\x7f\x85\u2028\u2029]", lambda match: match[0].encode("unicode_escape").decode("ascii"), name)


def read_text(
    path: Path,
    name: str,
    encoding: str | None = None,
    fallback: str | None = None,
    limit: int = FILE_LIMIT,
    stop: Callable[[], bool] = lambda: False,
) -> TextFile:
    """Read one file. `name` is for messages; `encoding` and `fallback` as for `encodings.decode`.

    Raises LongshelfError: "not_found", "unreadable", "no_text" (empty), "unsupported" (a format with a name, such as PDF; a pipe or
    device), "binary", "too_large", "undecodable", "usage" (no such encoding); Stopped.
    """
    data = _read(path, name, encoding, limit, stop)
    decoded = encodings.decode(data, name, encoding, fallback)
    text = decoded.text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")
    if not text.strip():
        raise LongshelfError("no_text", f"{name} holds no text, only blanks.", "")
    return TextFile(text, decoded.encoding, decoded.confident, blake3(data).hexdigest())


def system_error(error: OSError, name: str) -> LongshelfError:
    """What the operating system refused, in our words."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return LongshelfError("not_found", f"{name} does not exist.", "Check the path.")
    if isinstance(error, PermissionError):
        hint = "Change its permissions, or copy it to a folder of yours."
        return LongshelfError("unreadable", f"{name} can't be read: permission denied.", hint)
    return LongshelfError("unreadable", f"{name} can't be read: {error.strerror or error}.", "Check the disk and the path.")


def _read(path: Path, name: str, encoding: str | None, limit: int, stop: Callable[[], bool]) -> bytes:
    try:
        # Not blocking: opening a pipe that nobody writes to would otherwise wait for ever.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise LongshelfError("unsupported", f"{name} is not a file but a pipe, a socket or a device.", "Add a file or a folder.")
            head = file.read(HEAD)
            check_head(head, name, path.suffix, encoding)
            if status.st_size > limit:
                raise _too_large(name, limit)
            pieces = [head]
            size = len(head)
            while piece := file.read(_CHUNK):
                if stop():
                    raise Stopped
                pieces.append(piece)
                size += len(piece)
                if size > limit:  # it grew, or its size was not known before
                    raise _too_large(name, limit)
    except OSError as error:
        raise system_error(error, name) from error
    return b"".join(pieces)


def check_head(head: bytes, name: str, suffix: str, encoding: str | None = None) -> None:
    """Refuse what isn't text by its first bytes. Raises LongshelfError "no_text", "unsupported" or "binary"."""
    if not head:
        raise LongshelfError("no_text", f"{name} is empty.", "")
    if head.startswith(b"%PDF-"):
        raise _unsupported(name, _FORMATS[".pdf"])
    if head.startswith(b"{\\rtf"):
        raise _unsupported(name, _FORMATS[".rtf"])
    if encodings.is_wide(encoding) if encoding else encodings.looks_wide(head):
        return
    if len(_CONTROL.findall(head)) > max(1, len(head) // 200):
        if kind := _FORMATS.get(suffix.lower()):
            raise _unsupported(name, kind)
        raise LongshelfError("binary", f"{name} is not text: {_READS}.", "Programs, pictures, sound and archives can't be read.")


def _unsupported(name: str, kind: str) -> LongshelfError:
    return LongshelfError("unsupported", f"{name} is {kind}; {_READS}.", _SAVE_AS_TEXT)


def _too_large(name: str, limit: int) -> LongshelfError:
    message = f"{name} is larger than {limit // 2**20} MB, the most that is read of one file."
    return LongshelfError("too_large", message, "Split it, and add the pieces.")
