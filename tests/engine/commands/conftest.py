"""The command line as a person or a script uses it, on a home with the tiny model."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from engine.cli import main
from engine.home import Home


@dataclass(frozen=True)
class Done:
    """What a command left: its exit status and what it printed."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one object on stdout."""
        value: dict[str, Any] = json.loads(self.out)
        assert self.out.count("\n") == 1
        return value

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The objects on stdout, one a line."""
        return [json.loads(line) for line in self.out.splitlines()]


class Longshelf:
    """`longshelf --home HOME …`, in this process."""

    def __init__(self, home: Home, capsys: pytest.CaptureFixture[str]) -> None:
        self.home = home
        self._capsys = capsys

    def __call__(self, *arguments: object) -> Done:
        self._capsys.readouterr()
        status = main(["--home", str(self.home.root), *map(str, arguments)])
        printed = self._capsys.readouterr()
        return Done(status, printed.out, printed.err)


@pytest.fixture
def longshelf(tiny_home: Home, capsys: pytest.CaptureFixture[str]) -> Iterator[Longshelf]:
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield Longshelf(tiny_home, capsys)
    for number, handler in handlers.items():
        signal.signal(number, handler)
