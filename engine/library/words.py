"""What a question asks for, as terms to look up in text.

Languages that put spaces between words are looked up word by word (the index knows English stems). Korean words carry particles
and Japanese and Chinese have no spaces: there a word gives its stem without the particle, and its pairs of characters at
a lower weight. Words that say nothing about the subject are left out.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

MOST_TERMS = 64
PAIR_WEIGHT = 0.3

_WORD = re.compile(r"\w+")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff]")
_HIRAGANA_ONLY = re.compile(r"^[\u3040-\u309f]+$")


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


_ENGLISH = _listed(
    "a about after all also am an and any are as at be been before being between but by can could did do does during each for from"
    " had has have he her here him his how i if in into is it its many may me might much my no nor not of off on once only or our"
    " out over own she should so some such than that the their them then there these they this those to too under up us very was"
    " we were what when where which while who whom whose why will with would you your"
)
_KOREAN = _listed(
    "것 수 때 곳 등 및 또는 그리고 그 이 저 나 너 우리 그는 그녀 그들 무엇 무엇인가 무슨 어떤 어떻게 어느 어디 언제 언제까지 누구"
    " 누가 왜 몇 얼마 얼마나 하는가 되는가 있는가 없는가 인가 한가 하였는가 했는가 하여야 한다 된다 있다 없다 이다 대해 대하여 대한 관한"
    " 관하여 따른 위한 위해 통해 경우 설명 설명해 알려 줘 주세요 해줘 해주세요"
)
_PARTICLES = sorted(
    _listed(
        "은 는 이 가 을 를 의 에 와 과 도 만 로 나 란 다 에서 에는 에도 에게 으로 로서 로써 로는 부터 까지 한테 께서 이나 처럼 보다 이란"
        " 라는 라고 인가 는가 은가 이다 이라 마다 조차 밖에 에서는 에서의 에서도 에게는 으로는 으로서 으로써 이라는 이라고 인가요 입니까"
        " 이었던 였는가"
    ),
    key=len,
    reverse=True,
)


@dataclass(frozen=True)
class Terms:
    """words: for the word index, lower case; pieces: strings to find anywhere in text → weight."""

    words: tuple[str, ...]
    pieces: dict[str, float]


def terms(query: str) -> Terms:
    """The terms of a question, at most 64 of each kind."""
    words: dict[str, None] = {}
    pieces: dict[str, float] = {}
    for word in _WORD.findall(unicodedata.normalize("NFC", query).lower()):
        if not _UNSPACED.search(word):
            if word not in _ENGLISH:
                words[word] = None
            continue
        stem = without_particle(word)
        if word in _KOREAN or stem in _KOREAN:
            continue
        pieces[stem] = 1.0
        if len(stem) == 2 and stem[1] in _PARTICLES:  # "닭을" may be a noun of one syllable and its particle, "나이" is not
            pieces.setdefault(stem[0], PAIR_WEIGHT)
        for at in range(len(stem) - 1 if len(stem) > 2 else 0):
            if not _HIRAGANA_ONLY.match(pair := stem[at : at + 2]):
                pieces.setdefault(pair, PAIR_WEIGHT)
    return Terms(tuple(words)[:MOST_TERMS], dict(list(pieces.items())[:MOST_TERMS]))


def without_particle(word: str) -> str:
    """A Korean word without the particle at its end; at least one syllable stays, two before a particle of one syllable."""
    for particle in _PARTICLES:
        if word.endswith(particle) and len(word) - len(particle) >= (2 if len(particle) == 1 else 1):
            return word[: -len(particle)]
    return word


def stem(word: str) -> str:
    """An English word in lower case without its common endings, so that forms of one word are alike; others as they are."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    for ending in ("ing", "ed", "ly", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word
