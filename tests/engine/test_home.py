"""The home folder: made private, tagged, and nothing of it believed that another home says."""

from __future__ import annotations

import shutil
import stat
import sys
from pathlib import Path

import pytest

from engine.home import CACHEDIR_TAG, Home


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.skipif(sys.platform == "win32", reason="modes")
def test_a_home_is_private_and_stays_so_when_it_is_copied(tmp_path: Path) -> None:
    home = Home(tmp_path / "home").open()
    assert [mode(path) for path in (home.root, home.models, home.segments, home.cache)] == [0o700] * 4
    assert home.tag.read_text() == CACHEDIR_TAG
    shutil.copytree(home.root, tmp_path / "copy")
    (tmp_path / "copy").chmod(0o755)
    assert mode(Home(tmp_path / "copy").open().root) == 0o700
