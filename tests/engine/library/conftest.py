"""A library of one's own for each test, on a disk in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.library.library import Library
from tests.engine.library.shelf import open_library
from tests.engine.store.memory_folder import memory_folder


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    yield from memory_folder()


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    opened = open_library(tmp_path / "home")
    yield opened
    opened.close()
