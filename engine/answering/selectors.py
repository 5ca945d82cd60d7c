"""The ways of choosing keys for a sampled answer, as they are named: `sketch`, or `lsh`, or `lsh:K,L` for L tables of K bits."""

from __future__ import annotations

from dataclasses import dataclass

from engine.errors import LongshelfError

SKETCH, LSH = "sketch", "lsh"

_MOST_BITS, _MOST_TABLES = 11, 1024  # as in kernels.lsh, which brings torch


@dataclass(frozen=True)
class Chosen:
    """name: SKETCH or LSH; bits, tables: of LSH, as published by default."""

    name: str
    bits: int = 10
    tables: int = 150


def named(selector: str) -> Chosen:
    """Raises LongshelfError("usage") for what names none."""
    name, _, numbers = selector.partition(":")
    if name not in (SKETCH, LSH) or (numbers and name == SKETCH):
        raise LongshelfError("usage", f"There is no selector {selector!r}.", f"There are {SKETCH}, {LSH} and {LSH}:BITS,TABLES.")
    if selector == name:
        return Chosen(name)
    try:
        bits, tables = (int(number) for number in numbers.split(","))
    except ValueError:
        raise LongshelfError("usage", f"--selector is {selector!r}; hash tables are named as {LSH}:10,150.") from None
    if not (1 <= bits <= _MOST_BITS and 2 <= tables <= _MOST_TABLES):
        limits = f"A code has 1 to {_MOST_BITS} bits, and there are 2 to {_MOST_TABLES} tables."
        raise LongshelfError("usage", f"--selector is {selector!r}; no such tables can be made.", limits)
    return Chosen(name, bits, tables)
