"""Words that no text has: names for needles and variables, and the words of the counting tasks.

English words are consonant-vowel three times, then a consonant ("kamotel"); Korean ones three syllables without a final consonant
("가무도"), so that the particle behind them is always the same. All words of a language are equally long: none begins another.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product

from engine.errors import LongshelfError
from engine.evaluation.tasks.draws import Draws

_FIRST_SYLLABLE = 0xAC00  # 가; syllables stand in the order initial × 21 vowels × 28 finals (Unicode 3.12)
_INITIALS = (0, 2, 3, 5, 6, 7, 9)  # ㄱㄴㄷㄹㅁㅂㅅ
_VOWELS = (0, 4, 5, 8, 13)  # ㅏㅓㅔㅗㅜ

_SYLLABLES = {
    "en": tuple(map("".join, product("bdklmnrstv", "aeiou"))),
    "ko": tuple(chr(_FIRST_SYLLABLE + (initial * 21 + vowel) * 28) for initial, vowel in product(_INITIALS, _VOWELS)),
}
_ENDINGS = {"en": tuple("lmnrst"), "ko": ("",)}
_SYLLABLES_A_WORD = 3


def coin(draws: Draws, language: str = "en") -> Iterator[str]:
    """Words, none twice. Raises LongshelfError("usage") when half of all there are (187,500 and 21,437) have been given."""
    syllables, endings = _SYLLABLES[language], _ENDINGS[language]
    given: set[str] = set()
    while len(given) < len(syllables) ** _SYLLABLES_A_WORD * len(endings) // 2:
        word = "".join(syllables[draws.below(len(syllables))] for _ in range(_SYLLABLES_A_WORD)) + endings[draws.below(len(endings))]
        if word not in given:
            given.add(word)
            yield word
    raise LongshelfError("usage", f"There are no more than {len(given)} words for one problem.", "Ask for fewer tokens.")


def coined(draws: Draws, count: int, language: str = "en") -> list[str]:
    """The first `count` words of `coin`."""
    return list(islice(coin(draws, language), count))
