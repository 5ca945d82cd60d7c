"""One window per home."""

from __future__ import annotations

from pathlib import Path

from pytestqt.qtbot import QtBot

from app.single import Doorbell, hand_over
from engine.home import Home


def test_a_later_start_hands_its_files_over(qtbot: QtBot, home: Home) -> None:
    doorbell = Doorbell(home)
    with qtbot.waitSignal(doorbell.rung) as rung:
        assert hand_over(home, [Path("/books/한글.txt"), Path("relative.md")])
    assert rung.args == [[Path("/books/한글.txt"), Path("relative.md").absolute()]]
    doorbell.close()


def test_the_first_start_finds_nobody(home: Home) -> None:
    assert not hand_over(home, [])


def test_what_a_killed_window_left_is_taken_over(qtbot: QtBot, home: Home) -> None:
    (home.root / "window.sock").touch()
    doorbell = Doorbell(home)
    with qtbot.waitSignal(doorbell.rung):
        assert hand_over(home, [])
    doorbell.close()
