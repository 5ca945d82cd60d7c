"""An answer is scored by the share of wanted strings that it says, as whole words."""

from __future__ import annotations

import pytest

from engine.evaluation.tasks.problem import Problem, score


def problem(*answers: str) -> Problem:
    return Problem("needle", "en", 1, 1, "A text of twenty-six marks.", "What?", answers, ((2, 6), (20, 25)))


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("482913", "482913"),
        ("482913", "It is 482913."),
        ("482913", "The passcode (482913) was found; 482914 was not."),
        ("482913", "111111,482913,222222"),
        ("482913", "It is 482,913."),
        ("482913", "４８２９１３"),
        ("482913", "사물함 번호는 482913입니다."),
        ("482913", "482913이다"),
        ("17", "20 - 3 = 17"),
        ("17", "- 17"),
        ("17", "17."),
        ("kamotel", "KAMOTEL"),
        ("kamotel", "**Kamotel**, belusan"),
        ("kamotel", "kamotel입니다"),
        ("가무도", "가무도, 나도베"),
        ("가무도", "변수는 가무도와 나도베입니다."),
        ("가무도", "가무도"),
    ],
)
def test_what_says_the_wanted_string_scores(wanted: str, said: str) -> None:
    assert score(problem(wanted), said) == 1


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("482913", ""),
        ("482913", "1482913"),
        ("482913", "4829130"),
        ("482913", "482914"),
        ("482913", "482 913"),
        ("17", "x17"),
        ("17", "17th"),
        ("17", "-17"),
        ("17", "It is -17"),
        ("17", "0.17"),
        ("17", "17.5"),
        ("17", "17,304"),
        ("kamotel", "kamotels"),
        ("kamotel", "akamotel"),
        ("kamotel", "kamotel_2"),
        ("kamotel", "kamo tel"),
        ("가무도", "나가무도"),
        ("가무도", "가무 도"),
    ],
)
def test_what_says_something_else_does_not(wanted: str, said: str) -> None:
    assert score(problem(wanted), said) == 0


def test_several_wanted_strings_count_their_share() -> None:
    assert score(problem("kamotel", "belusan", "tirones", "dakorum"), "belusan and dakorum, and belusan again") == 0.5


def test_the_gold_answer_scores_in_full() -> None:
    wanted = problem("17", "482913", "kamotel", "가무도")
    assert wanted.gold == "17, 482913, kamotel, 가무도"
    assert score(wanted, wanted.gold) == 1


def test_depths_are_shares_of_the_text() -> None:
    made = problem("17")
    assert len(made.text) == 27
    assert made.depths == (2 / 27, 20 / 27)
