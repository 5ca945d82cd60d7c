"""Documents: kept with their text, found by id, path or title."""

from __future__ import annotations

import unicodedata

import pytest

from engine.errors import LongshelfError
from engine.library.library import Library
from tests.engine.library.shelf import new


def kind(asked: object, *arguments: object) -> str:
    with pytest.raises(LongshelfError) as caught:
        asked(*arguments)  # type: ignore[operator]
    return caught.value.kind


def test_a_document_comes_back_as_it_was_added(library: Library) -> None:
    added = library.documents.add(new("한글과 English\n"), state="queued", reason="because")
    assert library.documents.get(added.id) == added
    assert library.documents.text(added.id) == "한글과 English\n"
    assert (added.title, added.encoding_confident, added.spans) == ("Moby-Dick", True, [["section", "Loomings", 0, 12]])
    assert (added.state, added.reason, added.tokens) == ("queued", "because", 0)


def test_its_text_is_on_the_disk_before_its_row(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(record: object) -> None:
        raise LongshelfError("disk_full", "full")

    monkeypatch.setattr(library.texts, "save", broken)
    assert kind(library.documents.add, new()) == "disk_full"
    assert library.documents.all() == []


def test_it_is_found_by_id_path_and_title(library: Library) -> None:
    added = library.documents.add(new())
    library.documents.add(new(title="Emma"))
    for name in (added.id, added.path, "Moby-Dick", "moby-dick"):
        assert library.documents.find(name) == added


def test_a_title_that_two_have_is_ambiguous_and_one_that_none_has_is_not_found(library: Library) -> None:
    ids = [library.documents.add(new(path=f"/{number}/x.txt")).id for number in range(2)]
    with pytest.raises(LongshelfError) as caught:
        library.documents.find("Moby-Dick")
    assert caught.value.kind == "ambiguous"
    assert all(document_id in caught.value.hint for document_id in ids)
    for asked in (library.documents.find, library.documents.get, library.documents.text, library.documents.record):
        assert kind(asked, "nothing") == "not_found"


def test_a_title_in_decomposed_hangul_is_found_by_the_composed_one(library: Library) -> None:
    added = library.documents.add(new(title=unicodedata.normalize("NFD", "동백꽃")))
    assert library.documents.find("동백꽃") == added


def test_a_file_name_that_is_not_unicode_is_kept_readable(library: Library) -> None:
    path = b"/books/caf\xe9.txt".decode("utf-8", "surrogateescape")
    fields = new(path=path)
    added = library.documents.add(fields)
    assert added.path == "/books/caf?.txt"
    assert library.documents.with_path(path) == [added]


def test_new_content_of_a_changed_source_replaces_the_old(library: Library) -> None:
    added = library.documents.add(new("old text"))
    changed = library.documents.replace_content(added.id, new("new text, longer"))
    assert library.documents.text(added.id) == "new text, longer"
    assert changed.added_at == added.added_at
    assert changed.source_digest != added.source_digest
    assert library.texts.load(added.id).document["text"] == "new text, longer"


def test_states_tokens_and_titles_change_and_come_back_changed(library: Library) -> None:
    added = library.documents.add(new())
    assert library.documents.set_state(added.id, "paused", "the disk is full").reason == "the disk is full"
    assert library.documents.set_tokens(added.id, 42).tokens == 42
    assert library.documents.rename(added.id, "The Whale").title == "The Whale"
    assert library.texts.load(added.id).document["title"] == "The Whale"
    assert kind(library.documents.set_state, "nothing", "ready") == "not_found"


def test_a_state_that_does_not_exist_is_refused(library: Library) -> None:
    import sqlite3

    added = library.documents.add(new())
    with pytest.raises(sqlite3.IntegrityError):
        library.documents.set_state(added.id, "happy")


def test_ids_are_short_and_not_digits_alone(library: Library) -> None:
    for number in range(30):
        added = library.documents.add(new(title=str(number)))
        assert len(added.id) == 8
        assert not added.id.isdigit()


def test_the_encoding_that_was_named_is_kept_in_row_and_file(library: Library) -> None:
    added = library.documents.add(new())
    assert added.encoding_named is None
    assert library.documents.name_encoding(added.id, "cp949").encoding_named == "cp949"
    assert library.texts.load(added.id).document["encoding_named"] == "cp949"


def test_a_text_from_before_encodings_were_kept_makes_a_row(library: Library) -> None:
    added = library.documents.add(new())
    fields = library.texts.load(added.id).document
    del fields["encoding_named"]
    with library.catalog.transaction() as db:
        db.execute("DELETE FROM documents")
    assert library.documents.restore(fields) == added
