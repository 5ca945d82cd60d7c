"""The file lock: one holder, told by name, gone with its process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.errors import LongshelfError
from engine.store.lock import FileLock, owner_of

HOLD = """
import sys, time
from pathlib import Path
from engine.store.lock import FileLock
FileLock(Path(sys.argv[1])).acquire()
print("held", flush=True)
time.sleep(60)
"""


def test_a_second_holder_is_refused_and_told_who_the_first_is(tmp_path: Path) -> None:
    path = tmp_path / "writer.lock"
    with FileLock(path):
        with pytest.raises(LongshelfError) as caught:
            FileLock(path).acquire()
        assert caught.value.kind == "locked"
        assert str(os.getpid()) in caught.value.message
        assert owner_of(path) == os.getpid()
    assert owner_of(path) is None
    with FileLock(path):
        pass


def test_waiting_gets_the_lock_once_it_is_free(tmp_path: Path) -> None:
    import threading

    first = FileLock(tmp_path / "lock").acquire()
    release = threading.Timer(0.1, first.release)
    release.start()
    second = FileLock(tmp_path / "lock").acquire(wait_s=30)
    assert second.held
    assert not first.held
    release.join()
    second.release()


def test_a_killed_holder_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "engine.lock"
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    with pytest.raises(LongshelfError, match=str(process.pid)):
        FileLock(path).acquire()
    process.kill()
    process.wait()
    process.stdout.close()
    with FileLock(path):
        assert owner_of(path) == os.getpid()


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(LongshelfError) as caught:
        FileLock(tmp_path / "nowhere" / "lock").acquire()
    assert caught.value.kind == "home"


def test_holding_twice_by_one_object_is_a_mistake(tmp_path: Path) -> None:
    with FileLock(tmp_path / "lock") as lock, pytest.raises(RuntimeError):
        lock.acquire()


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits on the size of files")
def test_a_full_disk_keeps_nobody_from_holding_the_lock(tmp_path: Path) -> None:
    import resource
    import signal

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))  # from here on, no byte can be written
    try:
        with FileLock(tmp_path / "lock"), pytest.raises(LongshelfError, match="Another Longshelf is working"):
            FileLock(tmp_path / "lock").acquire()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
