"""The files in texts/."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import LongshelfError
from engine.library.texts import TextRecord, Texts


@pytest.fixture
def texts(tmp_path: Path) -> Texts:
    return Texts(tmp_path / "texts")


RECORD = TextRecord({"id": "ab12cd34", "text": "한글 and \udcff", "spans": []}, {"ns": {"model": "m", "parts": []}})


def test_a_record_comes_back_as_it_was_saved(texts: Texts) -> None:
    texts.save(RECORD)
    assert texts.load("ab12cd34") == RECORD
    assert list(texts.ids()) == ["ab12cd34"]


def test_no_change_of_a_letter_goes_unnoticed(texts: Texts) -> None:
    texts.save(RECORD)
    path = texts.path("ab12cd34")
    path.write_bytes(path.read_bytes().replace(b" and ", b" end "))
    with pytest.raises(LongshelfError) as caught:
        texts.load("ab12cd34")
    assert caught.value.kind == "text_damaged"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"longshelf_text": 1}', b"\xff\xfe"])
def test_what_is_not_a_record_is_damaged(texts: Texts, content: bytes) -> None:
    texts.save(RECORD)
    texts.path("ab12cd34").write_bytes(content)
    with pytest.raises(LongshelfError) as caught:
        texts.load("ab12cd34")
    assert caught.value.kind == "text_damaged"


def test_a_record_under_another_name_is_damaged(texts: Texts) -> None:
    texts.save(RECORD)
    texts.path("ab12cd34").rename(texts.path("ffffffff"))
    with pytest.raises(LongshelfError) as caught:
        texts.load("ffffffff")
    assert caught.value.kind == "text_damaged"


def test_a_record_that_is_not_there_is_missing(texts: Texts) -> None:
    with pytest.raises(LongshelfError) as caught:
        texts.load("ab12cd34")
    assert caught.value.kind == "text_missing"
    assert list(texts.ids()) == []
    assert not texts.remove("ab12cd34")
