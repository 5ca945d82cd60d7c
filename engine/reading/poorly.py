"""Telling a document that the current model reads far worse than its usual texts: its answers about it won't be any good."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from engine.model.installed import InstalledModel

if TYPE_CHECKING:
    from engine.shelf import Shelf

TIMES_USUAL = 1.5
"""Bits a letter, against the model's usual, from which a document is marked."""
TIMES_USUAL_FOREIGN = 1.2
"""The same for languages that are told from their letters: their easiest texts, laws say, need fewer bits than prose does.

With the default model an English novel has 0.98, the RFC of SMTP 0.63, a constitution 0.50; a Korean novel 1.75, the Korean civil code
1.23."""
LEAST = 24
"""Tokens that must have been looked at: a few lines say nothing."""

_SCRIPTS = {
    "Korean": re.compile("[\uac00-\ud7a3]"),
    "Japanese": re.compile("[\u3041-\u30ff]"),
    "Chinese": re.compile("[\u4e00-\u9fff]"),
    "Russian": re.compile("[\u0400-\u04ff]"),
    "Greek": re.compile("[\u0370-\u03ff]"),
    "Arabic": re.compile("[\u0600-\u06ff]"),
    "Hebrew": re.compile("[\u0590-\u05ff]"),
    "Hindi": re.compile("[\u0900-\u097f]"),
    "Thai": re.compile("[\u0e00-\u0e7f]"),
}
"""Languages told from their letters, the first that has a share wins (Japanese is written with Chinese characters too)."""
_SHARE = 0.1
_SAMPLE = 4000


def reads_poorly(shelf: Shelf, document_id: str, installed: InstalledModel) -> dict[str, Any] | None:
    """{language, bits_per_character, times_usual, message, hint} if the model reads this document far worse than its usual texts.

    None if it does not; language: None where its letters don't tell.
    """
    from engine.model.identity import namespace

    usual, loss = installed.card.usual_bits, shelf.library.losses.of(document_id, namespace(installed))
    if not usual or loss is None or loss.count < LEAST or not loss.letters:
        return None
    times = loss.nats / math.log(2) / loss.letters / usual
    if times < TIMES_USUAL_FOREIGN:
        return None
    language = language_of(shelf.library.documents.text(document_id)[:_SAMPLE])
    if not language and times < TIMES_USUAL:
        return None
    what = language or "this text"
    return {
        "language": language,
        "bits_per_character": round(loss.nats / math.log(2) / loss.count * loss.tokens / max(1, loss.characters), 2),
        "times_usual": round(times, 2),
        "message": f"{installed.name} reads {what} poorly.",
        "hint": f"A model that was trained on {what} answers better: `longshelf models add PATH`."
        if language
        else "A larger model, or one made for such texts, answers better: `longshelf models add PATH`.",
    }


def language_of(text: str) -> str | None:
    """The language that a text's letters belong to; None for those that many share."""
    letters = max(1, sum(character.isalpha() for character in text))
    return next((name for name, script in _SCRIPTS.items() if len(script.findall(text)) > _SHARE * letters), None)
