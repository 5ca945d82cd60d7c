"""Coined words are all different, equally long, and written as they are said to be."""

from __future__ import annotations

import re

import pytest

from engine.errors import LongshelfError
from engine.evaluation.tasks import coining
from engine.evaluation.tasks.coining import coin, coined
from engine.evaluation.tasks.draws import Draws


@pytest.mark.parametrize(
    ("language", "form"),
    [("en", "([bdklmnrstv][aeiou]){3}[lmnrst]"), ("ko", "[가거게고구나너네노누다더데도두라러레로루마머메모무바버베보부사서세소수]{3}")],
)
def test_words_have_the_form_of_their_language(language: str, form: str) -> None:
    words = coined(Draws("words"), 3000, language)
    assert len(set(words)) == 3000
    assert all(re.fullmatch(form, word) for word in words)


def test_the_first_words_are_the_same_however_many_follow() -> None:
    assert coined(Draws("words"), 5) == coined(Draws("words"), 50)[:5]


def test_running_out_of_words_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coining, "_SYLLABLES", {"en": ("ka", "lo")})
    words = coin(Draws("few"))
    with pytest.raises(LongshelfError, match="no more than 24 words"):
        list(words)
