"""Where the engine's socket lies, and that nothing else is taken for it."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.home import Home
from engine.service import endpoint


@pytest.fixture
def near(monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """A home whose socket has a short path."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Home(Path(folder)).open()


@pytest.fixture
def far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A home too deep for a socket."""
    (temporary := tmp_path / "t").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    return Home(tmp_path / ("deep" * 30)).open()


def listen(home: Home) -> socket.socket:
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(endpoint.prepare(home)))
    server.listen()
    return server


def test_the_socket_lies_in_the_home(near: Home) -> None:
    with listen(near):
        assert endpoint.find(near) == near.socket


def test_nothing_is_found_in_a_fresh_home(near: Home) -> None:
    assert endpoint.find(near) is None


def test_a_deep_home_has_its_socket_in_a_private_folder(far: Home) -> None:
    with listen(far):
        path = endpoint.find(far)
        assert path is not None
        assert len(os.fsencode(path)) <= 107
        assert path.parent.stat().st_mode & 0o777 == 0o700
        assert far.socket.read_text(encoding="utf-8").split("\n")[0] == str(path)


def test_the_engine_of_the_original_is_not_taken_for_that_of_a_copy(far: Home) -> None:
    with listen(far):
        copy = Home(Path(shutil.copytree(far.root, far.root.with_name("copy" * 40))))
        assert endpoint.find(copy) is None
        endpoint.clear(copy)
        assert endpoint.find(far) is not None


def test_a_client_reaches_the_engine_of_a_deep_home(far: Home) -> None:
    with listen(far) as engine, socket.socket(socket.AF_UNIX) as client:
        client.connect(str(endpoint.find(far)))
        client.sendall(b"hello")
        with engine.accept()[0] as line:
            assert line.recv(5) == b"hello"


@pytest.mark.parametrize("kind", ["near", "far"])
def test_what_a_dead_engine_left_is_replaced(kind: str, request: pytest.FixtureRequest) -> None:
    home: Home = request.getfixturevalue(kind)
    listen(home).close()
    first = endpoint.find(home)
    with listen(home), socket.socket(socket.AF_UNIX) as client:
        client.connect(str(endpoint.find(home)))
    assert kind == "near" or (first is not None and not first.parent.exists())


@pytest.mark.parametrize("kind", ["near", "far"])
def test_clearing_leaves_nothing_behind(kind: str, request: pytest.FixtureRequest) -> None:
    home: Home = request.getfixturevalue(kind)
    with listen(home):
        path = endpoint.find(home)
        endpoint.clear(home)
    assert path is not None
    assert not path.exists()
    assert not home.socket.exists()
    endpoint.clear(home)  # and once more is fine


def test_a_socket_in_a_folder_open_to_others_is_not_believed(far: Home, tmp_path: Path) -> None:
    with listen(far):
        path = endpoint.find(far)
        assert path is not None
        path.parent.chmod(0o755)
        assert endpoint.find(far) is None


@pytest.mark.parametrize("content", ["", "engine.sock", "/etc/passwd", "/nowhere/longshelf-x/engine.sock"])
def test_a_file_that_names_no_socket_of_ours_is_not_believed(near: Home, content: str) -> None:
    near.socket.write_text(content, encoding="utf-8")
    assert endpoint.find(near) is None
