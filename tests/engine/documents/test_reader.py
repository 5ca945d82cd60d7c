"""One file: what is read, what is refused, and with which word."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.documents import files
from engine.documents.document import Skipped
from engine.documents.reader import read
from engine.errors import LongshelfError, Stopped


def refused(path: Path, **options: str) -> LongshelfError:
    with pytest.raises(LongshelfError) as caught:
        read(path, **options)
    return caught.value


def write(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def test_line_ends_marks_and_nuls_are_made_plain(tmp_path: Path) -> None:
    document = read(write(tmp_path, "a.txt", b"\xef\xbb\xbfone\r\ntwo\rthree\nfo\0ur" + b"." * 400))
    assert document.text == "one\ntwo\nthree\nfo\ufffdur" + "." * 400


def test_a_text_file_is_named_after_its_file_and_knows_its_source(tmp_path: Path) -> None:
    document = read(write(tmp_path, "notes.txt", b"Hello."))
    assert (document.title, document.format, document.encoding, document.skipped) == ("notes", "text", "utf-8", ())
    assert document.path == str(tmp_path / "notes.txt")


def test_the_same_bytes_have_the_same_digest_under_another_name(tmp_path: Path) -> None:
    first, second, other = (read(write(tmp_path, name, data)) for name, data in (("a.txt", b"x"), ("b.txt", b"x"), ("c.txt", b"y")))
    assert first.source_digest == second.source_digest != other.source_digest


def test_a_single_source_file_keeps_its_whole_name_as_title(tmp_path: Path) -> None:
    document = read(write(tmp_path, "decoder.py", b"class A:\n    pass\n"))
    assert (document.title, document.format, document.place(3).section) == ("decoder.py", "code", "class A")


@pytest.mark.parametrize("data", [b"", b" \n\t\r\n", b"\xef\xbb\xbf"])
def test_a_file_without_text_is_refused(tmp_path: Path, data: bytes) -> None:
    assert refused(write(tmp_path, "a.txt", data)).kind == "no_text"


def test_a_missing_file_and_a_dead_link_are_not_found(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    assert refused(tmp_path / "absent.txt").kind == "not_found"
    assert "leads nowhere" in refused(tmp_path / "link").message


def test_a_huge_binary_is_refused_by_its_first_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, "film.txt", os.urandom(files.HEAD))
    os.truncate(path, 200 * 1024 * 1024)  # sparse: its bytes exist only when read
    monkeypatch.setattr(files, "_CHUNK", None)  # reading on would fail
    error = refused(path)
    assert (error.kind, "film.txt" in error.message) == ("binary", True)


@pytest.mark.parametrize(
    ("name", "data", "kind", "word"),
    [
        ("a.pdf", b"%PDF-1.7\n%\xe2\xe3", "unsupported", "a PDF"),
        ("paper.txt", b"%PDF-1.7\n%\xe2\xe3", "unsupported", "a PDF"),
        ("a.DOCX", b"PK\x03\x04\0\0\0\0\0\0", "unsupported", "a Word document"),
        ("a.rtf", b"{\\rtf1 hello}", "unsupported", "Rich Text"),
        ("a.zip", b"PK\x03\x04\0\0\0\0\0\0", "binary", "not text"),
        ("a.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01", "binary", "not text"),
    ],
)
def test_what_is_not_text_is_named(tmp_path: Path, name: str, data: bytes, kind: str, word: str) -> None:
    error = refused(write(tmp_path, name, data))
    assert (error.kind, word in error.message) == (kind, True)
    assert "plain text, Markdown and source code" in error.message


def test_an_old_text_named_doc_is_read(tmp_path: Path) -> None:
    assert read(write(tmp_path, "readme.doc", b"How to install it.\n")).text == "How to install it.\n"


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    error = refused(tmp_path / "pipe")
    assert (error.kind, "pipe" in error.message) == ("unsupported", True)


def test_too_large_a_file_is_refused_with_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, "big.txt", b"text ")
    os.truncate(path, files.FILE_LIMIT + 1)
    path.write_bytes(b"text " * 20000)
    os.truncate(path, files.FILE_LIMIT + 1)
    error = refused(path)
    assert (error.kind, "64 MB" in error.message) == ("too_large", True)


def test_a_file_one_may_not_open_is_unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, "a.txt", b"text")

    def deny(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(files.os, "open", deny)
    assert refused(path).kind == "unreadable"


def test_an_encoding_can_be_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt", "ÇÑ±Û".encode("latin-1"))
    assert read(path).text == "한글"
    assert read(path, encoding="latin-1").text == "ÇÑ±Û"
    assert refused(path, encoding="nonsense").kind == "usage"


def test_a_link_that_is_added_itself_is_followed(tmp_path: Path) -> None:
    write(tmp_path, "a.txt", b"text")
    (tmp_path / "b.txt").symlink_to("a.txt")
    assert read(tmp_path / "b.txt").text == "text"


def test_a_decomposed_hangul_name_is_shown_composed(tmp_path: Path) -> None:
    document = read(write(tmp_path, "\u1112\u1161\u11ab.txt", b"text"))
    assert document.title == "한"


def test_a_name_with_a_line_break_stays_in_one_line(tmp_path: Path) -> None:
    assert read(write(tmp_path, "a\nb.txt", b"text")).title == "a\\nb"
    assert "\n" not in refused(write(tmp_path, "c\nd.txt", b"")).message


def test_stop_ends_reading(tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt", b"text")
    with pytest.raises(Stopped):
        read(path, stop=lambda: True)


def test_progress_counts_one_file(tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    read(write(tmp_path, "a.txt", b"text"), progress=lambda *step: seen.append(step))
    assert seen == [("a.txt", 0, 1), ("a.txt", 1, 1)]


def test_a_secret_that_is_added_itself_is_read(tmp_path: Path) -> None:
    document = read(write(tmp_path, ".env", b"TOKEN=1\n"))
    assert (document.text, document.skipped) == ("TOKEN=1\n", ())
    assert Skipped(".env", "secret") not in document.skipped
