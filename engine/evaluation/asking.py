"""How measurements ask: the program's own reader on one document, with nothing saved."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import torch

from engine.answering.answer import Asking, Counts
from engine.answering.asking import MAX_TOKENS
from engine.answering.reader import Reader
from engine.answering.sampling import Sampling
from engine.answering.sources import Source, asked_documents
from engine.evaluation import corpus
from engine.evaluation.corpus import CorpusFile, OnShelf, Question
from engine.evaluation.report import Report
from engine.library.documents import DocumentRow
from engine.model.loaded import LoadedModel

if TYPE_CHECKING:
    from engine.shelf import Shelf


class Examined:
    """A corpus with the program that answers its questions. A question that can't be asked stands in the report with its reason."""

    def __init__(
        self,
        shelf: Shelf,
        model: LoadedModel,
        report: Report,
        folder: Path,
        most_tokens: int | None,
        part_tokens: int | None,
        say: Callable[[str], None],
    ) -> None:
        self.shelf, self.model, self.report = shelf, model, report
        self.files, skipped = corpus.load(folder, model.tokenizer, most_tokens)
        self._part_tokens, self._say = part_tokens, say
        report.settings |= {
            "model": model.name,
            "corpus": str(folder),
            "max_tokens_per_file": most_tokens,
            "part_tokens": part_tokens or model.card.part_tokens,
            "questions": sum(len(file.questions) for file in self.files),
            "skipped": len(skipped),
        }
        for row in skipped:
            report.add(file=row.file, question=row.question, skipped=row.reason)
            say(f"{row.file}: skipped. {row.reason}")

    def __iter__(self) -> Iterator[tuple[CorpusFile, DocumentRow]]:
        """Each file while it is on the shelf."""
        return iter(OnShelf(self.shelf, self.files, self._part_tokens, self._say))

    def reader(self, document: DocumentRow, question: str) -> Reader:
        """Who answers a question about one document as `ask` does, greedily."""
        asking = Asking(
            question=question,
            history=(),
            sampling=Sampling(),
            max_tokens=MAX_TOKENS,
            parts="auto",
            everything=False,
            emit=lambda event, data: None,
            stop=Event(),
        )
        documents = asked_documents(self.shelf, [document.id], False, self.model.namespace)
        return Reader(self.shelf, self.model, documents, asking, Counts())


class Dictated:
    """Says a given answer, then the end, whatever the model thinks."""

    def __init__(self, ids: Sequence[int], end: int) -> None:
        self._left = [*ids, end]

    def choose(self, logits: torch.Tensor) -> int:
        return self._left.pop(0)


def holds(source: Source, question: Question) -> bool:
    """Whether a part holds some of the question's answer."""
    return source.part.start < question.end and question.start < source.part.end


def contains(answer: str, gold: str) -> bool:
    """Whether an answer has the wanted words, whatever the case, the white space and the form of its apostrophes."""
    return _plain(gold) in _plain(answer)


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub("[‘’`´]", "'", unicodedata.normalize("NFKC", text))).casefold().strip()
