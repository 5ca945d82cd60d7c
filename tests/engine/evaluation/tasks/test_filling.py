"""A filled text has exactly the tokens that were asked for, in whatever vocabulary."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import LongshelfError
from engine.evaluation.tasks.filling import Draft, closing, fill
from engine.evaluation.tasks.problem import Encode, Wanted

VOCABULARIES: dict[str, Callable[[str], list[str]]] = {
    "characters": list,
    "words and their spaces": re.compile(r" ?\w+| ?[^\w\s]+|\s+").findall,
    "runs of one mark or of spaces joined": re.compile(r"\w{1,3}|\.+|-+|:+|\*+|\s+").findall,
    "pairs": re.compile(r"(?s)..?").findall,
    "bytes": lambda text: [chr(byte) for byte in text.encode()],
}


class Lines:
    """Units are lines of a few words; the second is the evidence."""

    least = 2

    def draft(self, units: int) -> Draft:
        draft = Draft()
        for number in range(units):
            draft.add("evidence\n" if number == 1 else f"line {number} of some words\n", number == 1)
        return draft

    def words(self, units: int, count: int) -> str:
        return closing(count)


def wanted(tokens: int, encode: Callable[[str], list[str]]) -> Wanted:
    seen: dict[str, int] = {}
    as_ids: Encode = lambda text: [seen.setdefault(token, len(seen)) for token in encode(text)]  # noqa: E731
    return Wanted("lines", "en", 3, tokens, 1, as_ids, ())


@given(st.sampled_from([*VOCABULARIES]), st.integers(50, 700))
@settings(deadline=None, max_examples=200)
def test_a_text_has_exactly_the_tokens_asked_for(vocabulary: str, tokens: int) -> None:
    filled = fill(Lines(), wanted(tokens, VOCABULARIES[vocabulary]))
    assert len(VOCABULARIES[vocabulary](filled.text)) == tokens
    assert [filled.text[start:end] for start, end in filled.places] == ["evidence\n"]
    assert filled.text.startswith(Lines().draft(filled.units).text)


def test_units_come_before_words_and_words_before_marks() -> None:
    filled = fill(Lines(), wanted(70, VOCABULARIES["bytes"]))
    assert filled.text == "line 0 of some words\nevidence\nline 2 of some words\n Nothing more is..."
    assert filled.units == 3


def test_too_few_tokens_are_refused_with_what_is_needed() -> None:
    with pytest.raises(LongshelfError, match=r'"lines" at level 3 doesn\'t fit into 20 tokens: this one needs 30') as refused:
        fill(Lines(), wanted(20, VOCABULARIES["bytes"]))
    assert refused.value.kind == "usage"


def test_exactly_enough_tokens_are_enough() -> None:
    assert fill(Lines(), wanted(30, VOCABULARIES["bytes"])).text == Lines().draft(2).text


def test_a_vocabulary_that_can_not_meet_the_number_is_refused() -> None:
    def twice(text: str) -> list[str]:
        return [*text, *text]

    with pytest.raises(LongshelfError, match="exactly 101 tokens") as refused:
        fill(Lines(), wanted(101, twice))
    assert refused.value.kind == "model_unsupported"


def test_a_vocabulary_without_tokens_for_a_text_ends_too() -> None:
    with pytest.raises(LongshelfError, match="exactly 40 tokens"):
        fill(Lines(), wanted(40, lambda text: []))
