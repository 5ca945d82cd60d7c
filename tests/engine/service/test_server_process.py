"""The engine as a process of its own: it says `ready`, and ends with whoever started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.home import Home
from engine.service.client import connect
from tests.engine.gate import PATIENCE_S

REPO = Path(__file__).parents[3]


class Engine:
    """A running `python -m engine.service.server`, its pipes ours."""

    def __init__(self, home: Home) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "engine.service.server", "--home", str(home.root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=REPO,
            text=True,
        )

    def ready(self) -> bool:
        """Whether it says so; False if it ends instead."""
        assert self.process.stdout is not None
        return self.process.stdout.readline() == "ready\n"

    def ended(self) -> tuple[int, str, str]:
        """Exit status and what it printed (after `ready`) once its stdin is closed or it ends by itself."""
        out, err = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, out, err


@pytest.fixture
def engine(tiny_home: Home) -> Iterator[Engine]:
    started = Engine(tiny_home)
    assert started.ready()
    yield started
    if started.process.poll() is None:
        started.process.kill()
        started.process.communicate()


def test_it_ends_when_its_starter_closes_the_pipe(engine: Engine, tiny_home: Home) -> None:
    client = connect(tiny_home)
    assert client is not None
    assert client.call("hello")["pid"] == engine.process.pid
    assert engine.ended() == (0, "", "")
    assert connect(tiny_home) is None
    assert not tiny_home.socket.exists()


def test_it_ends_when_a_client_says_so_and_a_second_one_is_refused_before(engine: Engine, tiny_home: Home) -> None:
    second = Engine(tiny_home)
    assert not second.ready()
    code, out, err = second.ended()
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    client = connect(tiny_home)
    assert client is not None
    client.call("shutdown")
    assert engine.process.wait(PATIENCE_S) == 0


def test_a_killed_engine_leaves_room_for_the_next(engine: Engine, tiny_home: Home) -> None:
    os.kill(engine.process.pid, signal.SIGKILL)
    engine.process.communicate()
    assert tiny_home.socket.exists()
    next_one = Engine(tiny_home)
    assert next_one.ready()
    client = connect(tiny_home)
    assert client is not None
    assert client.call("documents.list") == {"documents": []}
    assert next_one.ended() == (0, "", "")


def test_a_home_that_cannot_be_is_refused_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    refused = Engine(Home(tmp_path / "file"))
    assert not refused.ready()
    code, out, err = refused.ended()
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert str(tmp_path / "file") in err
