"""A home with a tiny random model, for tests of everything between a file and an answer; it reads a book in a fraction of a second."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import settings
from engine.home import Home
from engine.model.install import install_model
from engine.model.installed import Models
from engine.model.loaded import LoadedModel
from engine.retrieval import projections
from engine.shelf import Shelf
from tests.engine.model import tiny_gguf
from tests.engine.store.memory_folder import memory_folder

TINY_WINDOW = 4096


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The models folder of a home that has the model "tiny", ready for sketches: byte-level, window 4096. It never ends an answer by
    itself."""
    room = tmp_path_factory.mktemp("tiny-models")
    values = tiny_gguf.tensors()
    values["token_embd.weight"][: len(tiny_gguf.SPECIALS)] = 0  # tied: their logits are 0, far below the largest of the others
    home = Home(room / "home").open()
    install_model(home, tiny_gguf.write(room / "tiny.gguf", values, llama__context_length=TINY_WINDOW))
    projections.of(LoadedModel(Models(home).open()), lambda: None)
    return home.models


@pytest.fixture
def tiny_home(tiny_models: Path) -> Iterator[Home]:
    """A home of one's own with the model "tiny", on a disk in memory. One thread: two would only wait for each other."""
    for folder in memory_folder():
        home = Home(folder / "home").open()
        shutil.copytree(tiny_models, home.models, dirs_exist_ok=True)
        settings.change(home, {"threads": 1})
        yield home


@pytest.fixture
def tiny_shelf(tiny_home: Home) -> Iterator[Shelf]:
    """The engine of that home, in this process."""
    shelf = Shelf(tiny_home)
    yield shelf
    shelf.close()
