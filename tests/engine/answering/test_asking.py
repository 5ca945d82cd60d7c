"""A question from end to end: what the result says is true, and chats keep it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine.answering.generate import Attended
from engine.answering.prompt import Prompts
from engine.answering.reader import surplus
from engine.errors import LongshelfError, Stopped
from engine.home import Home
from engine.library.conversation import Message
from engine.library.transcripts import Transcripts
from engine.shelf import Call, Shelf
from tests.engine.books import Row, add, ask, book, listen

LONG = {"max_tokens": 3000}


@pytest.fixture
def document(tiny_shelf: Shelf, tmp_path: Path) -> str:
    """The id of a book of three parts."""
    return str(add(tiny_shelf, book(tmp_path, 3))["id"])


@pytest.fixture
def pair(tiny_shelf: Shelf, tmp_path: Path) -> list[str]:
    """The ids of two books of one part each."""
    return [str(add(tiny_shelf, book(tmp_path, 1, f"{n}.txt", first=n))["id"]) for n in (1, 2)]


def messages(shelf: Shelf, chat: str) -> list[Message]:
    return shelf.library.chats.messages(chat)


def refused(shelf: Shelf, *documents: str, **params: object) -> LongshelfError:
    with pytest.raises(LongshelfError) as error:
        ask(shelf, *documents, **params)
    return error.value


# ---- the result ----


def test_no_document_token_is_prefilled_again(tiny_shelf: Shelf, document: str) -> None:
    before = tiny_shelf.call("doctor", {}, Call())["tokens_prefilled_total"]
    result = ask(tiny_shelf, document)
    assert result["document_tokens_prefilled"] == 0
    assert tiny_shelf.call("doctor", {}, Call())["tokens_prefilled_total"] == before


def test_the_answer_is_the_text_of_its_tokens(tiny_shelf: Shelf, document: str) -> None:
    result = ask(tiny_shelf, document, max_tokens=40)
    assert result["answer"] == tiny_shelf.model()[0].tokenizer.decode(result["token_ids"])
    assert result["generated_tokens"] == len(result["token_ids"])


def test_what_streams_is_the_answer(tiny_shelf: Shelf, document: str) -> None:
    events: list[tuple[str, Row]] = []
    result = ask(tiny_shelf, document, call=listen(events), max_tokens=40)
    assert "".join(data["text"] for name, data in events if name == "token") == result["answer"]


def test_an_answer_that_ran_into_the_limit_is_cut(tiny_shelf: Shelf, document: str) -> None:
    result = ask(tiny_shelf, document, max_tokens=5)
    assert (result["cut"], result["stopped"], len(result["token_ids"])) == (True, False, 5)


def test_the_result_says_what_answered_and_how(tiny_shelf: Shelf, document: str) -> None:
    result = ask(tiny_shelf, document)
    assert (result["mode"], result["model"], result["device"], result["dtype"]) == ("exact", "tiny", "cpu", "bfloat16")
    assert (result["trial_model"], result["acceptance_rate"], result["error_measured"]) == (False, None, 0.0)
    assert (result["keys_read_fraction"], result["rows_read_fraction"]) == (1.0, 1.0)


def test_the_likeliest_part_is_read_and_what_choosing_cost_is_counted(tiny_shelf: Shelf, document: str) -> None:
    result = ask(tiny_shelf, document, question="Ward2003")
    assert ([read["part"] for read in result["parts_read"]], result["parts_total"]) == ([2], 3)
    assert result["parts_read"][0] == {"document": document, "part": 2, "first": "CHAPTER 2", "last": "CHAPTER 2"}
    assert result["routing_tokens"] > 0
    assert result["routing_bytes"] > result["reused_tokens"] * tiny_shelf.models.open().config.kv_bytes_per_token


def test_a_document_of_one_part_needs_no_choosing(tiny_shelf: Shelf, pair: list[str]) -> None:
    events: list[tuple[str, Row]] = []
    result = ask(tiny_shelf, pair[0], call=listen(events))
    assert "choosing" not in [data["name"] for name, data in events if name == "phase"]
    assert (result["routing_s"], len(result["parts_read"])) == (0.0, 1)


def test_how_well_the_one_part_fits_is_measured_behind_it_and_behind_nothing(tiny_shelf: Shelf, pair: list[str]) -> None:
    model = tiny_shelf.model()[0]
    probe = sum(map(len, Prompts(model.card, model.tokenizer).question_probe("Who keeps lamp 1.3?")))
    result = ask(tiny_shelf, pair[0])
    assert result["routing_tokens"] == 2 * probe
    assert result["routing_bytes"] == (result["reused_tokens"] + 2 * probe) * model.config.kv_bytes_per_token


def test_reused_tokens_are_those_of_the_chain(tiny_shelf: Shelf, document: str) -> None:
    part = tiny_shelf.library.parts.of(document)[1]
    result = ask(tiny_shelf, document, parts=[2])
    assert result["reused_tokens"] == part.tokens + len(tiny_shelf.models.open().card.preamble.ids)


def test_bytes_read_are_those_of_chain_and_tail_at_every_step(tiny_shelf: Shelf, document: str) -> None:
    """Once for the prompt, once for each token of the answer; the chain is read each time."""
    result = ask(tiny_shelf, document, parts=[2], max_tokens=4)
    per_token = tiny_shelf.models.open().config.kv_bytes_per_token
    chain, prompt = result["reused_tokens"], result["prompt_tokens_prefilled"]
    assert result["kv_bytes_read"] == per_token * sum(chain + prompt + n for n in range(5))


def test_the_same_question_gets_the_same_answer(tiny_shelf: Shelf, document: str) -> None:
    assert ask(tiny_shelf, document, max_tokens=30)["token_ids"] == ask(tiny_shelf, document, max_tokens=30)["token_ids"]


def test_a_new_engine_gives_the_same_answer(tiny_home: Home, tmp_path: Path) -> None:
    answers = []
    for _ in range(2):
        shelf = Shelf(tiny_home)
        answers.append(ask(shelf, add(shelf, book(tmp_path, 2))["id"], max_tokens=30)["token_ids"])
        shelf.close()
    assert answers[0] == answers[1]


def test_a_seed_draws_the_same_answer_and_is_told(tiny_shelf: Shelf, document: str) -> None:
    first = ask(tiny_shelf, document, temperature=3.0)
    assert ask(tiny_shelf, document, temperature=3.0, seed=first["seed"])["token_ids"] == first["token_ids"]


def test_citations_quote_the_document_at_their_offsets(tiny_shelf: Shelf, document: str) -> None:
    text = tiny_shelf.library.documents.text(document)
    citations = ask(tiny_shelf, document, question="Who keeps Lamp 2.3?", parts=[2])["citations"]
    assert [citation["number"] for citation in citations] == list(range(1, len(citations) + 1))
    for citation in citations:
        assert text[citation["start"] : citation["end"]] == citation["quote"]
        assert (citation["document"], citation["part"], citation["section"], citation["page"]) == (document, 2, "CHAPTER 2", None)
        assert citation["line"] == text[: citation["start"]].count("\n") + 1
        assert 0 < citation["score"] <= 1


# ---- parts and documents ----


def test_every_part_is_asked_where_all_are_wanted(tiny_shelf: Shelf, document: str) -> None:
    events: list[tuple[str, Row]] = []
    result = ask(tiny_shelf, document, parts="all", call=listen(events))
    assert [read["part"] for read in result["parts_read"]] == [1, 2, 3]
    done = [data["parts_done"] for name, data in events if name == "phase" and data["name"] == "reading_parts"]
    assert done == [0, 1, 2]
    assert result["document_tokens_prefilled"] == 0


def test_parts_that_are_not_there_are_named_with_those_that_are(tiny_shelf: Shelf, document: str) -> None:
    error = refused(tiny_shelf, document, parts=[2, 9])
    assert (error.kind, "2, 9" in error.message, "1-3" in error.hint) == ("usage", True, True)


def test_parts_cannot_be_named_for_several_documents(tiny_shelf: Shelf, pair: list[str]) -> None:
    error = refused(tiny_shelf, *pair, parts=[1])
    assert (error.kind, error.hint) == ("usage", "")
    assert error.message == "Parts can be named for one document at a time; leave --parts out to ask several."
    assert tiny_shelf.library.chats.all() == []
    assert refused(tiny_shelf, all=True, parts=[1]).message == error.message
    one = ask(tiny_shelf, pair[0], pair[0], parts=[1])
    assert one["parts_read"][0]["part"] == 1
    assert refused(tiny_shelf, chat=one["chat"], all=True, parts=[1]).message == error.message


def test_small_documents_are_read_together_and_that_once(tiny_shelf: Shelf, pair: list[str]) -> None:
    events: list[tuple[str, Row]] = []
    first, second = ask(tiny_shelf, *pair, call=listen(events)), ask(tiny_shelf, *pair)
    joining = [data for name, data in events if name == "phase" and data["name"] == "joining"]
    assert [data["tokens"] for data in joining] == [first["document_tokens_prefilled"]]
    assert first["document_tokens_prefilled"] == tiny_shelf.library.parts.of(pair[1])[0].tokens
    assert second["document_tokens_prefilled"] == 0
    assert second["token_ids"] == first["token_ids"]
    assert {read["document"] for read in first["parts_read"]} == set(pair)


def test_citations_of_documents_read_together_stand_in_their_own(tiny_shelf: Shelf, pair: list[str]) -> None:
    citations = ask(tiny_shelf, *pair, question="Lamp 2.7 Ward2007")["citations"]
    assert pair[1] in [citation["document"] for citation in citations]
    for citation in citations:
        text = tiny_shelf.library.documents.text(citation["document"])
        assert text[citation["start"] : citation["end"]] == citation["quote"]


def test_a_document_named_twice_is_read_once(tiny_shelf: Shelf, pair: list[str]) -> None:
    result = ask(tiny_shelf, pair[0], pair[0])
    assert (len(result["parts_read"]), result["document_tokens_prefilled"]) == (1, 0)


def test_a_document_can_be_asked_by_its_title(tiny_shelf: Shelf, document: str) -> None:
    assert ask(tiny_shelf, "book")["parts_read"][0]["document"] == document


# ---- stopping ----


def stopping_at(event: str) -> Call:
    """A call that is stopped at the first event of this name."""
    call = Call()
    call.emit = lambda name, data: call.stop.set() if name == event else None
    return call


def test_a_stopped_answer_is_kept_as_far_as_it_came(tiny_shelf: Shelf, document: str) -> None:
    result = ask(tiny_shelf, document, call=stopping_at("token"), **LONG)
    assert (result["stopped"], result["cut"]) == (True, False)
    answer = messages(tiny_shelf, result["chat"])[-1]
    assert (answer.status, answer.text) == ("stopped", result["answer"])
    assert 0 < result["generated_tokens"] < 100


def test_a_question_stopped_before_its_answer_stands_with_an_empty_one(tiny_shelf: Shelf, document: str) -> None:
    with pytest.raises(Stopped):
        ask(tiny_shelf, document, call=stopping_at("started"), **LONG)
    [chat] = tiny_shelf.library.chats.all()
    question, answer = messages(tiny_shelf, chat.id)
    assert (question.status, answer.status, answer.text) == ("complete", "stopped", "")


# ---- chats ----


def test_the_question_is_saved_before_the_engine_sees_it(tiny_shelf: Shelf, document: str) -> None:
    seen: list[tuple[str, str, str]] = []

    def look(name: str, data: Row) -> None:
        if name == "started":
            seen.extend((message.role, message.text, message.status) for message in messages(tiny_shelf, data["chat"]))

    ask(tiny_shelf, document, call=listen([], look), question="Who keeps lamp 2.3?")
    assert seen == [("user", "Who keeps lamp 2.3?", "complete"), ("assistant", "", "pending")]


def test_the_question_is_in_the_file_of_its_chat_before_the_engine_answers(tiny_shelf: Shelf, document: str) -> None:
    seen: list[str] = []

    def look(name: str, data: Row) -> None:
        if name == "started":
            kept = Transcripts(tiny_shelf.home.chats).load(data["chat"])
            seen.extend(message["text"] for message in kept.messages)

    ask(tiny_shelf, document, call=listen([], look), question="Who keeps lamp 2.3?")
    assert seen == ["Who keeps lamp 2.3?", ""]


def test_the_answer_is_saved_with_its_numbers_and_sources(tiny_shelf: Shelf, document: str) -> None:
    result = ask(tiny_shelf, document, question="Who keeps lamp 2.3?")
    shown = tiny_shelf.call("chats.show", {"id": result["chat"]}, Call())
    answer = shown["messages"][1]
    assert (answer["id"], answer["parent_id"]) == (result["assistant_message"], result["user_message"])
    assert (answer["text"], answer["status"]) == (result["answer"], "complete")
    assert answer["meta"]["reused_tokens"] == result["reused_tokens"]
    cited = [(citation["start"], citation["end"], citation["quote"], citation["part"]) for citation in answer["citations"]]
    assert cited == [(citation["start"], citation["end"], citation["quote"], citation["part"]) for citation in result["citations"]]
    assert (shown["title"], shown["documents"]) == ("Who keeps lamp 2.3?", [document])


def test_a_question_that_failed_stands_with_the_reason(tiny_shelf: Shelf, document: str) -> None:
    assert refused(tiny_shelf, document, question="?" * 5000).kind == "too_long"
    [chat] = tiny_shelf.library.chats.all()
    question, answer = messages(tiny_shelf, chat.id)
    assert (question.text, answer.status) == ("?" * 5000, "failed")
    assert "5000 tokens" in answer.meta["reason"]


def test_a_fault_of_ours_leaves_the_question_standing(tiny_shelf: Shelf, document: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fault(*given: object, **named: object) -> None:
        raise RuntimeError("a fault")

    monkeypatch.setattr(tiny_shelf.model()[0].decoder, "forward", fault)
    with pytest.raises(RuntimeError):
        ask(tiny_shelf, document)
    [chat] = tiny_shelf.library.chats.all()
    assert [message.status for message in messages(tiny_shelf, chat.id)] == ["complete", "failed"]


def test_a_follow_up_knows_what_was_said(tiny_shelf: Shelf, document: str) -> None:
    first = ask(tiny_shelf, document, parts=[2])
    again = ask(tiny_shelf, document, parts=[2], question="And lamp 2.4?")
    after = ask(tiny_shelf, chat=first["chat"], parts=[2], question="And lamp 2.4?")
    assert after["chat"] == first["chat"]
    said = len(tiny_shelf.model()[0].tokenizer.encode_ids("Who keeps lamp 1.3?" + first["answer"]))
    assert after["prompt_tokens_prefilled"] > again["prompt_tokens_prefilled"] + said - 10
    assert [message.role for message in messages(tiny_shelf, first["chat"])] == ["user", "assistant"] * 2


def test_a_follow_up_stands_under_the_last_answer(tiny_shelf: Shelf, document: str) -> None:
    first = ask(tiny_shelf, document)
    second = ask(tiny_shelf, chat=first["chat"], question="And lamp 2.4?")
    path = [message.id for message in tiny_shelf.library.chats.path(second["assistant_message"])]
    assert path == [first["user_message"], first["assistant_message"], second["user_message"], second["assistant_message"]]


def test_an_edited_question_begins_a_branch_and_keeps_the_old_one(tiny_shelf: Shelf, document: str) -> None:
    first = ask(tiny_shelf, document, parts=[2])
    second = ask(tiny_shelf, chat=first["chat"], question="And lamp 2.4?", parts=[2])
    edited = ask(tiny_shelf, chat=first["chat"], parent=first["assistant_message"], question="And lamp 2.5?", parts=[2])
    branches = tiny_shelf.library.chats.children(first["chat"], first["assistant_message"])
    assert [message.id for message in branches] == [second["user_message"], edited["user_message"]]
    assert edited["prompt_tokens_prefilled"] == second["prompt_tokens_prefilled"]  # it knows of the first turn, and not of the second


def test_a_branch_from_the_beginning_knows_nothing(tiny_shelf: Shelf, document: str) -> None:
    first = ask(tiny_shelf, document, parts=[2])
    again = ask(tiny_shelf, chat=first["chat"], parent=None, parts=[2])
    assert again["prompt_tokens_prefilled"] == first["prompt_tokens_prefilled"]
    assert again["token_ids"] == first["token_ids"]
    assert len(tiny_shelf.library.chats.children(first["chat"], None)) == 2


def test_other_documents_can_be_chosen_in_the_middle_of_a_chat(tiny_shelf: Shelf, pair: list[str]) -> None:
    first = ask(tiny_shelf, pair[0])
    second = ask(tiny_shelf, pair[1], chat=first["chat"])
    assert [read["document"] for read in second["parts_read"]] == [pair[1]]
    assert tiny_shelf.call("chats.show", {"id": first["chat"]}, Call())["documents"] == [pair[1]]


# ---- what can't be asked ----


@pytest.mark.parametrize(
    "params",
    [
        {"question": ""},
        {"question": " \n"},
        {"mode": "guessed"},
        {"mode": "sampled", "budget": 2.0},
        {"max_tokens": 0},
        {"temperature": -1},
        {"top_p": 2.0},
        {"parts": "some"},
    ],
    ids=str,
)
def test_what_cannot_be_asked_is_wrong_usage(tiny_shelf: Shelf, document: str, params: Row) -> None:
    assert refused(tiny_shelf, document, **params).kind == "usage"


def test_an_unknown_document_chat_or_parent_begins_no_chat(tiny_shelf: Shelf, document: str) -> None:
    first = ask(tiny_shelf, document)
    for names, params in ((["nothing"], {}), ([], {"chat": "nothing"}), ([], {"chat": first["chat"], "parent": 999})):
        assert refused(tiny_shelf, *names, **params).kind == "not_found"
    assert len(tiny_shelf.library.chats.all()) == 1
    assert len(messages(tiny_shelf, first["chat"])) == 2


# ---- where the model looked ----


def test_the_surplus_of_attention_is_what_the_opening_did_not_already_give() -> None:
    attended = Attended(
        opening=torch.tensor([0.5, 0.1, 0.0, 9.0]),
        question=torch.tensor([0.5, 0.3, 0.2, 0.0, 9.0]),
        answer=torch.tensor([0.3, 0.5, 0.0, 0.0, 9.0, 9.0]),
    )
    assert surplus(attended, 3) == pytest.approx([0.0, 0.3, 0.1])


def test_without_an_answer_the_question_alone_tells() -> None:
    attended = Attended(torch.tensor([0.1, 0.1]), torch.tensor([0.4, 0.2]), torch.zeros(2))
    assert surplus(attended, 2) == pytest.approx([0.3, 0.1])
