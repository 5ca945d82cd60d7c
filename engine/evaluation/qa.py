"""`eval qa`: does the model's own answer hold the wanted words?"""

from __future__ import annotations

from engine.evaluation.asking import Examined, contains


def eval_qa(examined: Examined) -> None:
    """Figures contains_gold_en, contains_gold_ko; answer_s: median seconds from question to the end of the answer."""
    report = examined.report
    for file, document in examined:
        for question in file.questions:
            reader = examined.reader(document, question.question)
            answer = examined.shelf.model_thread.run(reader.run, urgent=True)
            report.add(
                file=question.file,
                language=question.language,
                question=question.question,
                gold=question.answer,
                answer=answer.generated.text,
                contains_gold=contains(answer.generated.text, question.answer),
                parts_read=[source.number for source in answer.sources],
                answer_s=round(reader.counts.ttft_s + reader.counts.decode_s, 3),
            )
    for language in ("en", "ko"):
        rows = [row for row in report.rows if row.get("language") == language]
        report.settings[f"n_{language}"] = len(rows)
        report.figures |= {f"contains_gold_{language}": sum(row["contains_gold"] for row in rows) / len(rows)} if rows else {}
    if any("answer_s" in row for row in report.rows):
        report.figures["answer_s"] = report.median("answer_s")
