"""Sentences of a haystack come in order, round and round, without the words of what is hidden."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import LongshelfError
from engine.evaluation.tasks.draws import Draws
from engine.evaluation.tasks.haystack import Haystack, Hidden, sentences
from tests.engine.evaluation.tasks.haystacks import ENGLISH, KOREAN

NEEDLE = Hidden(500, "A needle.", evidence=True)


def haystack(*documents: str, hidden: tuple[Hidden, ...] = (NEEDLE,), without: tuple[str, ...] = (), seed: int = 1) -> Haystack:
    return Haystack(documents, hidden, without, Draws("haystack", seed))


def test_a_paragraph_is_cut_into_sentences() -> None:
    text = (
        'Mr. Smith went to the\nharbour at dawn. "Is nobody here at all?" he asked.\n\n그는 아무도 없는 부두를 보았다. 그러고는 돌아갔다.\n'
    )
    assert [(one.text, one.joint) for one in sentences(text)] == [
        ("Mr. Smith went to the harbour at dawn.", " "),
        ('"Is nobody here at all?" he asked.', "\n\n"),
        ("그는 아무도 없는 부두를 보았다. 그러고는 돌아갔다.", "\n\n"),
    ]


def test_japanese_sentences_need_no_space_between_them() -> None:
    text = "ジョバンニはまた活版所の中をだまって見ました。カムパネルラは何も言わずに窓の外を見ていました。"
    assert [one.text for one in sentences(text)] == [f"{half}。" for half in text.split("。")[:2]]


@given(st.text() | st.text(st.sampled_from("ab .?!\n가。")) | st.integers(1, 2000).map(lambda n: "x" * n))
@settings(deadline=None)
def test_sentences_hold_every_word_of_a_document(text: str) -> None:
    found = list(sentences(text))
    assert "".join("".join(one.text for one in found).split()) == "".join(text.split())
    assert all(one.text and len(one.text) <= 405 for one in found)


def test_sentences_follow_each_other_and_start_again_at_the_end() -> None:
    all_of_them = [one.text for one in sentences(ENGLISH)]
    text = haystack(ENGLISH, hidden=()).draft(100).text
    found = [one.text for one in sentences(text)]
    start = all_of_them.index(found[0])
    assert found == [all_of_them[(start + n) % len(all_of_them)] for n in range(100)]


def test_the_start_is_drawn() -> None:
    assert len({haystack(ENGLISH, seed=seed).draft(1).text for seed in range(12)}) > 6


def test_words_behind_a_draft_are_those_of_its_next_sentences() -> None:
    hay = haystack(ENGLISH, hidden=())
    longer = hay.draft(8).text
    behind = longer[len(hay.draft(6).text) :]
    assert behind
    assert behind in [hay.words(6, count) for count in range(40)]
    assert hay.words(6, 0) == ""


def test_long_words_come_in_pieces() -> None:
    hay = haystack("incomprehensibilities", hidden=())
    assert [hay.words(1, count) for count in (1, 3, 4)] == [
        "\n\nincompre",
        "\n\nincomprehensibilities",
        "\n\nincomprehensibilities\n\nincompre",
    ]


def test_a_sentence_with_a_word_of_the_needle_is_left_out() -> None:
    text = haystack(ENGLISH, without=("WOOL", "lamp")).draft(80).text
    assert "wool" not in text
    assert "lamp" not in text
    assert "barley" in text


@pytest.mark.parametrize(("depth", "before"), [(0, 0), (499, 4), (500, 5), (999, 9)])
def test_a_needle_stands_as_deep_as_it_is_said_to(depth: int, before: int) -> None:
    draft = haystack(ENGLISH, hidden=(Hidden(depth, "A needle.", evidence=True),)).draft(10)
    ((start, end),) = draft.places
    assert draft.text[start:end] == "A needle."
    assert draft.text[:start].count("ferry") == before
    assert draft.text.count("ferry") == 10


def test_needles_at_one_depth_keep_their_order() -> None:
    hidden = tuple(Hidden(300, f"Needle {n}.", evidence=n != 1) for n in range(3))
    draft = haystack(ENGLISH, hidden=hidden).draft(20)
    assert [draft.text[start:end] for start, end in draft.places] == ["Needle 0.", "Needle 2."]
    assert draft.text.index("Needle 0.") < draft.text.index("Needle 1.") < draft.text.index("Needle 2.")


def test_a_needle_between_paragraphs_is_one() -> None:
    hay = Haystack(["First is this sentence.\n\nThen comes this sentence."], (NEEDLE,), (), Draws("x"))
    paragraphs = hay.draft(2).text.split("\n\n")
    assert paragraphs[1] == "A needle."
    assert len(paragraphs) == 3


@pytest.mark.parametrize("documents", [(), ("",), (" \n\n ",), (KOREAN,)])
def test_a_haystack_with_nothing_to_use_is_refused(documents: tuple[str, ...]) -> None:
    with pytest.raises(LongshelfError, match="no sentence to hide anything among") as refused:
        haystack(*documents, without=("배가",))
    assert refused.value.kind == "usage"
