"""What `eval` says of answers: ranks and shares counted on a small corpus with the tiny model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.evaluation.asking import Dictated, Examined, contains
from engine.evaluation.citations import eval_citations
from engine.evaluation.corpus import CorpusFile, Question, elsewhere
from engine.evaluation.qa import eval_qa
from engine.evaluation.report import Report, auc
from engine.evaluation.routing import eval_routing
from engine.evaluation.support import eval_support
from engine.shelf import Shelf
from tests.engine.books import PART, chapter


@pytest.fixture
def corpus_folder(tmp_path: Path) -> Path:
    """Two books of three parts, each asked about a ward that its second chapter names; and a file that no version can read."""
    rows = []
    for name, first in (("one.txt", 1), ("two.txt", 4)):
        text = "".join(chapter(n) for n in range(first, first + 3))
        (tmp_path / name).write_text(text, encoding="utf-8")
        answer = f"Ward{1000 * (first + 1) + 3}"
        question = f"Who is {answer}?"
        rows.append({"file": name, "question": question, "answer": answer, "offset_lf": text.index(answer), "length": len(answer)})
    (tmp_path / "photo.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    rows.append({"file": "photo.png", "question": "What?", "answer": "x", "offset_lf": 0, "length": 1})
    (tmp_path / "qa.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return tmp_path


def measured(shelf: Shelf, folder: Path, measure: Callable[[Examined], None], monkeypatch: pytest.MonkeyPatch) -> Report:
    monkeypatch.setattr("engine.evaluation.asking.MAX_TOKENS", 8)
    report = Report("test")
    measure(Examined(shelf, shelf.model()[0], report, folder, None, PART, lambda text: None))
    return report


def test_what_can_not_be_read_is_reported_and_counts_for_nothing(
    tiny_shelf: Shelf, corpus_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = measured(tiny_shelf, corpus_folder, eval_qa, monkeypatch)
    assert [row["file"] for row in report.rows if "skipped" in row] == ["photo.png"]
    assert (report.settings["questions"], report.settings["skipped"], report.settings["n_en"]) == (2, 1, 2)
    assert report.figures["contains_gold_en"] in (0.0, 0.5, 1.0)


def test_the_rank_of_the_part_that_holds_the_answer_is_counted(
    tiny_shelf: Shelf, corpus_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = measured(tiny_shelf, corpus_folder, eval_routing, monkeypatch)
    rows = [row for row in report.rows if row.get("repeat") == 0]
    assert [row["text_rank"] for row in rows] == [1, 1]  # only the second part has the name
    assert all(row["chosen"][row["rank"] - 1] == 2 for row in rows)
    assert report.figures["fts_top1_en"] == 1.0
    assert report.figures["top1_en"] == sum(row["rank"] == 1 for row in rows) / 2
    assert report.figures["chance_top1"] == pytest.approx(1 / 3)
    assert report.figures["routing_bytes"] > 0


def test_a_dictated_answer_is_cited_where_it_stands(tiny_shelf: Shelf, corpus_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = measured(tiny_shelf, corpus_folder, eval_citations, monkeypatch)
    rows = [row for row in report.rows if "forced_rank" in row]
    for row in rows:
        if row["forced_rank"]:
            assert row["gold"] in row["forced_quotes"][row["forced_rank"] - 1]
    assert report.figures["cited_top3_forced"] == 1.0


def test_each_document_is_asked_what_it_says_and_what_another_says(
    tiny_shelf: Shelf, corpus_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = measured(tiny_shelf, corpus_folder, eval_support, monkeypatch)
    rows = [row for row in report.rows if "supported" in row]
    assert [(row["file"], row["question_of"], row["present"]) for row in rows] == [
        ("one.txt", "one.txt", True),
        ("one.txt", "two.txt", False),
        ("two.txt", "two.txt", True),
        ("two.txt", "one.txt", False),
    ]
    assert report.figures["refused_present"] == sum(not row["supported"] for row in rows if row["present"]) / 2
    assert 0 <= report.figures["auc"] <= 1


def test_nothing_stays_behind(tiny_shelf: Shelf, corpus_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured(tiny_shelf, corpus_folder, eval_qa, monkeypatch)
    assert tiny_shelf.library.documents.all() == []
    assert tiny_shelf.library.chats.all() == []


def test_questions_of_elsewhere_are_those_in_the_same_language_first() -> None:
    def file(name: str, text: str, *questions: tuple[str, str]) -> CorpusFile:
        return CorpusFile(name, Path(name), text, "text", True, tuple(Question(name, q, "x", 0, 1, lang) for q, lang in questions))

    first = file("a", "A", ("A one?", "en"), ("A two?", "en"))
    twin = file("b", "A", ("A one?", "en"))
    korean = file("c", "C", ("무엇?", "ko"))
    english = file("d", "D", ("D one?", "en"))
    assert [q.question for q in elsewhere(first, [first, twin, korean, english])] == ["D one?", "무엇?"]
    assert [q.question for q in elsewhere(korean, [first, twin, korean, english])] == ["D one?"]


def test_a_dictated_answer_is_said_token_by_token_and_ended() -> None:
    import torch

    dictated = Dictated([5, 6], 2)
    assert [dictated.choose(torch.zeros(8)) for _ in range(3)] == [5, 6, 2]


@pytest.mark.parametrize(
    ("answer", "gold", "expected"),
    [("It is six o'clock.", "six o’clock", True), ("ten  miles\nround", "Ten miles round", True), ("nine", "nine Years", False)],
)
def test_wanted_words_are_found_whatever_their_form(answer: str, gold: str, expected: bool) -> None:
    assert contains(answer, gold) == expected


def test_the_area_under_the_curve_is_how_often_a_positive_scores_above_a_negative() -> None:
    assert auc([3.0, 1.0], [2.0, 0.0]) == 0.75
    assert auc([1.0], [1.0]) == 0.5
    assert auc([], [1.0]) is None
