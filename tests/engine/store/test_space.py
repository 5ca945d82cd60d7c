"""Room on the disk: what stays free, and what is said and kept when there is none."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.errors import LongshelfError
from engine.store import space
from engine.store.format import Layout
from engine.store.store import Store
from tests.engine.store.pieces import header, ids, kv

GB = space.GB


@pytest.mark.parametrize(
    ("total", "floor"),
    [(4_000 * GB, 200 * GB), (500 * GB, 25 * GB), (100 * GB, 10 * GB), (30 * GB, 6 * GB), (64_000_000, 12_800_000)],
)
def test_the_floor_is_ten_gb_or_five_percent_but_never_most_of_a_small_disk(total: int, floor: int) -> None:
    assert space.default_floor(total) == floor


def test_the_default_limit_is_a_fifth_of_the_disk() -> None:
    assert space.default_limit(500 * GB) == 100 * GB


def test_the_estimate_of_a_book_is_what_its_segments_take() -> None:
    tokens, layers, kv_heads, head_dim = 168_000, 30, 3, 64
    sizes = 0
    for start in range(0, tokens, 1024):
        piece = header(tokens=min(1024, tokens - start), layers=layers, kv_heads=kv_heads, head_dim=head_dim)
        sizes += Layout.of(piece).size
    estimate = space.estimate(tokens, 2 * layers * kv_heads * head_dim * 2)
    assert estimate == pytest.approx(sizes, rel=0.001)


def test_a_disk_at_its_floor_is_full(tmp_path: Path) -> None:
    free = space.space(tmp_path).free
    space.require(tmp_path, 1000, floor=free // 2)
    with pytest.raises(LongshelfError) as caught:
        space.require(tmp_path, 1000, floor=2 * free)
    assert caught.value.kind == "disk_full"
    assert "kept" in caught.value.message
    assert "resume" in caught.value.hint


def test_a_store_commits_nothing_below_its_floor(tmp_path: Path) -> None:
    store = Store(tmp_path, floor=space.space(tmp_path).total)
    with pytest.raises(LongshelfError, match="full"):
        store.commit(header(), ids(), kv(header()))
    assert store.usage() == 0


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_fills_at_any_write_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    store = Store(tmp_path, floor=0)
    first = store.commit(header(), ids(first=1), kv(header()))
    real, room = os.write, 0

    def write(descriptor: int, data: bytes) -> int:
        nonlocal room
        if room == 0:
            raise OSError(code, os.strerror(code))
        room -= 1
        return real(descriptor, data)

    for writes in range(10):
        room = writes
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", write)
            with pytest.raises(LongshelfError) as caught:
                store.commit(header(), ids(first=2), kv(header()))
        assert caught.value.kind == "disk_full"
        assert not store.temporaries()
        assert list(store.digests()) == [first]
    store.verify(first)


def test_a_disk_that_fails_is_not_called_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(LongshelfError) as caught:
        Store(tmp_path, floor=0).commit(header(), ids(), kv(header()))
    assert caught.value.kind == "store_unavailable"
    assert "Input/output error" in caught.value.message


def test_a_system_that_writes_a_few_bytes_at_a_time_writes_them_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, real = Store(tmp_path, floor=0), os.write
    digest = store.commit(header(), ids(), kv(header()))
    written_at_once = store.path(digest).read_bytes()
    store.remove(digest)
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, data[:1000]))
    store.commit(header(), ids(), kv(header()))
    assert store.path(digest).read_bytes() == written_at_once


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real disk of 1 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if sys.platform != "linux" or os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("may not mount a small disk here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_real_disk_that_fills_keeps_what_was_committed(small_disk: Path) -> None:
    def fill(store: Store) -> None:
        piece = header(tokens=1024)
        for first in range(100):
            store.commit(piece, ids(1024, first), kv(piece))

    for floor in (0, None):
        store = Store(small_disk, floor)
        with pytest.raises(LongshelfError) as caught:
            fill(store)
        assert caught.value.kind == "disk_full"
        kept = list(store.digests())
        assert kept
        assert not store.temporaries()
        for digest in kept:
            store.verify(digest)
        for digest in kept:
            store.remove(digest)


@pytest.mark.parametrize(("count", "text"), [(0, "0 bytes"), (999, "999 bytes"), (23_600_000, "23.6 MB"), (3_800_000_000, "3.8 GB")])
def test_sizes_are_written_for_people(count: int, text: str) -> None:
    assert space.size_text(count) == text
