"""What the engine holds, as the window last heard it."""

from __future__ import annotations

from pytestqt.qtbot import QtBot

from app.window import Window
from tests.app.fake_engine import FakeEngine, book


def test_only_the_rows_that_changed_are_told(qtbot: QtBot, window: Window, fake: FakeEngine) -> None:
    fake.push("documents", [book("other")])
    with qtbot.waitSignal(window.mirror.documents_changed) as changed:
        pass
    assert changed.args is not None
    assert [row["id"] for row in changed.args[0]] == ["other"]


def test_a_partial_row_changes_only_what_it_names(qtbot: QtBot, window: Window, fake: FakeEngine) -> None:
    fake.push("documents", [{"id": "book", "percent": 12.0}])
    qtbot.waitUntil(lambda: window.mirror.documents["book"]["percent"] == 12.0)
    assert window.mirror.documents["book"]["title"] == "Pride and Prejudice"


def test_a_removed_row_goes(qtbot: QtBot, window: Window, fake: FakeEngine) -> None:
    with qtbot.waitSignal(window.mirror.documents_changed):
        fake.push("documents", [{"id": "book", "removed": True}])
    assert window.mirror.documents == {}


def test_what_went_while_the_line_was_broken_goes_when_lists_are_fetched_anew(qtbot: QtBot, window: Window, fake: FakeEngine) -> None:
    del fake.documents["book"]
    with qtbot.waitSignal(window.mirror.documents_changed):
        window.mirror.reload()
    assert window.mirror.documents == {}


def test_something_can_wait_for_a_document_to_appear(qtbot: QtBot, window: Window, fake: FakeEngine) -> None:
    met: list[str] = []
    window.mirror.when_known(["other"], lambda: met.append("other"))
    assert met == []
    fake.push("documents", [book("other")])
    qtbot.waitUntil(lambda: met == ["other"])
    fake.push("documents", [book("other", percent=1.0)])
    qtbot.wait(20)
    assert met == ["other"]
