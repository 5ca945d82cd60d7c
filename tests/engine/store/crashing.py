"""Killing a process, or filling its disk, at every step it makes on the disk.

`crashes(work)` runs `work` in a forked child that is killed (SIGKILL) before its first step on the disk, then in another that is
killed before its second, and so on until one runs to its end. A write that is hit still puts half of its bytes into the file.
SQLite's own calls can't be caught here, but each COMMIT of ours is a step too, and `work` is given one to make steps of its own.

`fills(work)` does the same with a disk that is full at that step and stays so (ENOSPC, and SQLITE_FULL at a COMMIT) until `work` is
done; it is not told, and has to end by itself.
"""

from __future__ import annotations

import errno
import os
import signal
import sqlite3
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import sqlite_utils

Step = Callable[[], None]

CALLS = ("open", "write", "fsync", "replace", "unlink", "mkdir", "link")
TAKES_ROOM = ("open", "write", "fsync", "mkdir", "link", "commit")  # what a full disk refuses


def crashes(work: Callable[[Step], None], every: int = 1) -> Iterator[int]:
    """Yields n after a child was killed at its n-th step; ends after the one that wasn't. No connection may be open meanwhile.

    every: how many steps lie between two deaths.
    """
    for deadly in range(0, 100_000, every):
        status = _child(lambda at=deadly: _at_step(at, _die, work))
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0, f"the work failed by itself after {deadly} steps"
            return
        assert os.WTERMSIG(status) == signal.SIGKILL
        yield deadly


def fills(work: Callable[[Step], None], every: int = 1) -> Iterator[int]:
    """Yields n after a child whose disk was full from its n-th step on has ended; ends after the one whose disk wasn't."""
    for full in range(0, 100_000, every):
        status = _child(lambda at=full: _at_step(at, _refuse, work))
        assert os.WIFEXITED(status), "a full disk ended the process"
        if (code := os.WEXITSTATUS(status)) == NEVER_HIT:
            return
        assert code == 0, f"the work failed on a disk full at step {full}"
        yield full


def in_child(work: Callable[[], None]) -> None:
    """Run `work` in a forked child, so that threads it starts are gone when it is done. Raises AssertionError if it fails."""
    status = _child(work)
    assert os.WIFEXITED(status), f"the process ended with signal {status & 0x7F}"
    assert os.WEXITSTATUS(status) == 0


NEVER_HIT = 17
_FAILED = 3


def _child(work: Callable[[], None]) -> int:
    """The status of a child that does `work`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # about forking beside threads: the child uses none of theirs
        child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(_FAILED)
    return os.waitpid(child, 0)[1]


class _Steps:
    """Counts the steps of this process, and has one of them hit."""

    def __init__(self, at: int, hit: Callable[[_Steps, str], None]) -> None:
        self.count, self.at, self.hit = 0, at, hit

    def step(self, name: str = "") -> None:
        self.count += 1
        self.hit(self, name)


def _die(steps: _Steps, name: str) -> None:
    if steps.count - 1 == steps.at:
        os.kill(os.getpid(), signal.SIGKILL)


def _refuse(steps: _Steps, name: str) -> None:
    if steps.count <= steps.at or name not in TAKES_ROOM:
        return
    if name == "commit":
        full = sqlite3.OperationalError("database or disk is full")
        full.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise full
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _at_step(at: int, hit: Callable[[_Steps, str], None], work: Callable[[Step], None]) -> None:
    steps = _Steps(at, hit)

    def counted(name: str) -> Callable[..., Any]:
        real = getattr(os, name)

        def call(*arguments: Any, **named: Any) -> Any:
            if name == "open" and not arguments[1] & os.O_CREAT:
                return real(*arguments, **named)
            if name == "write" and steps.count == at:
                real(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
            steps.step(name)
            return real(*arguments, **named)

        return call

    def commit(db: sqlite_utils.Database, real: Callable[[sqlite_utils.Database], None] = sqlite_utils.Database.commit) -> None:
        steps.step("commit")
        real(db)

    for name in CALLS:
        setattr(os, name, counted(name))
    sqlite_utils.Database.commit = commit  # type: ignore[method-assign]
    work(steps.step)
    if hit is _refuse and steps.count <= at:
        os._exit(NEVER_HIT)
