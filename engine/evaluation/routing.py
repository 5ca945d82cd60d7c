"""`eval routing`: is the part that holds the answer the first that is chosen, is it among the first three, and what does choosing cost?"""

from __future__ import annotations

from engine.answering.routing import Routed
from engine.answering.sources import Source
from engine.evaluation.asking import Examined, holds
from engine.evaluation.corpus import Question
from engine.library.documents import DocumentRow

REPEATS = 2
"""The first finds the document's files as adding left them, the second as a first question did."""


def eval_routing(examined: Examined) -> None:
    """Figures top1_en, top3_en, top1_ko, and fts_… by full text alone; chance_top1: of the English rows, by drawing a part.

    routing_s, routing_bytes: one choice in the document with the most parts, asked before. Documents of one part count for nothing.
    """
    report = examined.report
    report.settings["repeats"] = REPEATS
    for file, document in examined:
        for question in file.questions:
            for repeat in range(REPEATS):
                _choose(examined, document, question, repeat)
    asked = [row for row in report.rows if row.get("repeat") == 0 and row["parts"] > 1]
    for language in ("en", "ko"):
        rows = [row for row in asked if row["language"] == language]
        report.settings[f"n_{language}"] = len(rows)
        for name, column in (("", "rank"), ("fts_", "text_rank")):
            for first in (1, 3):
                hits = sum(row[column] is not None and row[column] <= first for row in rows)
                report.figures |= {f"{name}top{first}_{language}": hits / len(rows)} if rows else {}
    english = [1 / row["parts"] for row in asked if row["language"] == "en"]
    report.figures |= {"chance_top1": sum(english) / len(english)} if english else {}
    if asked:
        most = max(row["parts"] for row in asked)
        report.settings["largest_parts"] = most
        for column in ("routing_s", "routing_bytes"):
            report.figures[column] = report.median(column, parts=most, repeat=REPEATS - 1)


def _choose(examined: Examined, document: DocumentRow, question: Question, repeat: int) -> None:
    reader = examined.reader(document, question.question)
    routed: Routed = examined.shelf.model_thread.run(reader.routed, urgent=True)
    examined.report.add(
        file=question.file,
        language=question.language,
        question=question.question,
        repeat=repeat,
        parts=len(routed.sources),
        chosen=[source.number for source in routed.sources[:3]],
        rank=_rank(routed.sources, question),
        text_rank=_rank(routed.by_text, question),
        routing_s=round(routed.seconds, 4),
        routing_tokens=routed.tokens,
        routing_bytes=routed.bytes,
    )


def _rank(sources: tuple[Source, ...], question: Question) -> int | None:
    """Place from 1 of the first part that holds some of the answer."""
    return next((rank for rank, source in enumerate(sources, 1) if holds(source, question)), None)
