"""The daily copy of the catalog."""

from __future__ import annotations

import time

import pytest

from engine.library.backup import DAY_S, backup_path, is_whole
from engine.library.library import Library
from tests.engine.library.shelf import new


def test_one_copy_is_taken_a_day_while_the_catalog_is_in_use(library: Library) -> None:
    library.documents.add(new())
    assert library.catalog.back_up_daily()
    assert not library.catalog.back_up_daily()
    library.documents.add(new(title="Emma"))
    assert library.catalog.back_up_daily(now=time.time() + DAY_S + 1)


def test_the_copy_holds_what_was_committed_and_is_one_file(library: Library) -> None:
    from sqlite_utils import Database

    row = library.documents.add(new())
    library.catalog.back_up_daily()
    copy = backup_path(library.home.catalog)
    assert is_whole(copy)
    assert [found["id"] for found in Database(copy).query("SELECT id FROM documents")] == [row.id]
    names = {path.name for path in library.home.root.iterdir() if "backup" in path.name}
    assert names == {"catalog.backup.db"}


def test_a_copy_that_cannot_be_made_leaves_the_last_one(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.errors import LongshelfError
    from engine.store import durable

    library.catalog.back_up_daily()
    copy = backup_path(library.home.catalog)
    before = copy.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(durable, "sync_file", full)
    with pytest.raises(LongshelfError) as caught:
        library.catalog.back_up_daily(now=time.time() + 2 * DAY_S)
    assert caught.value.kind == "disk_full"
    assert copy.read_bytes() == before
    assert not library.temporaries()


def test_an_empty_or_foreign_file_is_not_whole(library: Library) -> None:
    stray = library.home.root / "stray.db"
    assert not is_whole(stray)
    stray.write_bytes(b"")
    assert not is_whole(stray)
    stray.write_bytes(b"no database" * 500)
    assert not is_whole(stray)
