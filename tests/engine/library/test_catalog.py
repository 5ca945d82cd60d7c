"""The catalog file: made, upgraded, refused, and found damaged before anything is believed."""

from __future__ import annotations

import sqlite3
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from sqlite_utils import Database

from engine.errors import LongshelfError
from engine.library import catalog as catalog_module
from engine.library.backup import is_whole
from engine.library.catalog import Catalog
from engine.library.migrations import migrations


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "catalog.db"


def filled(path: Path, rows: int = 2000) -> None:
    catalog = Catalog.open(path)
    with catalog.transaction() as db:
        for number in range(rows):
            db.execute("INSERT INTO counters (name, value) VALUES (?, ?)", [f"counter {number}", number])
    catalog.close()


def kind_of_opening(path: Path) -> str:
    with pytest.raises(LongshelfError) as caught:
        Catalog.open(path)
    assert caught.value.hint
    return caught.value.kind


def test_all_tables_are_strict_and_every_connection_is_set_up_alike(path: Path) -> None:
    catalog = Catalog.open(path)
    own = [table for table in catalog.db.tables if "_fts" not in table.name and "_words" not in table.name]
    assert {table.name for table in own if not table.strict} <= {"_sqlite_migrations", "sqlite_sequence"}
    pragmas = {name: catalog.rows(f"PRAGMA {name}")[0].popitem()[1] for name in ("journal_mode", "foreign_keys", "synchronous")}
    assert pragmas == {"journal_mode": "wal", "foreign_keys": 1, "synchronous": 2}
    catalog.close()


def test_opening_again_changes_nothing(path: Path) -> None:
    filled(path)
    before = path.read_bytes()
    Catalog.open(path).close()
    assert path.read_bytes() == before


def test_a_newer_schema_is_refused_and_left_alone(path: Path) -> None:
    filled(path)
    db = Database(path)
    record = {"migration_set": "longshelf", "name": "m999_from_the_future", "applied_at": "2030"}
    db.table("_sqlite_migrations").insert(record)
    db.close()
    before = path.read_bytes()
    assert kind_of_opening(path) == "newer_home"
    assert path.read_bytes() == before


def test_an_older_schema_is_brought_up_to_date_and_kept_as_it_was(path: Path) -> None:
    db = Database(path)
    migrations.apply(db, stop_before="m004_chats")
    db.execute("INSERT INTO counters (name, value) VALUES ('old', 7)")
    db.close()
    catalog = Catalog.open(path)
    assert catalog.rows("SELECT value FROM counters") == [{"value": 7}]
    assert catalog.rows("SELECT count(*) AS count FROM chats") == [{"count": 0}]
    catalog.close()
    kept = path.with_name("catalog.before-m004_chats.db")
    assert is_whole(kept)
    assert "chats" not in Database(kept).table_names()


def test_an_upgrade_that_fails_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    db = Database(path)
    migrations.apply(db, stop_before="m004_chats")
    tables = db.table_names()
    db.close()
    broken = type(migrations)("longshelf")
    broken._migrations = list(migrations._migrations)

    @broken()
    def m006_broken(db: Database) -> None:
        db.execute("CREATE TABLE half (id INTEGER)")
        raise RuntimeError("half-way")

    monkeypatch.setattr(catalog_module, "migrations", broken)
    with pytest.raises(RuntimeError, match="half-way"):
        Catalog.open(path)
    assert Database(path).table_names() == tables


def test_two_threads_that_open_a_new_home_make_one_catalog(path: Path) -> None:
    failures: list[BaseException] = []

    def open_it() -> None:
        try:
            Catalog.open(path).close()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=open_it) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    Catalog.open(path).check(deep=True)


