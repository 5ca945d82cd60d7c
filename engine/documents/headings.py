"""Headings in plain text, as books, statutes and manuals write them.

A heading stands alone: a blank line before it and, mostly, after it. Known words with a number (Chapter 3, PART I, 제1장, 第一章) count
first. Lone lines in capitals count only where there are no chapters, because elsewhere they are mottoes and signatures.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace

from engine.documents.sections import Heading

_LONGEST = 100
_NAMED_LEVEL = 0  # until the level of what follows is known
_HUGE = 50_000
"""Code points between two chapters beyond which lines in capitals are taken as headings inside them."""
_ROMAN = r"(?=[IVXLCDM])M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})"
_COUNTS = (
    "ONE|TWO|THREE|FOUR|FIVE|SIX|SEVEN|EIGHT|NINE|TEN|ELEVEN|TWELVE|THIRTEEN|FOURTEEN|FIFTEEN|SIXTEEN|SEVENTEEN|EIGHTEEN|NINETEEN|TWENTY|"
    "FIRST|SECOND|THIRD|FOURTH|FIFTH|SIXTH|SEVENTH|EIGHTH|NINTH|TENTH|LAST"
)
_WORDS = {"volume": 1, "book": 2, "part": 3, "chapter": 4, "act": 4, "canto": 4, "stave": 4, "letter": 4, "lecture": 4, "lesson": 4}
_WORDS |= {"appendix": 4, "annex": 4, "schedule": 4, "title": 3, "article": 5, "amendment": 5, "section": 6, "scene": 6}
_ENGLISH = re.compile(
    rf"(?P<head>(?P<word>{'|'.join(_WORDS)})\.?[ \t]+(?:(?:{_ROMAN})(?![A-Za-z])|\d{{1,4}}|[A-Z](?![A-Za-z])"
    rf"|(?:the[ \t]+)?(?:{_COUNTS})(?:-[A-Z]+)?(?![A-Za-z])))(?P<rest>.*)",
    re.IGNORECASE,
)
_KOREAN_LEVEL = {"권": 1, "부": 2, "편": 3, "장": 4, "회": 4, "화": 4, "막": 4, "절": 6, "관": 7, "조": 8}
_KOREAN = re.compile(r"(?P<head>제\s?[0-9一二三四五六七八九十百]{1,4}\s?(?P<word>[권부편장회화막절관조])(?:의\s?\d+)?)(?P<rest>.*)")
_TITLED_ARTICLE = re.compile(r"제\s?\d{1,4}\s?조(?:의\s?\d+)?\s?[(（【\[][^()（）【】\[\]\n]{1,60}[)）】\]](?=\s|$|[①-⑳])")
_CHINESE_LEVEL = {"卷": 1, "巻": 1, "部": 2, "編": 3, "编": 3, "篇": 3, "章": 4, "回": 4, "話": 4, "话": 4}
_CHINESE_LEVEL |= {"節": 6, "节": 6, "款": 7, "条": 8, "條": 8}
_LEVELS = _WORDS | _KOREAN_LEVEL | _CHINESE_LEVEL
_CHINESE = re.compile(r"(?P<head>第[0-9０-９〇零一二三四五六七八九十百千]{1,5}(?P<word>[卷巻部編编篇章回話话節节款条條]))(?P<rest>.*)")
_NAMED = re.compile(
    r"(?:the\s+)?(?:preface|foreword|introduction|prologue|epilogue|contents|table of contents|afterword|conclusion|glossary|index|"
    r"appendix|bibliography|acknowledge?ments|dedication|abstract|preamble|references|notes)[.:]?"
    r"|머리말|서문|서론|서장|들어가며|결론|맺음말|나가며|부록|차례|목차|후기|총칙|부칙|프롤로그|에필로그"
    r"|はじめに|まえがき|あとがき|おわりに|序章|終章|目次|前言|目录|目錄|后记|後記",
    re.IGNORECASE,
)
_START_MARK = re.compile(r"START OF (?:THE|THIS) PROJECT GUTENBERG EBOOK.*|START: FULL LICENSE")
_END_MARK = re.compile(r"END OF (?:THE|THIS) PROJECT GUTENBERG EBOOK.*")
_NUMBERED = re.compile(
    r"(?P<number>\d{1,2}(?:\.\d{1,3}){0,5})\.?[ \t]+(?P<title>[A-Z\u00c0-\u00de\u3041-\u30ff\u4e00-\u9fff\uac00-\ud7a3].{0,80})"
)
_ROMAN_TITLED = re.compile(rf"(?:{_ROMAN})[.—–-]+\s*(?P<title>[A-Z].*)")
_BARE = re.compile(rf"(?P<roman>{_ROMAN})\.?|(?P<digits>\d{{1,3}})\.?")
_AOZORA = re.compile(r"［＃「([^」]+)」は(大|中|小)見出し］")
_RULE = re.compile(r"([=\-~^\"'`#*+.:_])\1{2,}\s*")
_LEADERS = re.compile(r"\.{4,}|(?:\. ){3,}|[ \t]{3,}\d+$|…{2,}")
_PROSE_WORD = re.compile(r"(?<![^\s])[a-z]{5,}")
_UNFINISHED = tuple(".,;:!?”\"’'")


@dataclass(frozen=True)
class _Line:
    """A line after a blank one. alone: the next is blank too. title: a lone short line soon after that may name it, and where that ends."""

    start: int
    text: str
    alone: bool
    next: str
    title: str
    title_end: int


def headings(text: str) -> list[Heading]:
    """The headings of a plain text, in order."""
    worded: list[Heading] = []
    others: list[Heading] = []
    capitals: list[Heading] = []
    numerals: list[tuple[int, Heading]] = []
    underlines: dict[str, int] = {}
    taken = 0
    for line in _lone_lines(text):
        if line.start < taken:
            continue  # it was the title of the heading before
        if found := _worded(line):
            worded.append(found)
            taken = line.title_end if line.title and found.label.endswith(line.title) else 0
        elif found := _marked(line, underlines):
            others.append(found)
        elif line.alone and (value := _bare_numeral(line.text)) is not None:
            numerals.append((value, Heading(9, f"{line.text} {line.title}".strip(), line.start)))
            taken = line.title_end
        elif line.alone and _in_capitals(line.text) and not _START_MARK.fullmatch(line.text):
            capitals.append(Heading(20, line.text, line.start))
    if "\f" not in text:  # bare numbers between pages are page numbers
        others += _counted(numerals)
    others += _far_from(worded, capitals, len(text))
    found_all = _without_contents(sorted(worded + others, key=lambda heading: heading.start), text)
    level = 4
    for index in reversed(range(len(found_all))):  # a preface or contents ranks with what comes after it
        if found_all[index].level == _NAMED_LEVEL:
            found_all[index] = replace(found_all[index], level=level)
        level = found_all[index].level
    return found_all


def _lone_lines(text: str) -> Iterator[_Line]:
    lines = text.split("\n")
    start = 0
    blank = True
    for index, line in enumerate(lines):
        stripped = line.strip().strip("*_").strip() if line and len(line) <= 4 * _LONGEST else line
        if blank and stripped and (len(stripped) <= _LONGEST or stripped.startswith("제")):
            following = lines[index + 1].strip() if index + 1 < len(lines) else ""
            title, title_end = _title_after(lines, index, start + len(line) + 1)
            yield _Line(start, stripped, not following, following, title, title_end)
        blank = not line.strip()
        if not blank and _TITLED_ARTICLE.match(line.lstrip()) and index and lines[index - 1].strip():
            yield _Line(start, line.strip(), False, "", "", 0)  # articles of Korean statutes often follow each other without blank lines
        start += len(line) + 1


def _title_after(lines: list[str], index: int, offset: int) -> tuple[str, int]:
    """The lone short line within the next four that may be the title of a numbered heading, and the offset behind it."""
    for ahead in range(index + 1, min(index + 5, len(lines))):
        line = lines[ahead].strip()
        offset += len(lines[ahead]) + 1
        if not line:
            continue
        alone = ahead + 1 >= len(lines) or not lines[ahead + 1].strip()
        capital = line[0].isupper() or (line[0].isalpha() and not line[0].isascii())
        shouted = line.isascii() and line == line.upper()
        prose = line.endswith(_UNFINISHED) or _PROSE_WORD.search(line)
        if alone and capital and len(line) <= 60 and (shouted or not prose):
            return line, offset
        break
    return "", 0


def _worded(line: _Line) -> Heading | None:
    """Chapter 3, PART I. The Title, 제1장 총칙, 제2조(정의) …, 第一章."""
    if article := _TITLED_ARTICLE.match(line.text):
        return Heading(_KOREAN_LEVEL["조"], article[0], line.start)
    if len(line.text) > _LONGEST:
        return None
    match = _ENGLISH.fullmatch(line.text) or _KOREAN.fullmatch(line.text) or _CHINESE.fullmatch(line.text)
    if not match or _LEADERS.search(match["rest"]):
        return None
    head, rest = match["head"], match["rest"]
    title = rest.strip(" \t.:：—–-・")
    in_prose = head[0].islower() or re.match(r"\w|\.\d", rest)
    if in_prose or title[:1].islower() or title.endswith((",", ";")):
        return None
    level = _LEVELS[match["word"].lower()]
    if not title:
        return Heading(level, f"{head} {line.title}" if line.title and not _is_worded(line.title) else head, line.start)
    if line.alone:
        return None if title.endswith((".", "?", "!")) and len(title) > 60 else Heading(level, line.text, line.start)
    return None if _is_worded(line.next) else Heading(level, head, line.start)  # the title runs on into a paragraph


def _is_worded(text: str) -> bool:
    return any(pattern.match(text) for pattern in (_ENGLISH, _KOREAN, _CHINESE))


def _marked(line: _Line, underlines: dict[str, int]) -> Heading | None:
    """Named headings (PREFACE), numbered ones (2.3.1 Mail Objects), underlined ones, and those of Aozora Bunko's notation."""
    text = line.text
    if mark := _AOZORA.search(text):
        return Heading(4 + 2 * "大中小".index(mark[2]), mark[1], line.start)
    if line.next and (rule := _RULE.fullmatch(line.next)) and len(line.next) >= len(text) > 1:
        return Heading(10 + underlines.setdefault(rule[1], len(underlines)), text, line.start)
    if not line.alone:
        return None
    if _END_MARK.fullmatch(text):
        return Heading(1, text, line.start)
    if _NAMED.fullmatch(text):
        return Heading(_NAMED_LEVEL, text.rstrip(".:"), line.start)
    if (number := _NUMBERED.fullmatch(text)) and not _LEADERS.search(text) and not text.endswith(_UNFINISHED):
        return Heading(10 + number["number"].count("."), text, line.start)
    if (roman := _ROMAN_TITLED.fullmatch(text)) and _in_capitals(roman["title"]) and not _LEADERS.search(text):
        return Heading(9, text, line.start)
    return None


