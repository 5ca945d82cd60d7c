"""What the program carries along that is no code: icons, style, translations, and the handbook."""

from __future__ import annotations

import json
from pathlib import Path

_HANDBOOK = Path(__file__).parent / "handbook"
LANGUAGES = ("en", "ko")


def handbook(language: str) -> Path:
    """The handbook, a Markdown file of two pages and the first sample document. Languages it isn't written in get the English one."""
    return _HANDBOOK / f"handbook.{_known(language)}.md"


def questions(language: str) -> list[str]:
    """Three questions that the handbook of this language answers in so many words."""
    listed: dict[str, list[str]] = json.loads((_HANDBOOK / "questions.json").read_text(encoding="utf-8"))
    return listed[_known(language)]


def calibration() -> Path:
    """Texts and questions of our own, laid out as a corpus, by which a model is calibrated."""
    return Path(__file__).parent / "calibration"


def _known(language: str) -> str:
    return language if language in LANGUAGES else LANGUAGES[0]
