"""What stands above the composer about the next question: why it can't be asked now, or what is special about it."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QCoreApplication

from app import words
from app.chat import modes
from app.chat.chooser import Chooser
from app.chat.conversation import Message
from app.mirror import Mirror

_translate = QCoreApplication.translate


def obstacle(mirror: Mirror, chooser: Chooser) -> str:
    """Why nothing can be asked of what is installed and chosen, "" if something can."""
    if mirror.models_known and mirror.current_model() is None:
        return _translate("Hints", "No model is installed yet. Install one first; the question stays here.")
    if not chooser.all and not chooser.documents:
        return _translate("Hints", "Choose which documents the question is about first.")
    rows = [mirror.documents[document] for document in chooser.documents]
    if rows and not any(words.is_askable(row) for row in rows):
        return _translate("Hints", "Nothing of it has been read yet. The first part can be asked as soon as it is finished.")
    return ""


def partly_read(mirror: Mirror, chooser: Chooser) -> str:
    """Which of the chosen documents are still being read, and how far they are; "" if none is."""
    rows = [mirror.documents[document] for document in chooser.documents if document in mirror.documents]
    return ", ".join(
        _translate("Hints", "{0}: {1} of {2} parts read so far").format(row.get("title"), row.get("parts_ready"), row.get("parts"))
        for row in rows
        if row.get("state") != "ready" and words.is_askable(row)
    )


def trade(mode: str, answers: Iterable[Message]) -> str:
    """What answering in this mode trades, with the error measured in these answers; "" for Exact."""
    errors = [error for answer in answers if (error := modes.error_of(answer.meta)) is not None]
    return modes.trade(errors) if mode == modes.FAST else ""