def _in_capitals(text: str) -> bool:
    letters = sum(char.isalpha() for char in text)
    return letters >= 4 and text == text.upper() and text.isascii() and not text.startswith(('"', "(", "[")) and 2 * letters > len(text)


def _bare_numeral(text: str) -> int | None:
    match = _BARE.fullmatch(text)
    if not match:
        return None
    if match["digits"]:
        return int(match["digits"])
    values = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
    numbers = [values[char] for char in match["roman"]]
    return sum(-number if number < after else number for number, after in zip(numbers, [*numbers[1:], 0], strict=True))


def _counted(numerals: list[tuple[int, Heading]]) -> list[Heading]:
    """Lone numerals are headings if they count 1, 2, 3 … (again from 1 in a new part)."""
    kept: list[Heading] = []
    expected = 1
    for value, heading in numerals:
        if value not in (1, expected):
            continue
        kept.append(heading)
        expected = value + 1
    return kept if len(kept) > 1 else []


def _far_from(worded: list[Heading], capitals: list[Heading], length: int) -> list[Heading]:
    """Lines in capitals that are headings: all of them where there are no chapters, else those in a very long stretch without one."""
    if len(worded) < 3:
        return capitals
    edges = [0, *(heading.start for heading in worded), length]
    return [c for c in capitals if edges[(i := bisect_right(edges, c.start))] - edges[i - 1] > _HUGE]


def _without_contents(found: list[Heading], text: str) -> list[Heading]:
    """Drop tables of contents: runs of three or more headings of one level with nothing between, and what stands between the word
    CONTENTS and the place, not far off, where the first heading after it comes again."""
    kept: list[Heading] = []
    run: list[Heading] = []
    for heading in found:
        if run and (heading.level != run[-1].level or text[run[-1].start : heading.start].strip().count("\n")):
            kept += _chapters_of(run)
            run = []
        run.append(heading)
    kept += _chapters_of(run)
    for index, heading in enumerate(kept[:-2]):
        if "CONTENTS" in heading.label.upper():
            near = [later for later in kept[index + 1 :] if later.start - heading.start < 20_000]
            again = next((later for later in near[1:] if _key(later) == _key(near[0])), None)
            return [h for h in kept if not (again and heading.start < h.start < again.start)]
    return kept


def _chapters_of(run: list[Heading]) -> list[Heading]:
    """Of headings with nothing between: none if they list chapters, save a last one that begins again with the first."""
    if len(run) < 3:
        return run
    return run[-1:] if _key(run[-1]) == _key(run[0]) else []


def _key(heading: Heading) -> list[str]:
    return re.findall(r"\w+", heading.label.upper())[:2]
