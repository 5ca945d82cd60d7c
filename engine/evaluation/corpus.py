"""A corpus of questions with known places: a folder with qa.jsonl, a question a line.

Each line: file, question, answer, offset_lf (code points of the file's text with LF line ends), length. A file is read by the
program's own readers, cut to runs of text around its answers where a limit asks for it, added, and removed again.
"""

from __future__ import annotations

import json
import re
import shutil
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from engine.documents.reader import read
from engine.errors import LongshelfError
from engine.library.documents import DocumentRow
from engine.model.tokenizer import Tokenizer

if TYPE_CHECKING:
    from engine.shelf import Shelf

QUESTIONS = "qa.jsonl"
_JOINT = "\n\n"
"""Stands between two runs of a cut text."""


@dataclass(frozen=True)
class Question:
    """One question and the place of its answer, [start, end) in code points of the text that is asked. language: "en", "ko", "ja"."""

    file: str
    question: str
    answer: str
    start: int
    end: int
    language: str


@dataclass(frozen=True)
class CorpusFile:
    """A file of the corpus as it is asked. whole: the text is not cut. source: where it lies."""

    name: str
    source: Path
    text: str
    format: str
    whole: bool
    questions: tuple[Question, ...]


@dataclass(frozen=True)
class Skipped:
    """A question that can't be asked, and why."""

    file: str
    question: str
    reason: str


def load(folder: Path, tokenizer: Tokenizer, most_tokens: int | None) -> tuple[list[CorpusFile], list[Skipped]]:
    """The files of a corpus, cut to about `most_tokens` around their answers (None: whole), those with the same text side by side.

    Raises LongshelfError("not_found") for a folder without qa.jsonl, ("unreadable") for one that holds something else.
    """
    files: list[CorpusFile] = []
    skipped: list[Skipped] = []
    for name, rows in _rows(folder).items():
        try:
            document = read(folder / name)
        except LongshelfError as error:
            skipped += [Skipped(name, str(row["question"]), error.message) for row in rows]
            continue
        placed: list[Question] = []
        for row in rows:
            start = _place(document.text, str(row["answer"]), int(row["offset_lf"]))
            if start is None:
                skipped.append(Skipped(name, str(row["question"]), "Its answer does not stand in the text that was read."))
                continue
            answer = str(row["answer"])
            placed.append(Question(name, str(row["question"]), answer, start, start + len(answer), language(str(row["question"]))))
        if placed:
            offsets = [start for start, _ in tokenizer.encode(document.text).offsets] if most_tokens is not None else []
            text, moved = (document.text, placed)
            if most_tokens is not None and len(offsets) > most_tokens:
                text, moved = cut(document.text, placed, offsets, most_tokens)
            files.append(CorpusFile(name, folder / name, text, document.format, text == document.text, tuple(moved)))
    first_with = {file.text: place for place, file in reversed(list(enumerate(files)))}
    return sorted(files, key=lambda file: first_with[file.text]), skipped


def language(text: str) -> str:
    """Of a question: "ko" with Hangul, "ja" with kana, else "en"."""
    if re.search("[가-힣]", text):
        return "ko"
    return "ja" if re.search("[\u3040-\u30ff]", text) else "en"


def cut(text: str, asked: Sequence[Question], token_starts: Sequence[int], tokens: int) -> tuple[str, list[Question]]:
    """Runs of whole lines around the answers, as long for each, of at most `tokens` in all; the questions with their new places.

    token_starts: code point at which each token of the text starts, ascending.
    """
    answers = [
        (max(0, bisect_right(token_starts, row.start) - 1), max(bisect_left(token_starts, row.end), bisect_right(token_starts, row.start)))
        for row in asked
    ]
    low, high = 0, len(token_starts)
    while low < high:  # the widest that fits
        width = (low + high + 1) // 2
        fits = sum(end - start for start, end in _runs(answers, width, len(token_starts))) <= tokens
        low, high = (width, high) if fits else (low, width - 1)
    pieces: list[str] = []
    moved: dict[Question, Question] = {}
    length = 0
    for first, last in _runs(answers, low, len(token_starts)):
        start, end = token_starts[first], token_starts[last] if last < len(token_starts) else len(text)
        inside = [row for row in asked if start <= row.start and row.end <= end]
        start, end = _whole_lines(text, start, end, min(row.start for row in inside), max(row.end for row in inside))
        for row in inside:
            shift = length - start
            moved[row] = Question(row.file, row.question, row.answer, row.start + shift, row.end + shift, row.language)
        pieces.append(text[start:end])
        length += end - start + len(_JOINT)
    return _JOINT.join(pieces), [moved[row] for row in asked]


