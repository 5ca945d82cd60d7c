"""Starting the window as its own process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtWidgets import QLabel

from engine.home import Home
from engine.service import endpoint

START = """import sys
from pathlib import Path
from app.main import run
from engine.home import Home
sys.exit(run(Home(Path(sys.argv[1])), {}))"""


def start(home: Home, arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", START.format(arguments), str(home.root)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen", **environment},
        check=False,
    )


def test_until_shown_prints_the_milliseconds_and_ends(home: Home) -> None:
    done = start(home, "until_shown=True")
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0


def test_the_window_is_shown_without_torch(home: Home) -> None:
    code = START.format("until_shown=True").replace("sys.exit(", "done = (") + "\nsys.exit('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code, str(home.root)],
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0


def test_a_second_start_gives_its_files_to_the_first(home: Home, qtbot, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    from app.single import Doorbell

    doorbell = Doorbell(home)
    process = subprocess.Popen(
        [sys.executable, "-c", START.format(f"files=[Path({str(tmp_path / 'a.txt')!r})]"), str(home.root)],
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
    )
    with qtbot.waitSignal(doorbell.rung, timeout=30_000) as rung:
        pass
    assert process.wait(30) == 0
    assert rung.args == [[tmp_path / "a.txt"]]
    doorbell.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL], ids=lambda number: number.name)
def test_a_window_takes_its_engine_along_however_it_ends(home: Home, number: signal.Signals) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", START.format(""), str(home.root)],
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
        stderr=subprocess.DEVNULL,
    )
    until(lambda: endpoint.find(home) is not None)
    process.send_signal(number)
    assert process.wait(30) == (-number if number == signal.SIGKILL else 0)
    until(lambda: endpoint.find(home) is None)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="None is immortal there")
def test_the_toolkit_gives_back_what_it_borrows(qtbot) -> None:  # type: ignore[no-untyped-def]
    """PySide6 6.12 takes a reference to None with each call that returns nothing; Python 3.11 aborts after some thousand."""
    label = QLabel()
    qtbot.addWidget(label)
    before = sys.getrefcount(None)
    for _ in range(500):
        label.setVisible(False)
    assert sys.getrefcount(None) > before - 100


def until(true: Callable[[], bool], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)
