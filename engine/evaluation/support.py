"""`eval support`: is an answer that the document doesn't support told from one that it does?"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from engine.evaluation.asking import Examined
from engine.evaluation.corpus import CorpusFile, Question, elsewhere
from engine.evaluation.report import auc
from engine.library.documents import DocumentRow


def eval_support(examined: Examined) -> None:
    """Each document is asked its own questions, and as many of other documents in the same language where there are some.

    Figures refused_absent, refused_present: share of answers marked as not found, of the questions asked of the wrong document and
    of the right one; auc: how often a right one scores above a wrong one; refused_…_en: of the English rows.
    """
    report = examined.report
    for file, document in examined:
        for question in file.questions:
            _ask(examined, document, file, question, present=True)
        for question in elsewhere(file, examined.files):
            _ask(examined, document, file, question, present=False)
    rows = [row for row in report.rows if "supported" in row]
    for suffix, chosen in (("", rows), ("_en", [row for row in rows if row["language"] == "en"])):
        for name, present in (("present", True), ("absent", False)):
            asked = [row for row in chosen if row["present"] == present]
            report.settings[f"n_{name}{suffix}"] = len(asked)
            if asked:
                report.figures[f"refused_{name}{suffix}"] = sum(not row["supported"] for row in asked) / len(asked)
        area = auc(*([row["support"] for row in chosen if row["present"] == present] for present in (True, False)))
        report.figures |= {f"auc{suffix}": area} if area is not None else {}


def _ask(examined: Examined, document: DocumentRow, file: CorpusFile, question: Question, present: bool) -> None:
    reader = examined.reader(document, question.question)
    answer = examined.shelf.model_thread.run(reader.run, urgent=True)
    evidence: dict[str, Any] = {name: round(value, 4) for name, value in asdict(answer.evidence).items()}
    examined.report.add(
        file=file.name,
        question_of=question.file,
        present=present,
        language=question.language,
        question=question.question,
        answer=answer.generated.text,
        supported=answer.supported,
        support=round(answer.support, 4),
        **evidence,
    )
