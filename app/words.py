"""How numbers, sizes, times and the states of a document are said. Every view says them the same way, in the window's language."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QCoreApplication, QLocale

Row = dict[str, Any]

_translate = QCoreApplication.translate


def number(value: float, decimals: int = 0) -> str:
    return QLocale().toString(float(value), "f", decimals)


def percent(value: float) -> str:
    """With one decimal: an hour-long read must be seen to move. Never 100 before the end."""
    return _translate("Words", "{0} %").format(number(min(value, 99.9) if value < 100 else 100, 1))


def share(fraction: float) -> str:
    """12 %, 6.2 %; never 0 % of what is more than nothing. With a space that no line ends at."""
    value = 100 * fraction
    if 0 < value < 0.1:
        return _translate("Words", "under {0}").format(share(0.001))
    return f"{number(value, 0 if value >= 9.95 or not value else 1)}\N{NO-BREAK SPACE}%"


def size(count: float) -> str:
    """Bytes in the decimal units of disks: 93 MB, 3.8 GB."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 999.5 or unit == "GB":
            break
        value /= 1000
    return f"{number(value, 0 if value >= 10 or unit == 'B' else 1)} {unit}"


def duration(seconds: float) -> str:
    """A time to wait, as exact as a person needs it."""
    if seconds < 60:
        return _translate("Words", "{0} s").format(number(max(1, round(seconds))))
    minutes = round(seconds / 60)
    if minutes < 90:
        return _translate("Words", "{0} min").format(number(minutes))
    hours, minutes = divmod(minutes, 60)
    return (
        _translate("Words", "{0} h {1} min").format(number(hours), minutes)
        if hours < 10
        else _translate("Words", "{0} h").format(number(hours))
    )


def time_left(seconds: float | None) -> str:
    return "" if seconds is None else _translate("Words", "{0} left").format(duration(seconds))


def tokens(count: int) -> str:
    return _translate("Words", "%Ln token(s)", None, count)


def join(*pieces: str) -> str:
    return " · ".join(piece for piece in pieces if piece)


def is_working(row: Row) -> bool:
    return row.get("state") in ("queued", "reading", "remembering")


def is_askable(row: Row) -> bool:
    """A document can be asked from its first finished part, whatever happens to it next."""
    return (row.get("state") == "ready" and not is_read_by_another(row)) or bool(row.get("parts_ready"))


def is_read_by_another(row: Row) -> bool:
    """Whether a document was read, but not by the model in use."""
    return row.get("state") == "ready" and row.get("parts") == 0


def state(row: Row) -> str:
    """The second line of a document: what is true of it now."""
    match row.get("state"):
        case "queued":
            return join(_translate("Words", "Queued"), estimate(row))
        case "reading":
            return join(_translate("Words", "Reading the text"), str(row.get("place") or ""))
        case "remembering":
            done = _translate("Words", "Remembering {0}").format(percent(row.get("percent") or 0))
            return join(done, str(row.get("place") or ""), time_left(row.get("seconds_left")))
        case "paused":
            done = percent(row.get("percent") or 0) if row.get("tokens_done") else ""
            return join(_translate("Words", "Paused"), done, reason(row))
        case "ready" if is_read_by_another(row):
            return _translate("Words", "Read by another model, not by this one")
        case "ready":
            if row.get("source_missing"):
                return join(_translate("Words", "Ready"), _translate("Words", "the source file is gone, its text is kept"))
            taken = size(row["bytes"]) if row.get("bytes") else ""
            return join(_translate("Words", "Ready"), poorly(row), tokens(row.get("tokens") or 0), taken)
        case "no_text":
            return join(_translate("Words", "No text"), reason(row))
        case "damaged":
            return join(_translate("Words", "Damaged"), reason(row))
        case "skipped":
            return join(_translate("Words", "Skipped"), reason(row))
        case "failed":
            return join(_translate("Words", "Failed"), reason(row))
        case other:
            return str(other or "")


def poorly(row: Row) -> str:
    """That the model reads this document far worse than its usual texts, "" where it doesn't."""
    found = row.get("reads_poorly")
    if not found:
        return ""
    language = languages().get(str(found.get("language") or ""))
    return (
        _translate("Words", "the model reads {0} poorly").format(language) if language else _translate("Words", "the model reads it poorly")
    )


