"""What `eval fidelity` compares: the same answer forced on every way of reading."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.errors import LongshelfError
from engine.evaluation import cases, fidelity
from engine.evaluation.behind import Behind, Compared, Way
from engine.evaluation.cases import DOCUMENT, Case
from engine.evaluation.forced import Stage
from engine.evaluation.report import Report
from engine.retrieval import projections
from engine.shelf import Shelf
from tests.engine.books import chapter

EVERYTHING = 4.0
"""A budget that affords every key."""


@pytest.fixture
def corpus_folder(tmp_path: Path) -> Path:
    """An English book and its copy, which asks the same, and a Korean text."""
    book, korean = "".join(chapter(n) for n in range(1, 4)), "감자는 값이 쌌다. 김 첨지는 인력거를 끌었다. " * 40
    asked = [("one.txt", book, "Who is Ward2003?", "Ward2003"), ("copy.txt", book, "Who is Ward2003?", "Ward2003")]
    asked.append(("ko.txt", korean, "김 첨지는 무엇을 끌었나?", "인력거"))
    rows = []
    for name, text, question, answer in asked:
        (tmp_path / name).write_text(text, encoding="utf-8")
        rows.append({"file": name, "question": question, "answer": answer, "offset_lf": text.index(answer), "length": len(answer)})
    (tmp_path / "qa.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return tmp_path


@pytest.fixture
def behind(tiny_shelf: Shelf) -> Behind:
    model = tiny_shelf.model()[0]
    encode = model.tokenizer.encode_ids
    case = Case(DOCUMENT, "book", "en", 0, encode(chapter(1) + chapter(2))[:400], encode("Who is it?"), encode("Ward"))

    def made() -> Behind:
        return Behind(Stage(model, case.text), case, projections.of(model, lambda: None))

    return tiny_shelf.model_thread.run(made)


def test_documents_are_taken_in_turn_of_their_languages_and_each_question_once(tiny_shelf: Shelf, corpus_folder: Path) -> None:
    found = cases.load(corpus_folder, tiny_shelf.model()[0], 400, 8, {"needle": (1, 2)})
    assert [case.source for case in found] == ["one.txt", "ko.txt", "needle 1", "needle 2"]
    assert all(len(case.text) <= 400 for case in found)
    assert len(found[2].text) == 400


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("selector", ["default", "top_k", "quest", "sign_256"])
def test_reading_every_key_agrees_with_exact_reading(tiny_shelf: Shelf, behind: Behind, selector: str, sampled: bool) -> None:
    compared = tiny_shelf.model_thread.run(lambda: behind.compared(Way(selector, EVERYTHING, sampled, 1)))
    assert compared.overlap > 0.99
    assert compared.agreement == 1.0
    assert compared.rows_read == pytest.approx(1.0)
    assert max(compared.output_errors) < 1e-3


def test_hash_tables_that_draw_more_read_more_and_lose_less(tiny_shelf: Shelf, behind: Behind) -> None:
    few, many = (tiny_shelf.model_thread.run(lambda: behind.compared(Way(of, 0.2, False, 1))) for of in ("lsh_10_150", "lsh_8_75"))  # noqa: B023
    assert 0 < few.rows_read < many.rows_read < 1
    assert few.rows_read < few.bytes_read
    assert sum(few.output_errors) > sum(many.output_errors) > 0


def test_fewer_bytes_are_read_and_more_is_lost_on_a_smaller_budget(tiny_shelf: Shelf, behind: Behind) -> None:
    few, many = (tiny_shelf.model_thread.run(lambda: behind.compared(Way("default", budget, False, 1))) for budget in (0.3, 0.7))  # noqa: B023
    assert few.bytes_read < many.bytes_read < 1
    assert few.rows_read < many.rows_read
    assert sum(few.output_errors) > sum(many.output_errors) > 0


def test_reading_the_same_text_again_changes_nothing_on_as_many_threads(tiny_shelf: Shelf, behind: Behind) -> None:
    again = tiny_shelf.model_thread.run(lambda: behind.read_again(Stage(tiny_shelf.model()[0], behind.case.text)))
    assert again == Compared(pytest.approx(1.0), 1.0, None, 1.0, 1.0, [])


def test_the_gain_on_frequent_words_is_the_lower_end_of_a_paired_interval() -> None:
    rows = [
        {
            "kind": "frequent_words",
            "tokens": 9,
            "budget": 0.2,
            "question": "sampled",
            "selector": selector,
            "source": str(n),
            "overlap": overlap,
        }
        for selector, overlaps in (("default", (0.9, 0.8, 0.85)), ("top_k", (0.8, 0.75, 0.7)))
        for n, overlap in enumerate(overlaps)
    ]
    found = fidelity._aggregation(rows, 9)
    assert found["aggregation_minus_topk_mean"] == pytest.approx(0.1)
    assert found["aggregation_minus_topk"] == pytest.approx(0.1 - 4.303 * 0.05 / 3**0.5)


def test_texts_too_short_to_sample_are_refused(tiny_shelf: Shelf, corpus_folder: Path) -> None:
    with pytest.raises(LongshelfError) as error:
        fidelity.eval_fidelity(tiny_shelf.model()[0], corpus_folder, 100, Report("fidelity"), lambda text: None)
    assert error.value.kind == "usage"
