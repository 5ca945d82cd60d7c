"""Needles: numbers hidden in a haystack, each under a coined key, and some of them asked for.

The forms are those of RULER (Hsieh et al. 2024, arXiv:2404.06654): one needle; one among others with other keys; several under one
key, all asked; several keys asked at once. The wording and the words are our own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.evaluation.tasks.coining import coined
from engine.evaluation.tasks.filling import fill
from engine.evaluation.tasks.haystack import DEPTHS, Haystack, Hidden
from engine.evaluation.tasks.problem import Problem, Wanted

LEAST_VALUE, MOST_VALUE = 100_000, 999_999


@dataclass(frozen=True)
class Wording:
    """How a language says it. last: what stands before the last of several keys. words: those that no sentence of the haystack may have."""

    needle: str
    needle_of_many: str
    one: str
    several_values: str
    several_keys: str
    last: str
    words: tuple[str, ...]


WORDING = {
    "en": Wording(
        needle="The passcode of {key} is {value}.",
        needle_of_many="One passcode of {key} is {value}.",
        one="What is the passcode of {key}? Answer with the number alone.",
        several_values="There are {count} passcodes of {key}. What are they? Answer with the numbers alone.",
        several_keys="What are the passcodes of {key}? Answer with the numbers alone, in this order.",
        last=" and ",
        words=("passcode",),
    ),
    "ko": Wording(
        needle="{key}의 사물함 번호는 {value}이다.",
        needle_of_many="{key}의 사물함 번호 가운데 하나는 {value}이다.",
        one="{key}의 사물함 번호는 무엇입니까? 숫자만 답해 주세요.",
        several_values="{key}의 사물함 번호는 모두 {count}개입니다. 무엇무엇입니까? 숫자만 답해 주세요.",
        several_keys="{key}의 사물함 번호는 각각 무엇입니까? 이 순서대로 숫자만 답해 주세요.",
        last=", ",
        words=("사물함", "번호"),
    ),
}


def needle(wanted: Wanted) -> Problem:
    """One needle, asked. There is one level."""
    return _hide(wanted, keys=1, values=1, others=0)


def needle_keys(wanted: Wanted) -> Problem:
    """One asked among `level` needles of the same form with other keys."""
    return _hide(wanted, keys=1, values=1, others=wanted.level)


def needle_values(wanted: Wanted) -> Problem:
    """`level` values under one key, all asked, in the order of the text."""
    return _hide(wanted, keys=1, values=wanted.level, others=0)


def needle_queries(wanted: Wanted) -> Problem:
    """`level` keys asked at once, in an order that is not that of the text but by chance."""
    return _hide(wanted, keys=wanted.level, values=1, others=0)


def _hide(wanted: Wanted, keys: int, values: int, others: int) -> Problem:
    """facts: keys (asked), others (keys that are not asked)."""
    draws, wording = wanted.draws(), WORDING[wanted.language]
    names = coined(draws.branch("keys"), keys + others, wanted.language)
    told = [str(value) for value in draws.branch("values").distinct(LEAST_VALUE, MOST_VALUE, len(names) * values)]
    at = draws.branch("depths")
    depths = [at.below(DEPTHS) for _ in told]
    depths[:values] = sorted(depths[:values])  # the values of one key are wanted in the order of the text
    form = wording.needle if values == 1 else wording.needle_of_many
    hidden = [
        Hidden(depth, form.format(key=names[number // values], value=value), evidence=number < keys * values)
        for number, (depth, value) in enumerate(zip(depths, told, strict=True))
    ]
    filled = fill(Haystack(wanted.haystack, hidden, [*wording.words, *names, *told], draws.branch("haystack")), wanted)
    asked = wording.several_keys if keys > 1 else wording.several_values if values > 1 else wording.one
    question = asked.format(key=_listed(names[:keys], wording.last), count=values)
    return wanted.problem(filled.text, question, told[: keys * values], filled.places, {"keys": names[:keys], "others": names[keys:]})


def _listed(names: Sequence[str], last: str) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])}{last}{names[-1]}"
