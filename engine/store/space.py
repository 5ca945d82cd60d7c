"""Room on the disk: what is free, what must stay free, what a document will take, and what is said when it runs out.

The floor is what other programs keep: max(10 GB, 5 % of the disk), but never more than 20 % of the disk, so that a small disk
stays usable. A store asks before each segment, so that the catalog (small, and holding the chats) can always be written.
"""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from engine.errors import LongshelfError

GB = 1_000_000_000
FLOOR_BYTES = 10 * GB
FLOOR_SHARE = 0.05
FLOOR_SHARE_MOST = 0.20
LIMIT_SHARE = 0.20
ASK_ABOVE = 5 * GB  # a document that takes more than this is only read with leave

# Beside K and V, a segment of 1024 tokens holds a header, the token ids, checksums and what aligning costs.
SEGMENT_TOKENS = 1024
SEGMENT_OVERHEAD = 8 * 1024
BYTES_PER_ID = 4

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


@dataclass(frozen=True)
class Space:
    """Bytes of one disk. spare: what may still be used."""

    total: int
    free: int
    floor: int

    @property
    def spare(self) -> int:
        return max(0, self.free - self.floor)


def default_floor(total: int) -> int:
    """Bytes of a disk of `total` bytes that stay free unless the person says otherwise."""
    return min(max(FLOOR_BYTES, int(total * FLOOR_SHARE)), int(total * FLOOR_SHARE_MOST))


def default_limit(total: int) -> int:
    """Bytes that everything remembered may take on a disk of `total` bytes unless the person says otherwise."""
    return int(total * LIMIT_SHARE)


def space(folder: Path, floor: int | None = None) -> Space:
    """The disk that holds `folder`. floor: bytes to keep free; None is the default rule."""
    try:
        usage = shutil.disk_usage(folder)
    except OSError as error:
        raise unavailable(folder, error) from error
    return Space(usage.total, usage.free, default_floor(usage.total) if floor is None else floor)


def estimate(tokens: int, bytes_per_token: int) -> int:
    """Bytes on disk for `tokens` tokens at `bytes_per_token` of KV; right to about 1 % for a model of ordinary size."""
    segments = -(-tokens // SEGMENT_TOKENS)
    return tokens * (bytes_per_token + BYTES_PER_ID) + segments * SEGMENT_OVERHEAD


def require(folder: Path, needed: int, floor: int | None = None) -> None:
    """Raises LongshelfError("disk_full") if `needed` bytes more would leave less than the floor."""
    room = space(folder, floor)
    if needed > room.spare:
        raise disk_full(folder, f"{size_text(needed)} are needed, {size_text(room.free)} are free, {size_text(room.floor)} stay free")


def disk_full(folder: Path, detail: str = "") -> LongshelfError:
    """The one way to say that there is no room."""
    return LongshelfError(
        "disk_full",
        f"The disk that holds {folder} is full{f': {detail}' if detail else ''}. Everything remembered so far is kept.",
        "Free some space, remove documents, or move the home to another disk, then resume: reading goes on where it stopped.",
    )


def unavailable(folder: Path, error: OSError) -> LongshelfError:
    return LongshelfError(
        "store_unavailable",
        f"{folder} can't be used: {error.strerror or error}.",
        "Check that its disk is connected and writable, then try again. Chats can still be opened.",
    )


@contextmanager
def named_disk_errors(folder: Path) -> Iterator[None]:
    """Turns what the system says about the disk under `folder` into disk_full or store_unavailable."""
    try:
        yield
    except OSError as error:
        raise (disk_full(folder) if error.errno in FULL else unavailable(folder, error)) from error


def size_text(count: int) -> str:
    """Bytes as a person reads them: 950 bytes, 23.6 MB, 3.8 GB."""
    for unit, size in (("GB", GB), ("MB", 1_000_000), ("KB", 1_000)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"
