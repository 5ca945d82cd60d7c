"""Passages cover the source and stand at their offsets; the ones that an answer leans on are cited."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.answering.citations import LONGEST, cite, middle_layers, passages, verbatim_share

TEXT = (
    "Mr. Bennet was among the earliest of those who waited on Mr. Bingley. "
    "He had always intended to visit him, though to the last always assuring his wife that he should not go.\n\n"
    "The rain fell on Netherfield for four days without an end that anybody could have seen. "
    "Elizabeth walked three miles through the mud to nurse her sister Jane, who had a violent cold.\n"
)
WORDS = st.sampled_from(["a", "Bennet", "was.", "Yes! ", "왔다.", "그는", "—", ", ", "\n", "\n\n", "- ", "x" * 50, "。", "”", "\t", "7"])
TEXTS = st.lists(WORDS, max_size=120).map(" ".join)

# ---- passages ----


@given(TEXTS, st.data())
@settings(max_examples=150, deadline=None)
@example("x" * 3000, None)
def test_passages_hold_every_character_that_is_no_space(text: str, data: st.DataObject | None) -> None:
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2))) if data is not None else (0, len(text))
    covered = {at for low, high in passages(text, start, end) for at in range(low, high)}
    assert {at for at in range(start, end) if not text[at].isspace()} <= covered <= set(range(start, end))


@given(TEXTS)
@settings(max_examples=150, deadline=None)
def test_passages_follow_one_another_without_overlap(text: str) -> None:
    assert all(before[1] <= after[0] for before, after in pairwise(passages(text, 0, len(text))))


@given(TEXTS)
@settings(max_examples=150, deadline=None)
def test_no_passage_is_empty_too_long_or_ends_in_space(text: str) -> None:
    for low, high in passages(text, 0, len(text)):
        assert 0 < high - low <= LONGEST
        assert not text[low].isspace()
        assert not text[high - 1].isspace()


def texts(text: str) -> list[str]:
    return [text[low:high] for low, high in passages(text, 0, len(text))]


def test_passages_are_sentences() -> None:
    assert [passage.split()[0] for passage in texts(TEXT)] == ["Mr.", "He", "The", "Elizabeth"]


def test_a_title_or_an_initial_ends_no_sentence() -> None:
    first = "Dr. J. R. Smith of St. Ives told Mrs. Long and Prof. Grey that it would be a very cold winter."
    assert texts(first + " Nobody believed him, and so nobody had any wood in the house when it came.")[0] == first


def test_short_sentences_are_joined_within_their_paragraph_only() -> None:
    assert texts("He came. He saw. He left.\n\nShe stayed.") == ["He came. He saw. He left.", "She stayed."]


def test_korean_sentences_are_passages() -> None:
    first = "서울의 봄은 짧고 여름은 길며 가을은 늘 아쉽고 겨울은 눈이 많이 내리는 계절이라고 사람들은 말하곤 하였습니다."
    second = "그는 긴 다리를 건너 오래된 시장까지 걸어가서 따뜻한 국밥 한 그릇을 먹고 다시 집으로 돌아왔습니다."
    assert texts(first + " " + second) == [first, second]


def test_a_long_sentence_is_cut_at_a_space() -> None:
    pieces = texts("word " * 300)
    assert len(pieces) > 1
    assert all(set(piece.split()) == {"word"} for piece in pieces)


# ---- cite ----


def tokens() -> list[tuple[int, int]]:
    """One token a character."""
    return [(at, at + 1) for at in range(len(TEXT))]


def paid_to(words: str) -> list[float]:
    """Attention that goes to these words alone."""
    at = TEXT.index(words)
    return [1.0 if at <= n < at + len(words) else 0.0 for n in range(len(TEXT))]


def cited(attention: list[float], answer: str, question: str = "", part: tuple[int, int] = (0, len(TEXT))) -> list[str]:
    within = [(offset, paid) for offset, paid in zip(tokens(), attention, strict=True) if part[0] <= offset[0] < part[1]]
    found = cite(TEXT, part, [offset for offset, _ in within], [paid for _, paid in within], answer, question)
    return [TEXT[passage.start : passage.end] for passage in found]


def test_the_passage_that_was_attended_to_is_cited_first() -> None:
    assert cited(paid_to("four days"), "?")[0].startswith("The rain fell")


def test_the_passage_with_the_answers_words_is_cited_first() -> None:
    assert cited([0.0] * len(TEXT), "Three miles, through the mud.")[0].startswith("Elizabeth walked")


def test_words_of_the_answer_weigh_more_than_words_of_the_question() -> None:
    assert cited([0.0] * len(TEXT), "mud", question="rain")[0].startswith("Elizabeth walked")


def test_a_case_ending_does_not_hide_a_korean_word() -> None:
    first = "첫 문장은 바다와 배에 관한 아주 긴 이야기로서 여기에서 시작하여 저 먼 항구의 등대 아래에서 조용히 끝나게 됩니다."
    text = first + " 둘째 문장은 엘리자베스가 진흙 길을 걸어갔다는 이야기입니다."
    [best, *_] = cite(text, (0, len(text)), [], [], "엘리자베스는", "")
    assert text[best.start : best.end].startswith("둘째")


def test_negative_attention_counts_for_nothing() -> None:
    assert cited([-1.0] * len(TEXT), "") == []


def test_where_nothing_speaks_for_a_passage_nothing_is_cited() -> None:
    assert cited([0.0] * len(TEXT), "zebra") == []


def test_at_most_three_are_cited_and_the_best_first() -> None:
    found = cite(TEXT, (0, len(TEXT)), tokens(), [1.0] * len(TEXT), "", "")
    assert len(found) <= 3
    assert [passage.score for passage in found] == sorted((passage.score for passage in found), reverse=True)
    assert all(0 < passage.score <= 1 for passage in found)


def test_passages_far_behind_the_best_are_left_out() -> None:
    attention = paid_to("four days")
    attention[0] = 0.5
    assert len(cited(attention, "")) == 1


def test_only_the_part_that_was_read_is_cited() -> None:
    part = (TEXT.index("The rain"), len(TEXT))
    found = cited([1.0] * len(TEXT), "Bennet Bingley wife", part=part)
    assert found
    assert all(TEXT.index(quote) >= part[0] for quote in found)


def test_an_empty_part_has_nothing_to_cite() -> None:
    assert cite("   \n", (0, 4), [], [], "x", "y") == []


def test_the_middle_third_of_the_layers_is_watched() -> None:
    assert middle_layers(30) == range(10, 20)
    assert middle_layers(2) == range(2)
    assert middle_layers(1) == range(1)


# ---- verbatim ----


@pytest.mark.parametrize(
    ("answer", "share"),
    [
        ("Elizabeth walked three miles through the mud.", 1.0),
        ("ELIZABETH WALKED, THREE MILES", 1.0),
        ("She walked three miles", 3 / 4),
        ("violent cold", 1.0),
        ("cold violent", 0.0),
        ("Jane", 1.0),
        ("miles three walked Elizabeth", 0.0),
        ("zebra", 0.0),
        ("", 0.0),
        ("!?", 0.0),
    ],
)
def test_the_verbatim_share_counts_words_that_stand_in_the_source_in_runs(answer: str, share: float) -> None:
    assert verbatim_share(answer, TEXT) == pytest.approx(share)


def test_korean_answers_are_found_whatever_their_particles() -> None:
    assert verbatim_share("엘리자베스", "엘리자베스가 진흙 길을 걸어갔다.") == 1.0
    assert verbatim_share("빙리 씨", "엘리자베스가 진흙 길을 걸어갔다.") == 0.0
