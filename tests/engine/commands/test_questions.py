"""The command ask: the answer as it comes, its sources, and every field of its object true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.answering import modes
from tests.engine.books import PART, book
from tests.engine.commands.conftest import Longshelf

FIELDS = {
    *("answer", "token_ids", "supported", "cut", "mode", "model", "device", "dtype", "seed", "parts_read", "parts_total"),
    *("document_tokens_prefilled", "prompt_tokens_prefilled", "reused_tokens", "routing_tokens", "routing_bytes"),
    *("generated_tokens", "load_s", "routing_s", "ttft_s", "decode_s", "tokens_per_s", "acceptance_rate", "kv_bytes_read"),
    *("keys_read_fraction", "rows_read_fraction", "error_measured", "citations"),
}
CITATION = {"document", "part", "start", "end", "page", "section", "line", "quote", "score"}
SHORT = ("--max-tokens", 6)


@pytest.fixture
def shelf(longshelf: Longshelf, tmp_path: Path) -> Longshelf:
    """With a book of two parts."""
    longshelf("add", book(tmp_path, 2), "--part-tokens", PART)
    return longshelf


def test_ask_gives_every_field_of_the_contract(shelf: Longshelf) -> None:
    done = shelf("ask", "book", "Who keeps lamp 2.3?", *SHORT, "--json")
    assert done.status == 0
    assert done.json.keys() >= FIELDS
    assert done.json["citations"][0].keys() >= CITATION


def test_what_is_asked_in_a_new_process_is_answered_from_memory(shelf: Longshelf, tmp_path: Path) -> None:
    (tmp_path / "book.txt").unlink()
    result = shelf("ask", "book", "Who keeps lamp 2.3?", *SHORT, "--json").json
    assert result["document_tokens_prefilled"] == 0
    assert result["reused_tokens"] > 500


def test_a_quote_stands_at_its_offsets(shelf: Longshelf) -> None:
    text = shelf("show", "book", "--json").json["text"]
    citations = shelf("ask", "book", "Who keeps lamp 2.3?", *SHORT, "--json").json["citations"]
    assert citations
    for citation in citations:
        assert text[citation["start"] : citation["end"]] == citation["quote"]


def test_an_answer_is_printed_with_what_was_read(shelf: Longshelf) -> None:
    done = shelf("ask", "book", "Who keeps lamp 2.3?", *SHORT)
    assert done.status == 0
    assert "from memory · read 1 of 2 parts" in done.out
    assert "[1] " in done.out


def test_a_sampled_answer_is_printed_with_its_error(longshelf: Longshelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, small in (("LEAST", 16), ("KEYS", 20), ("COMPACT", 8), ("LOCAL", 8)):
        monkeypatch.setattr(modes, name, small)
    longshelf("add", book(tmp_path, 1), "--part-tokens", PART)
    out = longshelf("ask", "book", "Who keeps lamp 1.3?", *SHORT, "--mode", "sampled").out
    assert re.search(r"^sampled: read [\d.]+ % of the memory for each word, measured error [\d.]+ %$", out, re.MULTILINE)


def test_a_short_text_is_read_exactly_and_that_is_printed(shelf: Longshelf) -> None:
    done = shelf("ask", "book", "Who keeps lamp 2.3?", *SHORT, "--mode", "sampled")
    assert "\nsampled: read exactly, since the part of the text that it needed is short\n" in done.out
    assert "sampled" not in shelf("ask", "book", "Who keeps lamp 2.3?", *SHORT).out


def test_events_come_as_json_lines_before_the_result(shelf: Longshelf) -> None:
    lines = shelf("ask", "book", "Who?", *SHORT, "--jsonl").lines
    assert lines[0]["event"] == "started"
    assert [line["event"] for line in lines].count("result") == 1
    result = lines[-1]["data"]
    assert "".join(line["data"]["text"] for line in lines if line["event"] == "token") == result["answer"]


def test_the_same_seed_draws_the_same_answer(shelf: Longshelf) -> None:
    asked = ("ask", "book", "Who?", *SHORT, "--temperature", 5, "--seed", 3, "--json")
    first, second, other = shelf(*asked).json, shelf(*asked).json, shelf(*asked[:-2], 4, "--json").json
    assert first["token_ids"] == second["token_ids"] != other["token_ids"]
    assert first["seed"] == 3


def test_named_parts_are_read(shelf: Longshelf) -> None:
    result = shelf("ask", "book", "Who?", *SHORT, "--parts", 2, "--json").json
    assert [read["part"] for read in result["parts_read"]] == [2]


def test_a_chat_goes_on(shelf: Longshelf) -> None:
    first = shelf("ask", "book", "Who keeps lamp 2.3?", *SHORT, "--json").json
    second = shelf("ask", "--chat", first["chat"], "And lamp 2.4?", *SHORT, "--json").json
    assert second["chat"] == first["chat"]
    assert second["prompt_tokens_prefilled"] > first["prompt_tokens_prefilled"]


def test_all_documents_are_asked_without_naming_them(shelf: Longshelf) -> None:
    assert shelf("ask", "--all", "Who keeps lamp 2.3?", *SHORT, "--json").json["parts_total"] == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("Who?",),
        ("book", " "),
        ("book", "Who?", "--parts", "2,x"),
        ("book", "Who?", "--parts", "9"),
        ("book", "Who?", "--max-tokens", "0"),
        ("book", "Who?", "--temperature", "-1"),
        ("book", "Who?", "--mode", "magic"),
        (),
    ],
    ids=str,
)
def test_what_cannot_be_asked_is_wrong_usage(shelf: Longshelf, arguments: tuple[str, ...]) -> None:
    done = shelf("ask", *arguments, "--json")
    assert (done.status, done.json["error"]["kind"]) == (2, "usage")
    assert done.err.count("\n") == 1


def test_a_document_that_is_not_there_is_named(shelf: Longshelf) -> None:
    done = shelf("ask", "nothing", "Who?", "--json")
    assert (done.status, done.json["error"]["kind"]) == (1, "not_found")


def test_a_document_that_was_not_read_says_so(longshelf: Longshelf, tmp_path: Path) -> None:
    longshelf("add", book(tmp_path, 1), "--no-read")
    done = longshelf("ask", "book", "Who?", "--json")
    assert (done.status, done.json["error"]["kind"]) == (1, "not_ready")
    assert "longshelf add" in done.json["error"]["hint"]


def test_a_question_longer_than_the_window_is_refused_with_numbers(shelf: Longshelf) -> None:
    done = shelf("ask", "book", "?" * 20_000, "--json")
    assert (done.status, done.json["error"]["kind"]) == (1, "too_long")
    assert "20" in done.json["error"]["message"]


def test_parts_that_were_joined_are_said_to_be_an_approximation(shelf: Longshelf) -> None:
    done = shelf("ask", "book", "Who keeps lamp 2.3?", "--parts", "1,2", *SHORT)
    assert "read 2 of 2 parts joined without reading them together (approximate)" in done.out


def test_a_promised_error_needs_sampling_and_a_share(shelf: Longshelf) -> None:
    for options in (("--epsilon", 0.2), ("--mode", "sampled", "--epsilon", 1.5)):
        done = shelf("ask", "book", "Who keeps lamp 2.3?", *options, "--json")
        assert done.status == 2
        assert "--epsilon" in done.json["error"]["message"]