def languages() -> dict[str, str]:
    """The engine's stable words for languages that it tells from their letters."""
    return {
        "Korean": _translate("Words", "Korean"),
        "Japanese": _translate("Words", "Japanese"),
        "Chinese": _translate("Words", "Chinese"),
        "Russian": _translate("Words", "Russian"),
        "Greek": _translate("Words", "Greek"),
        "Arabic": _translate("Words", "Arabic"),
        "Hebrew": _translate("Words", "Hebrew"),
        "Hindi": _translate("Words", "Hindi"),
        "Thai": _translate("Words", "Thai"),
    }


def poorly_hint(row: Row) -> str:
    """What would help with such a document, for where there is room."""
    if not row.get("reads_poorly"):
        return ""
    return _translate("Words", "Expect wrong answers. A model that was trained on such texts answers better.")


def estimate(row: Row) -> str:
    """What remembering this document will take, once its text has been read."""
    if not row.get("tokens") or not row.get("estimate_bytes"):
        return ""
    about = _translate("Words", "about {0}").format(size(row["estimate_bytes"]))
    return join(tokens(row["tokens"]), about, duration(row["estimate_seconds"]) if row.get("estimate_seconds") else "")


def reason(row: Row) -> str:
    given = str(row.get("reason") or "")
    return reasons().get(given, given)


def reasons() -> dict[str, str]:
    """The engine's stable words for why a file was left out or a document isn't read."""
    return {
        "binary": _translate("Words", "not a text"),
        "secret": _translate("Words", "looks like a secret (key, password)"),
        "too_large": _translate("Words", "too large"),
        "unreadable": _translate("Words", "can't be opened: permission"),
        "ignored": _translate("Words", "left out by the folder's ignore rules"),
        "empty": _translate("Words", "empty"),
        "undecodable": _translate("Words", "encoding not recognised"),
        "link": _translate("Words", "a link to elsewhere"),
        "special": _translate("Words", "not a regular file"),
        "cancelled": _translate("Words", "reading was cancelled"),
        "added without reading": _translate("Words", "added without reading"),
        "forgotten": _translate("Words", "its memory was given up, its text is kept"),
    }


def model(row: Row) -> str:
    """The second line of a model: what it is, and what it costs on this machine."""
    if row.get("problem"):
        return str(row["problem"])
    needed = size(row.get("memory_needed") or 0)
    if row.get("fits") is False:
        runs = _translate("Words", "needs {0} of memory, this machine has {1}").format(needed, size(row.get("memory_here") or 0))
    else:
        runs = _translate("Words", "runs in {0} of memory").format(needed)
    return join(
        _translate("Words", "in use") if row.get("current") else "",
        _translate("Words", "trial model") if row.get("trial") else "",
        size(row.get("bytes") or 0)
        if row.get("installed")
        else _translate("Words", "a download of {0}").format(size(row.get("bytes") or 0)),
        runs if row.get("memory_needed") else "",
        _translate("Words", "{0} for 100 pages").format(size(1e9 * row["gb_per_100_pages"])) if row.get("gb_per_100_pages") else "",
        _translate("Words", "reads {0} at once").format(tokens(row["window"])) if row.get("window") else "",
        str(row.get("license") or ""),
    )


def install_stage(stage: str) -> str:
    """The engine's stable words for the steps of installing a model; "" for one that needs no telling."""
    return {
        "download": _translate("Words", "Downloading"),
        "check": _translate("Words", "Checking the download"),
        "convert": _translate("Words", "Converting the model"),
        "tokenizer": _translate("Words", "Preparing the vocabulary"),
        "fit": _translate("Words", "Getting the model ready"),
    }.get(stage, "")


def place(citation: Row) -> str:
    """Where a citation stands: chapter 3 · page 12 · line 118."""
    page = citation.get("page_label") or citation.get("page")
    return join(
        str(citation.get("section") or ""),
        _translate("Words", "page {0}").format(page) if page else "",
        _translate("Words", "line {0}").format(number(citation["line"])) if citation.get("line") else "",
    )


def stretch(part: Row) -> str:
    """Where a part that was read lies: the section or page it begins in, and the one it ends in if that is another."""
    first, last = str(part.get("first") or ""), str(part.get("last") or "")
    return " – ".join(dict.fromkeys(filter(None, (first, last))))
