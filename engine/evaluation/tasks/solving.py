"""Solving a relational problem from its text alone: proof that it has an answer, and one only."""

from __future__ import annotations

import re
from dataclasses import dataclass

_ROOT = re.compile(r"(\w+) = (\d+)")
_RELATION = re.compile(r"(\w+) = ([^\W\d]\w*) ([+-]) (\d+)")


@dataclass(frozen=True)
class Line:
    """One quantity as a line gives it: a number where `of` is None, else that quantity and `number` more (or less, if negative)."""

    name: str
    of: str | None
    number: int


@dataclass(frozen=True)
class Solution:
    """path: names from the asked one to the number it rests on; one operation between each two."""

    value: int
    path: tuple[str, ...]

    @property
    def operations(self) -> int:
        return len(self.path) - 1


def lines_of(text: str) -> list[Line]:
    """Every line that gives a quantity, in order. Raises ValueError for one with "=" that is of no known form."""
    found = []
    for line in text.splitlines():
        if root := _ROOT.fullmatch(line):
            found.append(Line(root[1], None, int(root[2])))
        elif relation := _RELATION.fullmatch(line):
            found.append(Line(relation[1], relation[2], int(relation[3] + relation[4])))
        elif "=" in line:
            raise ValueError(f"a line can't be read: {line}")
    return found


def solve(text: str, asked: str) -> Solution:
    """Raises ValueError unless the text gives every quantity it names exactly once and none by itself: then each has one value."""
    given: dict[str, Line] = {}
    for line in lines_of(text):
        if line.name in given:
            raise ValueError(f"{line.name} is given twice")
        given[line.name] = line
    values: dict[str, int] = {}
    for name in (*given, asked):
        path = _path(given, name, values)
        for step in reversed(path):
            line = given[step]
            values[step] = line.number + (values[line.of] if line.of is not None else 0)
    return Solution(values[asked], tuple(_path(given, asked, {})))


def _path(given: dict[str, Line], start: str, known: dict[str, int]) -> list[str]:
    """Names from `start` until one that rests on a number, or on one that is known, which is left out."""
    path: dict[str, None] = {}
    name: str | None = start
    while name is not None and name not in known:
        if name in path:
            raise ValueError(f"{name} rests on itself")
        if name not in given:
            raise ValueError(f"{name} is not given")
        path[name] = None
        name = given[name].of
    return list(path)
