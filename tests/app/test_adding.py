"""Which files are meant by a drop or a clipboard."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QUrl
from pytestqt.qtbot import QtBot

from app.adding import Count, paths_in
from app.window import Window
from engine.errors import LongshelfError
from tests.app.fake_engine import FakeEngine


def text(value: str) -> QMimeData:
    data = QMimeData()
    data.setText(value)
    return data


@pytest.mark.parametrize(
    ("value", "paths"),
    [
        ("/books/a.txt", ["/books/a.txt"]),
        ("/books/a b.txt\n'/books/c.txt'\n", ["/books/a b.txt", "/books/c.txt"]),
        ("just a sentence", []),
        ("see /books/a.txt", []),
        ("", []),
    ],
)
def test_lines_that_are_paths_are_paths(value: str, paths: list[str]) -> None:
    assert paths_in(text(value)) == [Path(path) for path in paths]


def test_web_addresses_are_not_files() -> None:
    data = QMimeData()
    data.setUrls([QUrl("https://example.com/a.txt"), QUrl.fromLocalFile("/books/한글.txt")])
    assert paths_in(data) == [Path("/books/한글.txt")]


def test_counting_looks_into_folders_and_not_through_links(qtbot: QtBot, tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "a.txt").write_bytes(b"12345")
    (tmp_path / "b.txt").write_bytes(b"123")
    (tmp_path / "deep" / "loop").symlink_to(tmp_path)
    count = Count([tmp_path / "deep", tmp_path / "b.txt"])
    with qtbot.waitSignal(count.counted) as counted:
        count.start()
    count.wait()
    assert counted.args is not None
    files, size, complete = counted.args
    assert (files, complete) == (3, True)
    assert size >= 8


def test_a_file_that_cannot_be_taken_is_told_and_fails_alone(qtbot: QtBot, window: Window, fake: FakeEngine, tmp_path: Path) -> None:
    fake.refused["photo.txt"] = LongshelfError("binary", "photo.txt is not a text.", "Add a text.")
    for name in ("a.txt", "photo.txt"):
        (tmp_path / name).write_text("x")
    window.add([tmp_path / "a.txt", tmp_path / "photo.txt"])
    qtbot.waitUntil(window.trouble.isVisible)
    assert window.trouble.text() == "photo.txt is not a text.\nAdd a text."
    assert len(window.mirror.documents) == 2
