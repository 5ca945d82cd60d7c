"""`eval citations`: does the passage that holds the answer come first among those cited?"""

from __future__ import annotations

from functools import partial

from engine.answering.answer import Answer
from engine.answering.citations import Passage
from engine.evaluation.asking import Dictated, Examined, contains, holds
from engine.evaluation.corpus import Question
from engine.library.documents import DocumentRow


def eval_citations(examined: Examined) -> None:
    """Figures of all rows. cited_top1_forced, cited_top3_forced: the part that holds the answer given, and the answer itself
    dictated. answered, cited_top1: the model's own answer holds the wanted words; the passage that it cites first holds them."""
    report = examined.report
    for file, document in examined:
        for question in file.questions:
            forced = examined.shelf.model_thread.run(partial(_forced, examined, document, question), urgent=True)
            free = examined.shelf.model_thread.run(examined.reader(document, question.question).run, urgent=True)
            report.add(
                file=question.file,
                language=question.language,
                question=question.question,
                gold=question.answer,
                forced_rank=_rank(forced, question),
                forced_quotes=_quotes(file.text, forced),
                answer=free.generated.text,
                answered=contains(free.generated.text, question.answer),
                rank=_rank(free, question),
                quotes=_quotes(file.text, free),
            )
    rows = [row for row in report.rows if "forced_rank" in row]
    report.settings["n"] = len(rows)
    if rows:
        report.figures["cited_top1_forced"] = sum(row["forced_rank"] == 1 for row in rows) / len(rows)
        report.figures["cited_top3_forced"] = sum(row["forced_rank"] in (1, 2, 3) for row in rows) / len(rows)
        report.figures["answered"] = sum(row["answered"] for row in rows) / len(rows)
        report.figures["cited_top1"] = sum(row["rank"] == 1 for row in rows) / len(rows)


def _forced(examined: Examined, document: DocumentRow, question: Question) -> Answer:
    """What is cited for the right answer from the part where it starts."""
    model, reader = examined.model, examined.reader(document, question.question)
    source = next(source for source in reader.documents.sources if holds(source, question))
    ids = model.tokenizer.encode_ids(question.answer)
    return reader.alone(source, Dictated(ids, model.config.eos[0]))


def _rank(answer: Answer, question: Question) -> int | None:
    """Place from 1 of the first cited passage that holds some of the answer."""

    def touches(passage: Passage) -> bool:
        return passage.start < question.end and question.start < passage.end

    return next((rank for rank, (_, passage) in enumerate(answer.cited, 1) if touches(passage)), None)


def _quotes(text: str, answer: Answer) -> list[str]:
    return [text[passage.start : passage.end] for _, passage in answer.cited]