def elsewhere(file: CorpusFile, files: list[CorpusFile]) -> list[Question]:
    """As many questions as a file has that the next files with another text answer: those in its language first."""
    own = {question.question for question in file.questions}
    at = files.index(file)
    others = [question for other in files[at + 1 :] + files[:at] if other.text != file.text for question in other.questions]
    foreign = list({question.question: question for question in others if question.question not in own}.values())
    foreign.sort(key=lambda question: question.language != file.questions[0].language)
    return foreign[: len(file.questions)]


class OnShelf:
    """Puts the files of a corpus on the shelf one after another, each for as long as its questions are asked."""

    def __init__(self, shelf: Shelf, files: Sequence[CorpusFile], part_tokens: int | None, say: Callable[[str], None]) -> None:
        self._shelf, self._files, self._part_tokens, self._say = shelf, files, part_tokens, say

    def __iter__(self) -> Iterator[tuple[CorpusFile, DocumentRow]]:
        """A document is removed when the next one is there: what they share is read once. Its text is the file's."""
        from engine.shelf import Call

        there: list[str] = []
        with TemporaryDirectory() as folder:
            try:
                for number, file in enumerate(self._files):
                    self._say(f"{file.name} ({number + 1} of {len(self._files)})")
                    path = _written(file, Path(folder) / str(number))
                    params = {"paths": [str(path)], "part_tokens": self._part_tokens, "yes": True}
                    added = self._shelf.call("documents.add", params, Call())["documents"][0]
                    if "error" in added:
                        raise LongshelfError(**added["error"])
                    there.append(added["id"])
                    if len(there) > 1:
                        self._forget(there.pop(0))
                    yield file, self._shelf.library.documents.get(added["id"])
            finally:
                for document_id in there:
                    self._forget(document_id)

    def _forget(self, document_id: str) -> None:
        from engine.shelf import Call

        self._shelf.call("documents.remove", {"id": document_id}, Call())


def _rows(folder: Path) -> dict[str, list[dict[str, Any]]]:
    path = folder / QUESTIONS
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        hint = "A corpus is a folder with qa.jsonl: file, question, answer, offset_lf, length."
        raise LongshelfError("not_found", f"{path} can't be read: {error.strerror}.", hint) from error
    rows: dict[str, list[dict[str, Any]]] = {}
    for number, line in enumerate(lines, 1):
        try:
            if line.strip():
                row = json.loads(line)
                rows.setdefault(str(row["file"]), []).append({name: row[name] for name in ("question", "answer", "offset_lf")})
        except (ValueError, KeyError, TypeError) as error:
            raise LongshelfError("unreadable", f"Line {number} of {path} is no question: {error}.") from error
    return rows


def _place(text: str, answer: str, offset: int) -> int | None:
    """Where the answer starts: at the offset, else the nearest place that holds it."""
    if text[offset : offset + len(answer)] == answer:
        return offset
    found = [match.start() for match in re.finditer(re.escape(answer), text)]
    return min(found, key=lambda start: abs(start - offset), default=None)


def _runs(answers: Sequence[tuple[int, int]], width: int, total: int) -> list[tuple[int, int]]:
    """Token ranges of `width` on both sides of the answers; those that touch are one."""
    runs: list[tuple[int, int]] = []
    for start, end in sorted((max(0, start - width), min(total, end + width)) for start, end in answers):
        if runs and start <= runs[-1][1]:
            runs[-1] = (runs[-1][0], max(runs[-1][1], end))
        else:
            runs.append((start, end))
    return runs


def _whole_lines(text: str, start: int, end: int, first: int, last: int) -> tuple[int, int]:
    """[start, end) without the broken lines at its ends; [first, last) stays."""
    if start > 0 and text[start - 1] != "\n":
        after = text.find("\n", start, first)
        start = after + 1 if after >= 0 else start
    if end < len(text) and text[end - 1] != "\n":
        before = text.rfind("\n", last, end)
        end = before + 1 if before >= 0 else end
    return start, end


def _written(file: CorpusFile, folder: Path) -> Path:
    """The file to add, at a path of its own: a copy where it is whole, else its text."""
    folder.mkdir()
    if file.whole:
        return Path(shutil.copy(file.source, folder / Path(file.name).name))
    path = folder / (Path(file.name).name if file.format == "markdown" else f"{Path(file.name).stem}.txt")
    path.write_text(file.text, encoding="utf-8", newline="")
    return path
