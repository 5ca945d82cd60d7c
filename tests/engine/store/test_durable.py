"""Files that are whole or not there."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from engine.store import durable
from tests.engine.store.crashing import Step, crashes


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    target = tmp_path / "file"
    durable.write_file(target, b"old")
    durable.write_file(target, b"new and longer")
    assert target.read_bytes() == b"new and longer"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "file"
    durable.write_file(target, b"old")

    def broken(descriptor: int) -> None:
        raise OSError("no")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="no"):
        durable.write_file(target, b"new")
    assert target.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_write_killed_at_any_step_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    target = tmp_path / "file"
    seen = set()

    def write(step: Step) -> None:
        durable.write_file(target, b"new" * 100)

    durable.write_file(target, b"old")
    for _ in crashes(write):
        seen.add(target.read_bytes())
        assert all(path == target or durable.is_temporary(path) for path in tmp_path.iterdir())
        durable.write_file(target, b"old")
    assert seen == {b"old", b"new" * 100}


def test_temporary_names_differ_and_are_known_as_such(tmp_path: Path) -> None:
    first, second = durable.temporary_beside(tmp_path / "a.kv"), durable.temporary_beside(tmp_path / "a.kv")
    assert first != second
    assert durable.is_temporary(first)
    assert durable.is_temporary(first.with_name(first.name + "-wal"))
    assert not durable.is_temporary(tmp_path / "a.kv")
    assert not durable.is_temporary(tmp_path / ".hidden")


def test_what_this_process_is_at_work_on_is_not_abandoned(tmp_path: Path) -> None:
    temporary = durable.temporary_beside(tmp_path / "a.kv")
    companion = temporary.with_name(temporary.name + "-wal")
    for path in (temporary, companion):
        path.touch()
        assert not durable.is_abandoned(path)
    durable.discard(temporary)
    assert list(tmp_path.iterdir()) == []
    assert durable.is_abandoned(temporary)


def test_removing_what_is_not_there_is_no_error(tmp_path: Path) -> None:
    assert not durable.remove(tmp_path / "nothing")


def test_what_is_kept_aside_stays_when_the_file_is_replaced(tmp_path: Path) -> None:
    target, copy = tmp_path / "file", tmp_path / "copy"
    durable.write_file(target, b"old")
    durable.keep_aside(target, copy)
    durable.write_file(target, b"new")
    assert copy.read_bytes() == b"old"


def test_where_there_are_no_hard_links_a_copy_is_kept_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    durable.write_file(tmp_path / "file", b"old")
    durable.keep_aside(tmp_path / "file", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"old"
