"""A command joins the engine that runs, or is the engine for its own duration."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.commands.session import duration, size
from engine.service.client import connect
from engine.service.server import Host
from tests.engine.books import book
from tests.engine.commands.conftest import Longshelf


def test_a_command_joins_the_engine_that_runs(longshelf: Longshelf, tmp_path: Path) -> None:
    host = Host(longshelf.home)
    assert longshelf("add", book(tmp_path, 1), "--json").json["documents"][0]["state"] == "ready"
    assert host.shelf._loaded is not None
    host.close()


def test_errors_of_the_engine_that_runs_arrive_as_what_they_are(longshelf: Longshelf) -> None:
    host = Host(longshelf.home)
    done = longshelf("show", "nothing", "--json")
    assert (done.status, done.json["error"]["kind"]) == (1, "not_found")
    host.close()


def test_a_command_leaves_no_engine_behind(longshelf: Longshelf) -> None:
    longshelf("list")
    assert connect(longshelf.home) is None
    assert not longshelf.home.socket.exists()


def test_a_command_that_failed_leaves_no_engine_behind(longshelf: Longshelf) -> None:
    assert longshelf("show", "nothing").status == 1
    assert connect(longshelf.home) is None


def test_measuring_beside_a_running_engine_is_refused(longshelf: Longshelf) -> None:
    host = Host(longshelf.home)
    done = longshelf("bench", "decode", "--json")
    assert (done.status, done.json["error"]["kind"]) == (1, "locked")
    host.close()


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, ""), (0, "0 s"), (42.4, "42 s"), (90, "2 min"), (3540, "59 min"), (4800, "1 h 20 min")]
)
def test_seconds_for_people(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(("count", "text"), [(950, "950 bytes"), (23_600_000, "23.6 MB"), (3.8e9, "3.8 GB")])
def test_bytes_for_people(count: float, text: str) -> None:
    assert size(count) == text
