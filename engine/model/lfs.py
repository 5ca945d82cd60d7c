"""Git LFS pointers: small text files that stand where a large one was never downloaded."""

from __future__ import annotations

from pathlib import Path

from engine.errors import LongshelfError

POINTER = b"version https://git-lfs.github.com/spec/"
"""How one begins."""


def lfs_pointer(file: Path) -> LongshelfError:
    return LongshelfError(
        "lfs_pointer", f"{file.name} is only a pointer to the file: it was never downloaded.", f"Run `git lfs pull` in {file.parent}."
    )
