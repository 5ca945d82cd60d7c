"""Draws that come out the same on every machine and every Python.

A stream is BLAKE2b (RFC 7693) of its labels and a counter, read as 64-bit numbers. No library's generator is asked: NumPy may change
the stream of `Generator` with a version (NEP 19), and `random` that of everything but `random()`.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")
_WORDS = struct.Struct("<8Q")  # one hash of 64 bytes


class Draws:
    """A stream of whole numbers that its labels decide: the same labels, the same numbers."""

    def __init__(self, *labels: str | int) -> None:
        self._labels = labels
        self._key = hashlib.blake2b("\x1f".join(map(str, labels)).encode(), digest_size=32).digest()
        self._hashes = 0
        self._left: list[int] = []

    def branch(self, *labels: str | int) -> Draws:
        """A stream of its own, whatever was drawn from this one."""
        return Draws(*self._labels, *labels)

    def below(self, bound: int) -> int:
        """One of 0 … bound - 1, each as likely as the others."""
        assert 0 < bound <= 1 << 64, f"nothing to draw below {bound}"
        fair = (1 << 64) - (1 << 64) % bound
        while (number := self._next()) >= fair:
            pass
        return number % bound

    def between(self, least: int, most: int) -> int:
        """One of least … most."""
        return least + self.below(most - least + 1)

    def distinct(self, least: int, most: int, count: int) -> list[int]:
        """`count` of least … most, none twice, in the order they were drawn."""
        assert count <= most - least + 1, f"{least} … {most} are fewer than {count} numbers"
        drawn: dict[int, None] = {}
        while len(drawn) < count:
            drawn[self.between(least, most)] = None
        return list(drawn)

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """The items in a drawn order, each order as likely (Fisher-Yates)."""
        mixed = list(items)
        for place in range(len(mixed) - 1):
            other = self.between(place, len(mixed) - 1)
            mixed[place], mixed[other] = mixed[other], mixed[place]
        return mixed

    def _next(self) -> int:
        if not self._left:
            hashed = hashlib.blake2b(self._hashes.to_bytes(8, "little"), key=self._key).digest()
            self._left = list(reversed(_WORDS.unpack(hashed)))
            self._hashes += 1
        return self._left.pop()
