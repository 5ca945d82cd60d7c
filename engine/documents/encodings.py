"""From bytes to text: which encoding a file is in, and how sure that is.

A cascade: byte-order mark, strict UTF-8, UTF-16 without a mark, UTF-8 with a little damage, then the legacy encodings. The first that
explains the bytes is taken. Two of the legacy ones are judged here, because general detectors miss them in long English files with
a few foreign words (Korean, Western European); the rest is left to charset-normalizer, which sees only the lines that matter.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

from engine.errors import LongshelfError

SAMPLE = 64 * 1024
"""Bytes looked at to guess; the whole file must then decode strictly."""

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16: its mark begins with that of UTF-16
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_COMMON = ("utf-8", "utf-16", "cp949", "euc-kr", "shift_jis", "euc-jp", "gb18030", "big5", "latin-1", "cp1252", "cp1251", "koi8-r")
_WIDE = re.compile(r"^utf[-_]?(16|32)", re.IGNORECASE)
_IN_USE = re.compile(  # what texts are made of: letters and punctuation of living scripts, no controls, private or unassigned ones
    "[\t\n\r\f\x20-\x7e\u00a0-\u024f\u0370-\u052f\u0590-\u06ff\u0900-\u097f\u0e00-\u0e7f\u1100-\u11ff\u1e00-\u1eff\u2010-\u203b"
    "\u20a0-\u22ff\u2500-\u26ff\u3000-\u30ff\u3130-\u318f\u3200-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff00-\uffef\U0001f300-\U0001faff]"
)
_HIGH = re.compile(rb"[\x80-\xff]+")
_SYLLABLE = re.compile("[\uac00-\ud7a3]")
_IDEOGRAPH = re.compile("[\u4e00-\u9fff\uf900-\ufaff]")
_WESTERN = (  # the letters beyond ASCII of one language each; a text that mixes them freely is in another encoding
    "àâæçèéêëîïôùûüÿœ",
    "äöüß",
    "áéíñóúü",
    "àáâãçéêíóôõú",
    "àèéìíòóù",
    "åäæéøö",
    "áéëïóöü",
    "áæéíðóöúýþ",
)
_SIGNS = "\xa0£¥§©«®°±²³·»¼½¾¿¡×÷ªº€‘’“”–—…•™†"
_TWINS = {"cp932": "shift_jis", "shift_jis_2004": "shift_jis", "euc_jis_2004": "euc_jp", "euc_jisx0213": "euc_jp"}
_NOT_GUESSED = ["ascii", "utf_8", "utf_7", "utf_16", "utf_16_le", "utf_16_be", "utf_32", "utf_32_le", "utf_32_be", "cp037", "cp500"]


@dataclass(frozen=True)
class Decoded:
    """text still has the line ends of the source; encoding: a Python codec name; confident: false if a person should have a look."""

    text: str
    encoding: str
    confident: bool


def decode(data: bytes, name: str, encoding: str | None = None, fallback: str | None = None) -> Decoded:
    """The text of a file's bytes, without byte-order mark.

    name: for messages; encoding: overrides the guess; fallback: takes the place of guessing where the bytes are neither marked nor
    Unicode. Raises LongshelfError "undecodable" (no encoding fits, or the one asked for doesn't) or "usage" (it is unknown).
    """
    decoded = _as_asked(data, name, encoding) if encoding else _guess(data, fallback)
    if decoded is None:
        hint = "Name it with --encoding, for example --encoding cp949."
        raise LongshelfError("undecodable", f"The encoding of {name} can't be told.", hint)
    return Decoded(decoded.text.removeprefix("\ufeff"), decoded.encoding, decoded.confident)


def check_known(encoding: str) -> None:
    """Raises LongshelfError("usage") if there is no such text encoding."""
    try:
        "a".encode(encoding)  # decoding nothing would not even look the name up
    except (LookupError, ValueError) as error:
        message = f"There is no text encoding “{encoding}”."
        raise LongshelfError("usage", message, f"Common ones are {', '.join(_COMMON)}.") from error


def is_wide(encoding: str) -> bool:
    """Whether NUL bytes are to be expected: UTF-16 and UTF-32."""
    return bool(_WIDE.match(encoding))


def looks_wide(head: bytes) -> bool:
    """Whether the first bytes of a file are UTF-16 or UTF-32 text, with or without a mark."""
    return any(head.startswith(mark) for mark, name in _MARKS if is_wide(name)) or _utf16_order(head) is not None


def _as_asked(data: bytes, name: str, encoding: str) -> Decoded:
    check_known(encoding)
    try:
        text = data.decode(encoding)
        text.encode("utf-8")  # some codecs let lone surrogates through
    except UnicodeDecodeError as error:
        message = f"{name} is not in {encoding}: byte 0x{data[error.start]:02X} at {error.start} doesn't fit."
        raise LongshelfError("undecodable", message, "Leave out --encoding to have it guessed, or name another.") from error
    except ValueError as error:
        raise LongshelfError("undecodable", f"{name} can't be read as {encoding}.", "Name another encoding.") from error
    return Decoded(text, encoding, True)


def _guess(data: bytes, fallback: str | None) -> Decoded | None:
    for mark, name in _MARKS:
        if data.startswith(mark):
            return _strict(data[len(mark) :], name, True) or Decoded(data[len(mark) :].decode(name, "replace"), name, False)
    if b"\x1b$" in data and data.isascii():
        for name in ("iso2022_jp", "iso2022_kr"):
            if found := _strict(data, name, True):
                return found
    if (found := _strict(data, "utf-8", True)) and "\0" not in found.text:
        return found
    if order := _utf16_order(data):
        return _strict(data, order, True) or Decoded(data.decode(order, "replace"), order, False)
    if found:
        return found
    if fallback and (found := _strict(data, fallback, True)):
        return found
    sample = _beyond_ascii(data)
    return _damaged_utf8(data, sample) or _korean(data, sample) or _western(data, sample) or _by_detector(data, sample)


def _beyond_ascii(data: bytes) -> bytes:
    """The first lines that are not pure ASCII, SAMPLE bytes at most: the only ones that tell an encoding."""
    lines: list[bytes] = []
    room = SAMPLE
    at = 0
    while room > 0 and (high := _HIGH.search(data, at)):
        start = max(data.rfind(b"\n", at, high.start()) + 1, at, high.start() - room // 2)
        end = data.find(b"\n", high.start()) + 1 or len(data)
        lines.append(data[start : min(end, start + room)])
        room -= len(lines[-1])
        at = end
    return b"".join(lines)


def _strict(data: bytes, encoding: str, confident: bool) -> Decoded | None:
    try:
        return Decoded(data.decode(encoding), encoding, confident)
    except (UnicodeDecodeError, LookupError):
        return None


def _utf16_order(data: bytes) -> str | None:
    """UTF-16 without a mark: strictly valid, made of characters in use, with the blanks and line ends that any script has."""
    sample = data[: SAMPLE - 2]
    best = (0, "")
    for name in ("utf-16-le", "utf-16-be"):
        decoder = codecs.getincrementaldecoder(name)()  # a sample may end within a character
        try:
            text = decoder.decode(sample)
        except UnicodeDecodeError:
            continue
        if text and len(_IN_USE.findall(text)) >= 0.97 * len(text):
            best = max(best, (sum(char in " \n\r" or char.isascii() for char in text), name))
    needed = len(sample) // 2 // 200
    return best[1] if best[0] > needed else None


def _damaged_utf8(data: bytes, sample: bytes) -> Decoded | None:
    """UTF-8 with few bad bytes (cut, or with a foreign word): valid sequences of several bytes hardly come about by chance."""
    for part in (sample, data):
        text = part.decode("utf-8", "replace")
        good = sum(len(run) for run in re.findall("[^\0-\x7f\ufffd]+", text))
        if good < 10 or text.count("\ufffd") > 0.02 * good + 1:
            return None
    return Decoded(text, "utf-8", False)


def _korean(data: bytes, sample: bytes) -> Decoded | None:
    """cp949 (which holds EUC-KR) if what it gives beyond ASCII is Hangul of the everyday set of 2,350 syllables."""
    text = sample.decode("cp949", "ignore")
    syllables = _SYLLABLE.findall(text)
    everyday = len("".join(syllables).encode("euc_kr", "ignore")) // 2
    letters = len(syllables) + len(_IDEOGRAPH.findall(text))
    beyond_ascii = sum(not char.isascii() for char in text)
    if not letters or everyday < 0.9 * letters or len(syllables) < 0.6 * beyond_ascii:
        return None
    return _strict(data, "cp949", everyday >= 10)


def _western(data: bytes, sample: bytes) -> Decoded | None:
    """latin-1 or cp1252: single letters of one Western language inside ASCII words, or signs."""
    name = "cp1252" if re.search(rb"[\x80-\x9f]", data) else "latin-1"
    runs = [run.decode(name, "replace") for run in _HIGH.findall(sample)]
    letters = [char.lower() for run in runs for char in run if char not in _SIGNS]
    covered = max(sum(char in language for char in letters) for language in _WESTERN)
    long_runs = sum(len(run.strip(_SIGNS)) > 2 for run in runs)
    if not runs or covered < 0.95 * len(letters) or long_runs > 0.02 * len(runs):
        return None
    return _strict(data, name, len(runs) >= 5)


def _is_kana_or_hangul(text: str) -> bool:
    """Whether a text has the letters that a wrong guess hardly makes: the wrong ones give ideographs."""
    beyond_ascii = sum(not char.isascii() for char in text)
    return len(re.findall("[\u3041-\u30ff\uac00-\ud7a3]", text)) > max(9, 0.3 * beyond_ascii)


def _by_detector(data: bytes, sample: bytes) -> Decoded | None:
    from charset_normalizer import from_bytes  # late: most files never come here

    for cut in range(4 if len(sample) >= SAMPLE else 1):  # the sample may end within a character
        for match in from_bytes(sample[: len(sample) - cut], cp_exclusion=_NOT_GUESSED):
            confident = match.chaos < 0.1 and (match.coherence >= 0.1 or _is_kana_or_hangul(str(match)))
            for name in (_TWINS.get(match.encoding or ""), match.encoding):
                if name and (found := _strict(data, name, confident)):
                    return found
    return None
