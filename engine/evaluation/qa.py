"""`eval qa`: does the model's own answer hold the wanted words, from the best part alone and from several?"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from engine.answering.answer import Answer
from engine.answering.reader import Reader
from engine.answering.sources import Source
from engine.evaluation.asking import Examined, contains

SEVERAL = 2
"""Parts that the ways of reading several are given: the best ones, in the order of the document."""


def eval_qa(examined: Examined) -> None:
    """Figures contains_gold_en, contains_gold_ko: as `ask` answers; answer_s: median seconds of such an answer.

    contains_gold_en_each: from the best two parts, each answering, then combined; contains_gold_en_joined: from the two quickly joined.
    """
    report = examined.report
    ways: dict[str, Callable[[Reader], Answer]] = {
        "auto": Reader.run,
        "each": partial(_several, Reader.each),
        "joined": partial(_several, Reader.joined),
    }
    for file, document in examined:
        for question in file.questions:
            for way, read in ways.items():
                reader = examined.reader(document, question.question)
                if way != "auto" and len(reader.documents.sources) < SEVERAL:
                    continue
                answer = examined.shelf.model_thread.run(partial(read, reader), urgent=True)
                report.add(
                    way=way,
                    file=question.file,
                    language=question.language,
                    question=question.question,
                    gold=question.answer,
                    answer=answer.generated.text,
                    contains_gold=contains(answer.generated.text, question.answer),
                    parts_read=[source.number for source in answer.sources],
                    answer_s=round(reader.counts.ttft_s + reader.counts.decode_s, 3),
                )
    for way in ways:
        for language in ("en", "ko"):
            rows = [row for row in report.rows if row.get("language") == language and row["way"] == way]
            name = language if way == "auto" else f"{language}_{way}"
            report.settings[f"n_{name}"] = len(rows)
            report.figures |= {f"contains_gold_{name}": sum(row["contains_gold"] for row in rows) / len(rows)} if rows else {}
    if any("answer_s" in row for row in report.rows):
        report.figures["answer_s"] = report.median("answer_s", way="auto")


def _several(read: Callable[[Reader, list[Source]], Answer], reader: Reader) -> Answer:
    """The best parts, read in the order of the document."""
    return read(reader, sorted(reader.routed().sources[:SEVERAL], key=lambda source: source.number))
