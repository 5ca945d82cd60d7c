"""The commands doctor, gc and paths."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.home import Home
from tests.engine.books import PART, book
from tests.engine.commands.conftest import Longshelf


@pytest.fixture
def shelf(longshelf: Longshelf, tmp_path: Path) -> Longshelf:
    """With a book of two parts."""
    longshelf("add", book(tmp_path, 2), "--part-tokens", PART)
    return longshelf


def largest_segment(home: Home) -> Path:
    return max(home.segments.rglob("*.kv"), key=lambda path: path.stat().st_size)


def flip(path: Path, at: int = 5000) -> None:
    """Change one bit. A new file, as a disk that rots would show it: the old one may still be mapped."""
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def test_a_healthy_home_has_no_problems(shelf: Longshelf) -> None:
    report = shelf("doctor", "--deep", "--json").json
    assert report["problems"] == []
    assert report["tokens_prefilled_total"] == shelf("list", "--json").json["documents"][0]["tokens"]
    assert report["bytes_used"] > 0
    assert "All is well" in shelf("doctor").out


def test_a_flipped_byte_is_found_and_repaired(shelf: Longshelf) -> None:
    path = largest_segment(shelf.home)
    good = path.read_bytes()
    flip(path)
    assert len(shelf("doctor", "--deep", "--json").json["problems"]) == 1
    repaired = shelf("doctor", "--deep", "--repair", "--json").json
    assert len(repaired["repaired"]) == 1
    shelf("jobs", "resume")
    assert shelf("doctor", "--deep", "--json").json["problems"] == []
    assert path.read_bytes() == good


def test_after_a_flipped_byte_the_piece_is_read_again_and_never_served(shelf: Longshelf) -> None:
    asked = ("ask", "book", "Who?", "--parts", "1,2", "--max-tokens", 4, "--json")
    whole = shelf(*asked).json
    flip(largest_segment(shelf.home))
    again = shelf(*asked).json
    assert again["token_ids"] == whole["token_ids"]
    assert again["document_tokens_prefilled"] > 0
    assert shelf(*asked).json["document_tokens_prefilled"] == 0


def test_a_damaged_catalog_is_said_with_the_way_out(shelf: Longshelf) -> None:
    shelf.home.catalog.write_bytes(b"no database" * 1000)
    done = shelf("list", "--json")
    assert (done.status, done.json["error"]["kind"]) == (1, "catalog_damaged")
    assert "doctor --repair" in done.json["error"]["hint"]


def test_a_damaged_catalog_is_made_again_from_what_is_kept(shelf: Longshelf) -> None:
    shelf.home.catalog.write_bytes(b"no database" * 1000)
    assert shelf("doctor", "--json").json["problems"][0]["kind"] == "catalog_damaged"
    assert shelf("doctor", "--repair", "--json").json["rebuilt"]["documents"] == 1
    assert [row["state"] for row in shelf("list", "--json").json["documents"]] == ["ready"]
    assert shelf("ask", "book", "Who?", "--max-tokens", 4, "--json").json["document_tokens_prefilled"] == 0


def test_chats_outlive_a_catalog_that_is_destroyed(shelf: Longshelf) -> None:
    asked = shelf("ask", "book", "Who keeps lamp 1.3?", "--max-tokens", 4, "--json").json
    before = shelf("chats", "show", asked["chat"], "--json").json
    shelf.home.catalog.write_bytes(b"no database" * 1000)
    shelf.home.catalog.with_name("catalog.backup.db").unlink()
    assert shelf("doctor", "--repair", "--json").json["rebuilt"]["chats"] == 1
    assert shelf("chats", "show", asked["chat"], "--json").json == before
    assert shelf("doctor", "--deep", "--json").json["problems"] == []


def test_gc_removes_nothing_that_is_needed(shelf: Longshelf) -> None:
    done = shelf("gc", "--json")
    assert (done.status, done.json) == (0, {"segments": 0, "bytes": 0, "temporaries": 0})
    assert "0 segments" in shelf("gc").out


def test_paths_tell_where_everything_lies(shelf: Longshelf) -> None:
    places = shelf("paths", "--json").json
    assert places["home"]["path"] == str(shelf.home.root)
    assert places["segments"]["bytes"] == sum(path.stat().st_size for path in shelf.home.segments.rglob("*") if path.is_file())
    assert [places[name]["path"] for name in ("texts", "chats")] == [str(shelf.home.texts), str(shelf.home.chats)]
    assert str(shelf.home.models) in shelf("paths").out
