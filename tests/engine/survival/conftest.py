"""A stage on which the whole job is done, harmed and done again."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import settings
from engine.home import Home
from tests.engine.store.memory_folder import memory_folder
from tests.engine.survival.whole import Stage


@pytest.fixture
def stage(tiny_models: Path) -> Iterator[Stage]:
    for room in memory_folder():
        pristine = Home(room / "pristine").open()
        shutil.copytree(tiny_models, pristine.models, dirs_exist_ok=True)
        settings.change(pristine, {"threads": 1})
        yield Stage(pristine.root, room).prepare()
