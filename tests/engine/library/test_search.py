"""Full-text search, inside words of any script."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.library.library import Library
from engine.library.words import terms, without_particle
from tests.engine.library.shelf import MODEL, add, new, plans
from tests.engine.store.pieces import NAMESPACE


def ranked(library: Library, query: str, *document_ids: str) -> list[int]:
    """Ordinals of the parts found, best first."""
    chosen = list(document_ids) or [row.id for row in library.documents.all()]
    return [library.parts.get(part_id).ordinal for part_id, _ in library.search.rank_parts(query, chosen)]


def say(library: Library, *texts: str, title: str = "") -> str:
    chat = library.chats.create("tiny", title=title)
    for text in texts:
        library.chats.add_user_message(chat.id, None, text)
    return chat.id


def test_the_part_that_shares_the_rarest_words_comes_first(library: Library) -> None:
    add(library, "The whale swam. The whale dived. ", "The captain saw the whale. ", "A storm broke over the whale ship. ")
    assert ranked(library, "What did the captain see of the whale?")[0] == 1
    assert ranked(library, "Which storms broke?") == [2]


def test_words_are_found_in_other_forms_and_any_case(library: Library) -> None:
    add(library, "He rented a house at NETHERFIELD. ", "She was walking alone. ")
    assert ranked(library, "Who rents Netherfield?") == [0]
    assert ranked(library, "Who walks?") == [1]


def test_words_hidden_in_names_of_code_are_found(library: Library) -> None:
    add(library, "class JSONDecoder: pass", "class Encoder: pass")
    assert ranked(library, "Where is the decoder?") == [0]


def test_korean_words_are_found_whatever_particle_they_carry(library: Library) -> None:
    add(library, "점순이가 감자를 내밀었다. ", "닭이 마당에서 울었다. ", "법원은 이유를 밝혔다. ")
    assert ranked(library, "점순이는 무엇을 내밀었는가?") == [0]
    assert ranked(library, "닭을 보았다") == [1]
    assert ranked(library, "법원의 판단") == [2]
    assert ranked(library, "소의 값") == []
    assert ranked(library, "마당에서 닭을 보았다")[0] == 1


def test_japanese_is_found_without_spaces(library: Library) -> None:
    add(library, "ジョバンニは銀河鉄道に乗った。", "カムパネルラは川に落ちた。")
    assert ranked(library, "銀河鉄道に乗ったのは誰ですか")[0] == 0


def test_only_the_documents_and_the_model_asked_for_are_searched(library: Library) -> None:
    first, _ = add(library, "The whale swam.", title="First")
    second, _ = add(library, "The whale dived.", title="Second")
    library.parts.assign(first.id, "cd" * 32, "other", plans("The whale", " swam."))
    found = library.search.rank_parts("whale", [first.id], namespace=NAMESPACE)
    assert [library.parts.get(part_id).document_id for part_id, _ in found] == [first.id]
    assert len(library.search.rank_parts("whale", [first.id, second.id])) == 3
    assert library.search.rank_parts("whale", []) == []


def test_no_more_parts_are_given_than_asked_for(library: Library) -> None:
    row, _ = add(library, *(f"whale number {number}. " for number in range(9)))
    assert len(library.search.rank_parts("whale", [row.id], limit=4)) == 4


def finished(library: Library, text: str, namespace: str = NAMESPACE) -> str:
    """A document of one part that is read."""
    document = add(library, text)[0].id
    with library.catalog.transaction() as db:
        db.execute("UPDATE parts SET state = 'ready', namespace = ? WHERE document_id = ?", [namespace, document])
    return document


@pytest.mark.parametrize(
    ("question", "best"),
    [("Who rents the house?", 0), ("덕배는 무엇을 돌았는가?", 1), ("名高い観測所の名前は何か。", 2), ("Where is the decoder?", 3)],
)
def test_of_a_whole_library_the_document_that_shares_most_is_proposed_first(library: Library, question: str, best: int) -> None:
    texts = ["He rented a house.", "덕배가 마을을 돌았다.", "白鳥区に名高い観測所があった。", "class JSONDecoder: pass"]
    documents = [finished(library, text) for text in texts]
    finished(library, "Nothing of the kind.")
    assert library.search.propose(question, NAMESPACE)[:1] == [documents[best]]


def test_proposed_are_only_documents_that_the_model_has_read(library: Library) -> None:
    add(library, "A house that waits.")
    finished(library, "A house of another model.", namespace="another")
    read = finished(library, "A house.")
    assert library.search.propose("Which house?", NAMESPACE) == [read]


def test_no_more_documents_are_proposed_than_asked_for(library: Library) -> None:
    for number in range(5):
        finished(library, f"House {number}.")
    assert len(library.search.propose("house", NAMESPACE, limit=3)) == 3


@pytest.mark.parametrize("query", ["", "What is this about?", '"', "x OR", "NEAR(a b)", "*"])
def test_any_question_may_be_put_to_the_library(library: Library, query: str) -> None:
    finished(library, "House.")
    assert library.search.propose(query, NAMESPACE) == []


@pytest.mark.parametrize(
    "query", ["", "   ", "the of and", '"', 'x" OR "y', "NEAR(a b)", "a* -b ^c {d}", "%", "_", "은 는 이 가", "?" * 5000]
)
def test_any_question_can_be_searched_for_and_finds_only_its_own_words(library: Library, query: str) -> None:
    row, _ = add(library, "The whale swam.")
    say(library, "hello")
    assert library.search.rank_parts(query, [row.id]) == []
    assert library.search.find_messages(query) == []
    assert library.search.find_documents(query) == []
    assert library.search.find_chats(query) == []


def test_parts_that_are_gone_are_not_found(library: Library) -> None:
    row, _ = add(library, "The whale swam.")
    library.documents.replace_content(row.id, new("The shark swam."))
    library.parts.assign(row.id, NAMESPACE, MODEL, plans("The shark swam."))
    assert ranked(library, "whale") == []
    assert ranked(library, "shark") == [0]
    library.memory.remove_document(row.id)
    assert library.catalog.rows("SELECT count(*) AS count FROM part_texts") == [{"count": 0}]
    with library.catalog.transaction() as db:
        for index in ("parts_fts", "parts_words"):
            db.execute(f"INSERT INTO {index} ({index}, rank) VALUES ('integrity-check', 1)")


def test_messages_are_found_inside_words_even_by_one_syllable(library: Library) -> None:
    chat_id = say(library, "메밀꽃 필 무렵의 달밤", "아무 말도 없었다")
    for query in ("밀꽃", "달", "메밀꽃", "무렵 달밤"):
        (hit,) = library.search.find_messages(query)
        assert (hit.chat_id, hit.excerpt) == (chat_id, "메밀꽃 필 무렵의 달밤")
        assert hit.excerpt[hit.start : hit.end] == query.split()[0]
    assert library.search.find_messages("달밤 말도") == []


def test_special_characters_stand_for_themselves(library: Library) -> None:
    say(library, "100% sure", "100 sure", "snake_case", "snakeXcase", 'he said "no"')
    assert [hit.excerpt for hit in library.search.find_messages("0%")] == ["100% sure"]
    assert [hit.excerpt for hit in library.search.find_messages("_c")] == ["snake_case"]
    assert [hit.excerpt for hit in library.search.find_messages('"no"')] == ['he said "no"']


def test_an_excerpt_is_one_line_around_the_place(library: Library) -> None:
    say(library, "before\n" * 40 + "the Needle here" + "\nafter" * 40)
    (hit,) = library.search.find_messages("needle")
    assert "\n" not in hit.excerpt
    assert hit.excerpt[hit.start : hit.end] == "Needle"
    assert len(hit.excerpt) < 150


def test_chats_are_found_by_title_or_by_what_was_said(library: Library) -> None:
    first = say(library, "About the whale", title="Oceans")
    second = say(library, "About the storm", title="Whales")
    assert set(library.search.find_chats("whale")) == {first, second}
    assert library.search.find_chats("ocean") == [first]
    assert library.search.find_chats("석") == []


def test_text_that_an_answer_no_longer_has_is_not_found(library: Library) -> None:
    chat = library.chats.create("tiny")
    asked = library.chats.add_user_message(chat.id, None, "Who?")
    answer = library.chats.add_assistant_message(chat.id, asked.id)
    library.chats.keep_text(answer.id, "perhaps Ahab")
    library.chats.finish_message(answer.id, "Ishmael", "complete")
    assert library.search.find_messages("Ahab") == []
    assert [hit.role for hit in library.search.find_messages("Ishmael")] == ["assistant"]


def test_documents_are_found_by_name_first_and_by_text(library: Library) -> None:
    inside, _ = add(library, "All about Netherfield.", title="Notes")
    named, _ = add(library, "Nothing here.", title="Netherfield plans")
    uncut = library.documents.add(new("netherfield, not cut into parts", title="Raw"))
    korean = library.documents.add(new("감자를 내밀었다", title="동백꽃"))
    assert library.search.find_documents("netherfield") == [named.id, inside.id, uncut.id]
    assert library.search.find_documents("감자") == [korean.id]
    assert library.search.find_documents("백꽃") == [korean.id]
    assert library.search.find_documents("netherfield here") == [named.id]


@pytest.mark.parametrize(
    ("word", "stem"),
    [("점순이는", "점순이"), ("법원에서", "법원"), ("학교에서는", "학교"), ("나이", "나이"), ("소를", "소를"), ("사람", "사람")],
)
def test_korean_particles_are_taken_off_and_stems_left(word: str, stem: str) -> None:
    assert without_particle(word) == stem


def test_words_that_say_nothing_are_left_out_and_there_is_an_end_to_terms() -> None:
    assert terms("What is the Name of it, and who is 그는 무엇인가").words == ("name",)
    many = terms(" ".join(f"word{number}" for number in range(1000)))
    assert len(many.words) == 64


def test_parts_of_real_books_hold_the_answers_of_real_questions(library: Library, corpus: Path) -> None:
    """The part of the right passage is among the first three for every question about the books in two languages."""
    asked = [json.loads(line) for line in (corpus / "qa.jsonl").read_text("utf-8").splitlines()]
    for name in ("alice-in-wonderland.txt", "notes-on-nursing.txt", "레디메이드인생.txt", "동백꽃.txt"):
        mine = [question for question in asked if question["file"] == name]
        text = (corpus / name).read_bytes().decode(mine[0]["encoding"]).replace("\r\n", "\n")
        size = 8000 if text.isascii() or "the" in text else 2500
        parts = [text[at : at + size] for at in range(0, len(text), size)]
        row, _ = add(library, *parts, title=name)
        for question in mine:
            assert question["offset_lf"] // size in ranked(library, question["question"], row.id)[:3], question["question"]
