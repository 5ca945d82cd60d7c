"""Killing a process at every step it makes on the disk.

`crashes(work)` runs `work` in a forked child that is killed (SIGKILL) before its first step on the disk, then in another that is
killed before its second, and so on until one runs to its end. A write that is hit still puts half of its bytes into the file.
SQLite's own calls can't be caught here: `work` calls the `step` it is given, say before each COMMIT, to be killed there too.
"""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable, Iterator
from typing import Any

Step = Callable[[], None]

CALLS = ("open", "write", "fsync", "replace", "unlink", "mkdir", "link")


def crashes(work: Callable[[Step], None]) -> Iterator[int]:
    """Yields n after a child was killed at its n-th step; ends after the one that wasn't. No connection may be open meanwhile."""
    for deadly in range(10_000):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # about forking beside threads: the child uses none of theirs
            child = os.fork()
        if child == 0:
            _die_at(deadly, work)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0, f"the work failed by itself after {deadly} steps"
            return
        assert os.WTERMSIG(status) == signal.SIGKILL
        yield deadly


def _die_at(deadly: int, work: Callable[[Step], None]) -> None:
    """In the child; never returns."""
    count = 0

    def step() -> None:
        nonlocal count
        if count == deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        count += 1

    def deadly_version(name: str) -> Callable[..., Any]:
        real = getattr(os, name)

        def call(*arguments: Any, **named: Any) -> Any:
            if name == "open" and not arguments[1] & os.O_CREAT:
                return real(*arguments, **named)
            if name == "write" and count == deadly:
                real(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
            step()
            return real(*arguments, **named)

        return call

    try:
        for name in CALLS:
            setattr(os, name, deadly_version(name))
        work(step)
        os._exit(0)
    except BaseException:
        import traceback

        traceback.print_exc()
        os._exit(3)
