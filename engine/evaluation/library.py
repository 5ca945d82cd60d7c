"""`bench library`: how fast full text picks the documents that a question of a whole library is put to."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import resources
from engine.evaluation.report import Report
from engine.home import Home
from engine.library.library import Library

DOCUMENTS, QUICK_DOCUMENTS = 10_000, 1_000
WORDS = 250
"""Words of a document: a page."""

SEED = 1
_NAMESPACE = "bench"


def bench_library(say: Callable[[str], None], quick: bool = False) -> Report:
    """Figures candidates_s, candidates_worst_s: from a question to at most 20 documents, median and worst of all questions.

    Documents are pages of words drawn from our own texts, each with a name of its own; no model has a part in it.
    """
    documents = QUICK_DOCUMENTS if quick else DOCUMENTS
    report = Report("library", {"documents": documents, "words": WORDS, "quick": quick}, [SEED])
    folder = resources.calibration()
    asked = [json.loads(line)["question"] for line in (folder / "qa.jsonl").read_text(encoding="utf-8").splitlines()]
    with TemporaryDirectory() as room:
        home = Home(Path(room)).open()
        library = Library.open(home)
        try:
            say(f"writing {documents} documents")
            _fill(library, _pages(documents, folder))
            for question in asked:
                started = time.perf_counter()
                found = library.search.propose(question, _NAMESPACE)
                report.add(question=question, seconds=round(time.perf_counter() - started, 5), found=len(found))
        finally:
            library.close()
    report.figures["candidates_s"] = report.median("seconds")
    report.figures["candidates_worst_s"] = max(row["seconds"] for row in report.rows)
    return report


def _pages(count: int, folder: Path) -> Iterator[str]:
    """Text of each document: most in English, every fifth in Korean."""
    words: dict[bool, list[str]] = {True: [], False: []}
    for path in sorted(folder.glob("*.md")):
        words[path.name.endswith(".ko.md")] += path.read_text(encoding="utf-8").split()
    draw = random.Random(SEED)
    for number in range(count):
        yield f"Page {number:05}\n\n" + " ".join(draw.choices(words[number % 5 == 0], k=WORDS))


def _fill(library: Library, pages: Iterator[str]) -> None:
    """Rows of finished documents of one part each, without their files."""
    with library.catalog.transaction() as db:
        for number, text in enumerate(pages):
            name = f"d{number:07}"
            db.execute(
                "INSERT INTO documents (id, title, path, format, encoding_confident, source_digest, state, text, spans, skipped, added_at,"
                " updated_at) VALUES (?, ?, ?, 'text', 1, '', 'ready', ?, '[]', '[]', 0, 0)",
                [name, name, f"/{name}.txt", text],
            )
            db.execute(
                'INSERT INTO parts (id, document_id, namespace, model, ordinal, start, "end", tokens, first_token, ids_digest, expected,'
                " state) VALUES (?, ?, ?, 'bench', 0, 0, ?, 1, 0, '', '[]', 'ready')",
                [number + 1, name, _NAMESPACE, len(text)],
            )
            db.execute("INSERT INTO part_texts (part_id, text) VALUES (?, ?)", [number + 1, text])
