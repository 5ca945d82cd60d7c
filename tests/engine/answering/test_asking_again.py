"""Questions at the edges: long chats, chats whose documents went, joins that were damaged, options out of bounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import LongshelfError
from engine.shelf import Call, Shelf
from tests.engine.books import add, ask, book


def test_a_long_chat_leaves_room_for_the_answer(tiny_shelf: Shelf, tmp_path: Path) -> None:
    document = add(tiny_shelf, book(tmp_path, 1))["id"]
    chat = ask(tiny_shelf, document)["chat"]
    for n in range(9):
        answer = ask(tiny_shelf, chat=chat, question=f"{n} {'why ' * 120}", max_tokens=64, temperature=1.0, seed=n)
        assert answer["generated_tokens"] == 64


def test_a_chat_about_all_documents_goes_on_with_them(tiny_shelf: Shelf, tmp_path: Path) -> None:
    add(tiny_shelf, book(tmp_path, 1), book(tmp_path, 1, "second.txt", first=30))
    first = ask(tiny_shelf, all=True)
    assert ask(tiny_shelf, chat=first["chat"])["parts_total"] == first["parts_total"] == 2


def test_a_chat_goes_on_without_a_document_that_was_removed_and_names_it_when_it_was_the_last(tiny_shelf: Shelf, tmp_path: Path) -> None:
    rows = tiny_shelf.call("documents.add", {"paths": [str(book(tmp_path, 1)), str(book(tmp_path, 1, "second.txt", first=30))]}, Call())
    first, second = (row["id"] for row in rows["documents"])
    chat = ask(tiny_shelf, first, second)["chat"]
    tiny_shelf.call("documents.remove", {"id": first}, Call())
    assert [part["document"] for part in ask(tiny_shelf, chat=chat)["parts_read"]] == [second]
    tiny_shelf.call("documents.remove", {"id": second}, Call())
    with pytest.raises(LongshelfError, match="second"):
        ask(tiny_shelf, chat=chat)


def test_a_damaged_join_is_read_again_at_once_and_answers_the_same(tiny_shelf: Shelf, tmp_path: Path) -> None:
    rows = tiny_shelf.call("documents.add", {"paths": [str(book(tmp_path, 1)), str(book(tmp_path, 1, "second.txt", first=30))]}, Call())
    names = [row["id"] for row in rows["documents"]]
    before = ask(tiny_shelf, *names)
    path = tiny_shelf.library.store.path(tiny_shelf.library.joins.all()[0].segments[0])
    content = bytearray(path.read_bytes())
    content[9000] ^= 1
    path.unlink()
    path.write_bytes(content)
    after = ask(tiny_shelf, *names)
    assert after["token_ids"] == before["token_ids"]
    assert after["document_tokens_prefilled"] == before["document_tokens_prefilled"] > 0
    assert ask(tiny_shelf, *names)["document_tokens_prefilled"] == 0


def test_a_part_named_twice_is_read_once(tiny_shelf: Shelf, tmp_path: Path) -> None:
    document = add(tiny_shelf, book(tmp_path, 2))["id"]
    assert [part["part"] for part in ask(tiny_shelf, document, parts=[2, 2])["parts_read"]] == [2]


def test_an_answer_may_be_as_long_as_the_window_whatever_is_asked_for(tiny_shelf: Shelf, tmp_path: Path) -> None:
    document = add(tiny_shelf, book(tmp_path, 1))["id"]
    call = Call()
    call.emit = lambda name, data: call.stop.set() if name == "token" else None
    assert ask(tiny_shelf, document, call=call, max_tokens=10**12)["stopped"]


def test_a_seed_beyond_64_bits_is_refused(tiny_shelf: Shelf, tmp_path: Path) -> None:
    document = add(tiny_shelf, book(tmp_path, 1))["id"]
    with pytest.raises(LongshelfError, match="--seed"):
        ask(tiny_shelf, document, temperature=1.0, seed=2**70)
