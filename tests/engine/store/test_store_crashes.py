"""Whatever the instant at which a process is killed: a segment is there and whole, or it isn't there."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.store.store import Store
from tests.engine.store.crashing import Step, crashes
from tests.engine.store.pieces import header, ids, kv

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="forks")

PIECE = header()
DIGEST = PIECE.digest(ids())


def test_a_commit_killed_at_any_step_leaves_all_or_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path, floor=0)

    def commit(step: Step) -> None:
        Store(tmp_path, floor=0).commit(PIECE, ids(), kv(PIECE))

    deaths = there = 0
    for _ in crashes(commit):
        deaths += 1
        if store.has(DIGEST):
            there += 1
            Store(tmp_path).verify(DIGEST)
        assert len(store.temporaries()) <= 1
        store.sweep_temporaries()
        assert not store.temporaries()
        assert list(store.digests()) == ([DIGEST] if store.has(DIGEST) else [])
        store.remove(DIGEST)
    assert deaths > 8
    assert 0 < there < deaths
    store.verify(DIGEST)


def test_the_bytes_are_flushed_before_the_name_and_the_folder_after_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def noted(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            is_folder = name == "fsync" and stat.S_ISDIR(os.fstat(arguments[0]).st_mode)
            calls.append("fsync folder" if is_folder else name)
            return real(*arguments, **named)

        return call

    store = Store(tmp_path, floor=0)
    for name in ("mkdir", "write", "fsync", "replace"):
        monkeypatch.setattr(os, name, noted(name, getattr(os, name)))
    store.commit(PIECE, ids(), kv(PIECE))
    assert [call for call in calls if call != "write"] == ["mkdir", "fsync folder", "fsync", "replace", "fsync folder"]
    assert "write" not in calls[calls.index("fsync") :]


def test_a_damaged_segment_is_replaced_in_one_step(tmp_path: Path) -> None:
    store = Store(tmp_path, floor=0)
    store.commit(PIECE, ids(), kv(PIECE))
    damaged = bytearray(store.path(DIGEST).read_bytes())
    damaged[5000] ^= 1

    def commit(step: Step) -> None:
        Store(tmp_path, floor=0).commit(PIECE, ids(), kv(PIECE))

    store.path(DIGEST).write_bytes(damaged)
    good = 0
    for _ in crashes(commit):
        assert store.has(DIGEST)
        content = store.path(DIGEST).read_bytes()
        if content != damaged:
            good += 1
            Store(tmp_path).verify(DIGEST)
            store.path(DIGEST).write_bytes(damaged)
    assert good


def test_a_removal_killed_at_any_step_leaves_all_or_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path, floor=0)
    store.commit(PIECE, ids(), kv(PIECE))

    def remove(step: Step) -> None:
        Store(tmp_path).remove(DIGEST)

    for _ in crashes(remove):
        if store.has(DIGEST):
            store.verify(DIGEST)
        else:
            store.commit(PIECE, ids(), kv(PIECE))
    assert not store.has(DIGEST)


def test_temporary_files_being_written_here_are_not_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.store import durable

    store = Store(tmp_path, floor=0)
    seen: list[int] = []
    sync = durable.sync_file

    def sweep_first(descriptor: int) -> None:
        seen.append(store.sweep_temporaries())
        sync(descriptor)

    monkeypatch.setattr(durable, "sync_file", sweep_first)
    store.commit(PIECE, ids(), kv(PIECE))
    assert set(seen) == {0}
    store.verify(DIGEST)


def test_two_writers_of_the_same_segment_both_succeed(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    stores = [Store(tmp_path, floor=0) for _ in range(2)]
    with ThreadPoolExecutor(4) as pool:
        digests = set(pool.map(lambda number: stores[number % 2].commit(PIECE, ids(), kv(PIECE)), range(16)))
    assert digests == {DIGEST}
    stores[0].verify(DIGEST)
    assert not stores[0].temporaries()
