"""The two ways of answering: what they are called, what Fast trades, and what a Fast answer says of how it was read."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QCoreApplication

from app import words

Row = dict[str, Any]

EXACT = "exact"
FAST = "sampled"

_translate = QCoreApplication.translate


def name(mode: str) -> str:
    """A mode of the engine as the window calls it."""
    return {EXACT: _translate("Modes", "Exact"), FAST: _translate("Modes", "Fast")}.get(mode, mode)


def promise(mode: str) -> str:
    """What answering in this mode means, in one sentence."""
    if mode == FAST:
        return _translate("Modes", "Fast: a part of the memory is read for each word, and the rest is estimated from it.")
    return _translate("Modes", "Exact: the whole memory of the chosen parts is read for every word.")


def trade(errors: list[float]) -> str:
    """What choosing Fast trades, and the error that was measured: `errors` are those of the chat's Fast answers."""
    if not errors:
        return _translate("Modes", "Fast estimates each word from part of the memory; every answer says the measured error.")
    measured = words.share(sum(errors) / len(errors))
    return _translate("Modes", "Fast estimates each word from part of the memory; measured error in this chat: {0}").format(measured)


def error_of(meta: Row) -> float | None:
    """The error that was measured for an answer, None where nothing of it was sampled. meta: its figures, as `ask` gave them."""
    error = meta.get("error_measured")
    return float(error) if meta.get("mode") == FAST and error is not None else None


def how_read(meta: Row) -> str:
    """How a Fast answer was read; "" for an exact one."""
    error = error_of(meta)
    if error is not None:
        read, off = words.share(float(meta.get("rows_read_fraction") or 0)), words.share(error)
        return _translate("Modes", "Fast: read {0} of the memory for each word, measured error {1}").format(read, off)
    if FAST not in (meta.get("mode"), meta.get("mode_asked")):
        return ""
    match meta.get("exact_because"):
        case "short":
            return _translate("Modes", "Fast: read exactly, since the part of the text that it needed is short")
        case "joined":
            return _translate("Modes", "Fast: read exactly, since parts that were joined without reading them together can't be sampled")
        case "on_device":
            return _translate("Modes", "Fast: read exactly, since the graphics card holds all of it and reads it fast")
    return _translate("Modes", "Fast: read exactly")


def meaning(meta: Row) -> str:
    """What the error under a Fast answer means, for where there is room; "" where none was measured."""
    if error_of(meta) is None:
        return ""
    return _translate(
        "Modes",
        "Every 32nd token was read both ways. By so much, on average, what the model took from the memory differed. "
        "It is not the share of answers that are wrong.",
    )
