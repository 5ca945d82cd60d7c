"""Tests of the store run on a disk in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.store.memory_folder import memory_folder


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    yield from memory_folder()
