"""The commands doctor, gc and paths."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.home import Home
from engine.service.server import Host
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
    asked = ("ask", "book", "Who?", "--parts", "all", "--max-tokens", 4, "--json")
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
    assert done.status == 0
    assert [done.json[name] for name in ("segments", "joins", "forgotten", "would_forget", "temporaries", "bytes")] == [0, 0, [], [], 0, 0]
    assert done.json["bytes_used"] <= done.json["limit"]
    assert "0 segments" in shelf("gc").out


def test_a_quick_join_is_counted_given_up_first_and_goes_with_its_document(shelf: Longshelf) -> None:
    asked = ("ask", "book", "Who?", "--parts", "1,2", "--max-tokens", 2, "--json")
    before = shelf("paths", "--json").json["segments"]["bytes"]
    shelf("gc", "--down-to", before)  # sketches, which are older, would go before it
    assert shelf("doctor", "--json").json["bytes_used"] == before
    assert [shelf(*asked).json["document_tokens_prefilled"] > 0 for _ in range(2)] == [True, False]
    size = shelf("paths", "--json").json["sidecars"]["bytes"]
    assert shelf("doctor", "--deep", "--json").json["bytes_used"] == before + size > before
    done = shelf("gc", "--down-to", before, "--json").json
    assert (done["sidecars"], done["joins"], done["would_forget"], done["bytes"], done["bytes_used"]) == (1, 0, [], size, before)
    assert shelf(*asked).json["document_tokens_prefilled"] > 0
    assert shelf("remove", "book", "--json").json["bytes_freed"] == before + size
    assert not any(path.is_file() for path in shelf.home.sidecars.rglob("*"))


def test_a_damaged_quick_join_is_told_and_removed(shelf: Longshelf) -> None:
    asked = ("ask", "book", "Who?", "--parts", "1,2", "--max-tokens", 4, "--json")
    whole = shelf(*asked).json
    flip(max(shelf.home.sidecars.rglob("*.sidecar"), key=lambda path: path.stat().st_size))
    [problem] = shelf("doctor", "--deep", "--json").json["problems"]
    assert problem["kind"] == "sidecar_damaged"
    assert len(shelf("doctor", "--deep", "--repair", "--json").json["repaired"]) == 1
    again = shelf(*asked).json
    assert (again["token_ids"], again["document_tokens_prefilled"]) == (whole["token_ids"], whole["document_tokens_prefilled"])
    assert shelf("doctor", "--deep", "--json").json["problems"] == []


def test_paths_tell_where_everything_lies(shelf: Longshelf) -> None:
    places = shelf("paths", "--json").json
    assert places["home"]["path"] == str(shelf.home.root)
    assert places["segments"]["bytes"] == sum(path.stat().st_size for path in shelf.home.segments.rglob("*") if path.is_file())
    assert [places[name]["path"] for name in ("texts", "chats")] == [str(shelf.home.texts), str(shelf.home.chats)]
    assert str(shelf.home.models) in shelf("paths").out


# ---- room ----


def test_a_document_is_forgotten_and_read_again_from_its_kept_text(shelf: Longshelf, tmp_path: Path) -> None:
    asked = ("ask", "book", "Who?", "--parts", "1", "--max-tokens", 4, "--json")
    before = shelf(*asked).json
    (tmp_path / "book.txt").unlink()
    forgotten = shelf("remove", "book", "--keep-text", "--json").json
    assert (forgotten["title"], forgotten["segments_removed"]) == ("book", 2)
    [row] = shelf("list", "--json").json["documents"]
    assert (row["state"], row["bytes"], row["reason"]) == ("paused", 0, "forgotten")
    refused = shelf(*asked)
    assert (refused.status, refused.json["error"]["kind"]) == (1, "not_ready")
    assert f"longshelf add {row['id']}" in refused.json["error"]["hint"]
    assert shelf("add", row["id"]).status == 0
    again = shelf(*asked).json
    assert (again["token_ids"], again["document_tokens_prefilled"]) == (before["token_ids"], 0)
    assert shelf("chats", "list", "--json").json["chats"]


@pytest.mark.parametrize("name", ["book", "first", ""])
def test_what_was_forgotten_can_be_resumed_too(shelf: Longshelf, name: str) -> None:
    shelf("remove", "book", "--keep-text")
    document = shelf("list", "--json").json["documents"][0]
    named = {"book": "book", "first": document["id"], "": document["path"]}[name]
    assert shelf("jobs", "resume", named).status == 0
    assert shelf("list", "--json").json["documents"][0]["state"] == "ready"


def test_gc_gives_up_combinations_first_and_documents_only_with_leave(shelf: Longshelf, tmp_path: Path) -> None:
    shelf("add", book(tmp_path, 1, "one.txt", first=5), book(tmp_path, 1, "two.txt", first=6))
    together = ("ask", "one", "two", "Who?", "--max-tokens", 2, "--json")
    assert shelf(*together).json["document_tokens_prefilled"] > 0
    assert shelf(*together).json["document_tokens_prefilled"] == 0
    shelf("ask", "book", "Who?", "--max-tokens", 2)  # used last: it is given up last
    done = shelf("gc", "--down-to", 0, "--json").json
    assert (done["joins"], done["forgotten"]) == (1, [])
    assert [document["title"] for document in done["would_forget"]] == ["one", "two", "book"]
    assert "With --forget" in shelf("gc", "--down-to", 0).out
    size = shelf("list", "--json").json["documents"][0]["bytes"]
    done = shelf("gc", "--down-to", size + 100_000, "--forget", "--json").json
    assert [document["title"] for document in done["forgotten"]] == ["one", "two"]
    assert [row["state"] for row in shelf("list", "--json").json["documents"]] == ["ready", "paused", "paused"]
    assert shelf("doctor", "--deep", "--json").json["problems"] == []


def test_more_than_the_limit_is_not_read_until_the_limit_allows_it(shelf: Longshelf, tmp_path: Path) -> None:
    assert "400.0 KB" in shelf("settings", "limit", "400KB").out
    path = book(tmp_path, 3, "large.txt", first=5)
    held = shelf("add", path, "--json").json["documents"][0]
    assert (held["state"], held["error"]["kind"]) == ("paused", "limit")
    assert "longshelf settings limit" in held["error"]["hint"]
    assert shelf("jobs", "resume").status == 0
    assert shelf("list", "--json").json["documents"][1]["state"] == "paused"
    shelf("settings", "limit", "default")
    assert shelf("add", path, "--json").json["documents"][0]["state"] == "ready"


def test_settings_are_shown_chosen_and_refused(shelf: Longshelf) -> None:
    assert shelf("settings", "threads", "1", "--json").json["threads"] == 1
    assert shelf("settings", "limit", "1.5TB", "--json").json["limit_bytes"] == 1_500_000_000_000
    for words in (["limit", "much"], ["threads", "some"], ["threads", "0"], ["colour", "red"]):
        assert shelf("settings", *words).status == 2
    assert shelf("settings").out.split() == ["threads", "1", "limit", "1500.0", "GB"]


# ---- deleting everything ----


def test_everything_is_deleted_and_what_is_not_ours_is_left(shelf: Longshelf, tmp_path: Path) -> None:
    shelf("ask", "book", "Who?", "--max-tokens", 2)
    (shelf.home.root / "mine.txt").write_text("not Longshelf's")
    refused = shelf("paths", "--delete-everything", "--json")
    assert (refused.status, refused.json["error"]["kind"]) == (1, "not_confirmed")
    assert shelf("list", "--json").json["documents"]
    done = shelf("paths", "--delete-everything", "--yes", "--json").json
    assert (done["deleted"], done["left"]) == (True, [str(shelf.home.root / "mine.txt")])
    assert [path.name for path in shelf.home.root.iterdir()] == ["mine.txt"]
    assert (tmp_path / "book.txt").exists()


def test_a_home_with_nothing_else_in_it_is_gone(shelf: Longshelf) -> None:
    assert shelf("paths", "--delete-everything", "--yes").status == 0
    assert not shelf.home.root.exists()
    assert shelf("list", "--json").json == {"documents": []}


def test_nothing_is_deleted_under_an_engine_that_runs(shelf: Longshelf) -> None:
    host = Host(shelf.home)
    done = shelf("paths", "--delete-everything", "--yes", "--json")
    assert (done.status, done.json["error"]["kind"]) == (1, "locked")
    host.close()
    assert shelf("list", "--json").json["documents"]


def test_a_synced_folder_is_warned_of(tiny_home: Home, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    shelf = Longshelf(Home(tmp_path / "Dropbox" / "home"), capsys)
    for words in (["add", book(tmp_path, 1), "--no-read"], ["paths"], ["doctor"]):
        assert "keeps in step with other machines" in shelf(*words).err