@pytest.mark.parametrize("damage", ["garbage", "cut in half", "cut to 1000 bytes", "cut to 1 byte", "header", "page"])
def test_a_damaged_catalog_is_refused_with_the_next_step(path: Path, damage: str) -> None:
    filled(path)
    content = bytearray(path.read_bytes())
    if damage == "garbage":
        content = bytearray(b"not a database at all" * 1000)
    elif damage == "cut in half":
        content = content[: len(content) // 2]
    elif damage.startswith("cut to"):
        content = content[: int(damage.split()[2])]
    elif damage == "header":
        content[0] ^= 0xFF
    else:
        root = Database(path).execute("SELECT rootpage FROM sqlite_master WHERE name = 'counters'").fetchone()[0]
        content[(root - 1) * 4096 : (root - 1) * 4096 + 64] = b"\xff" * 64
    path.write_bytes(content)
    assert kind_of_opening(path) == "catalog_damaged"


def test_damage_met_later_is_named_too(path: Path) -> None:
    filled(path)
    catalog = Catalog.open(path)
    root = catalog.db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'counters'").fetchone()[0]
    with path.open("r+b") as file:
        file.seek((root - 1) * 4096)
        file.write(b"\xff" * 64)
    catalog.close()  # this thread's connection, with the pages it has read
    with pytest.raises(LongshelfError) as caught:
        catalog.rows("SELECT * FROM counters ORDER BY value")
    assert caught.value.kind == "catalog_damaged"


def fail_half_way(catalog: Catalog) -> None:
    with catalog.transaction() as db:
        db.execute("INSERT INTO counters (name, value) VALUES ('half', 1)")
        raise RuntimeError("half-way")


def test_a_transaction_that_fails_changes_nothing(path: Path) -> None:
    catalog = Catalog.open(path)
    with pytest.raises(RuntimeError, match="half-way"):
        fail_half_way(catalog)
    assert catalog.rows("SELECT * FROM counters") == []


def test_a_transaction_inside_another_is_part_of_it(path: Path) -> None:
    catalog = Catalog.open(path)
    with catalog.transaction() as db:
        db.execute("INSERT INTO counters (name, value) VALUES ('outer', 1)")
        with pytest.raises(RuntimeError, match="half-way"):
            fail_half_way(catalog)
    assert catalog.rows("SELECT name FROM counters") == [{"name": "outer"}]


def test_threads_write_at_once_without_losing_anything(path: Path) -> None:
    from engine.library.counters import Counters

    catalog = Catalog.open(path)

    def count() -> None:
        for _ in range(20):
            Counters(catalog).increment("shared")
        catalog.close()

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counters(catalog).all() == {"shared": 80}


def test_a_mistake_of_ours_is_not_blamed_on_the_file(path: Path) -> None:
    catalog = Catalog.open(path)
    with pytest.raises(sqlite3.OperationalError), catalog.transaction() as db:
        db.execute("SELECT nonsense FROM nowhere")
    with pytest.raises(sqlite3.IntegrityError), catalog.transaction() as db:
        db.execute("INSERT INTO counters (name, value) VALUES ('a', 'not a number')")


def test_a_catalog_that_cannot_be_opened_names_the_home(tmp_path: Path) -> None:
    assert kind_of_opening(tmp_path / "nowhere" / "catalog.db") == "home"


def test_a_full_disk_is_named_and_nothing_is_half_written(path: Path) -> None:
    catalog = Catalog.open(path)
    pages = catalog.db.execute("PRAGMA page_count").fetchone()[0]
    catalog.db.execute(f"PRAGMA max_page_count = {pages + 2}").fetchone()

    def fill() -> None:
        with catalog.transaction() as db:
            for number in range(1000):
                db.execute("INSERT INTO counters (name, value) VALUES (?, 1)", [f"{number}" * 50])

    with pytest.raises(LongshelfError) as caught:
        fill()
    assert caught.value.kind == "disk_full"
    assert catalog.rows("SELECT * FROM counters") == []


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits on the size of files")
def test_a_disk_without_room_for_the_log_is_called_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import resource
    import signal

    Catalog.open(tmp_path / "catalog.db").close()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))  # as on a full disk, SQLite can't make its companions
    try:
        with pytest.raises(LongshelfError) as on_a_roomy_disk:
            Catalog.open(tmp_path / "catalog.db")
        monkeypatch.setattr("engine.store.space.shutil.disk_usage", lambda folder: SimpleNamespace(total=10**9, used=10**9, free=0))
        with pytest.raises(LongshelfError) as on_a_full_one:
            Catalog.open(tmp_path / "catalog.db")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert (on_a_roomy_disk.value.kind, on_a_full_one.value.kind) == ("home", "disk_full")
