"""Where a home should not lie."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from engine.store.place import warnings


def test_an_ordinary_folder_is_fine(tmp_path: Path) -> None:
    assert warnings(tmp_path) == []


@pytest.mark.parametrize("name", ["Dropbox", "OneDrive - Company", "Google Drive", "Nextcloud", "Dropbox (Personal)"])
def test_a_folder_kept_in_step_with_other_machines_is_told_by_its_name(tmp_path: Path, name: str) -> None:
    (warning,) = warnings(tmp_path / name / "longshelf")
    assert str(tmp_path / name) in warning


def test_or_by_what_lies_in_it(tmp_path: Path) -> None:
    (tmp_path / ".stfolder").mkdir()
    (tmp_path / "home").mkdir()
    assert len(warnings(tmp_path / "home")) == 1


def test_a_network_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = [SimpleNamespace(mountpoint="/", fstype="ext4"), SimpleNamespace(mountpoint=str(tmp_path), fstype="nfs4")]
    monkeypatch.setattr(psutil, "disk_partitions", lambda all: mounts)
    (warning,) = warnings(tmp_path / "home")
    assert "nfs4" in warning
