"""What git says of a folder: the files it tracks or would add, and what it ignores (with the person's global excludes).

Only ever asked, never told: no index is refreshed, and settings of the folder that would run a program are off.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from engine.errors import Stopped

SECONDS = 120
"""After this git is given up, and the folder is read without it."""

_PLACES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE", "GIT_PREFIX")


@dataclass(frozen=True)
class Listing:
    """Paths relative to the folder asked about; a folder ends with "/". What isn't UTF-8 stands as surrogates."""

    files: tuple[str, ...]
    ignored: tuple[str, ...]


def listing(folder: str, stop: Callable[[], bool]) -> Listing | None:
    """What git knows of a folder; None where git isn't there, the folder is no checkout, or git may not or will not look at it.

    A repository inside it (a submodule, or a clone) is listed as one path. Raises Stopped.
    """
    files = _run(folder, stop, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if files is None:
        return None
    ignored = _run(folder, stop, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
    unique = dict.fromkeys(_split(files))  # a file in conflict is listed several times
    return Listing(tuple(unique), tuple(_split(ignored or b"")))


def is_checkout(folder: str, stop: Callable[[], bool]) -> bool:
    """Whether a folder is the top of a checkout, or part of one further up that doesn't ignore it as a whole."""
    if os.path.lexists(os.path.join(folder, ".git")):
        return True
    inside = _run(folder, stop, "rev-parse", "--is-inside-work-tree") is not None
    return inside and _run(folder, stop, "check-ignore", "-q", ".") is None


def _run(folder: str, stop: Callable[[], bool], *arguments: str) -> bytes | None:
    """Output of a git command, None if it fails."""
    environment = {name: value for name, value in os.environ.items() if name not in _PLACES}
    environment |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    command = ["git", "-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}", *arguments]
    try:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
    except OSError:
        return None
    for _ in range(SECONDS * 10):
        try:
            output, _errors = process.communicate(timeout=0.1)
            return output if process.returncode == 0 else None
        except subprocess.TimeoutExpired:
            if stop():
                break
    process.kill()
    process.communicate()
    if stop():
        raise Stopped
    return None


def _split(listed: bytes) -> Iterator[str]:
    for raw in listed.split(b"\0"):
        relative = os.fsdecode(raw)
        if raw and not relative.startswith("/") and ".." not in relative.split("/"):  # a checkout may claim to be elsewhere
            yield relative
