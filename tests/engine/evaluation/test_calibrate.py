"""Calibration: the rule is found on some texts and judged on others; sizes are chosen by how likely right answers are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import resources
from engine.answering.support import Evidence
from engine.evaluation.calibrate import Sign, choose_size, fit
from engine.evaluation.corpus import load
from engine.model import calibration
from engine.shelf import Call, Shelf


def signs(file: str, *, shift: float = 0.0) -> list[Sign]:
    """Five questions of each kind that coverage tells apart."""
    present = [Sign(file, True, Evidence(0.6 + 0.05 * n + shift, 0.2)) for n in range(5)]
    return present + [Sign(file, False, Evidence(0.05 * n + shift, 0.2)) for n in range(5)]


def test_what_tells_present_from_absent_gets_the_weight() -> None:
    rule, _ = fit(signs("a") + signs("b"))
    assert rule.weights["coverage"] > 1
    assert abs(rule.weights["explained"]) < 0.1
    assert rule.support(Evidence(0.9, 0.2)) > 0.8 > 0.2 > rule.support(Evidence(0.0, 0.2))


def test_figures_are_of_texts_that_the_rule_was_not_found_on() -> None:
    _, found = fit(signs("a") + signs("b"))
    assert (found["n_present"], found["n_absent"], found["auc"]) == (10, 10, 1.0)
    assert found["refused_present"] <= 0.1
    reversed_signs = [Sign("c", not sign.present, sign.evidence) for sign in signs("c")]
    assert fit(signs("a") + reversed_signs)[1]["auc"] == 0.0


def test_one_text_alone_gives_a_rule_without_figures() -> None:
    rule, found = fit(signs("a"))
    assert (rule.least, found["auc"]) == (0.5, None)


def test_the_largest_size_that_answers_about_as_well_is_chosen() -> None:
    assert choose_size({1024: -2.0, 2048: -2.05, 4096: -2.5}) == 2048
    assert choose_size({1024: -2.0, 2048: -3.0}) == 1024


def test_every_question_of_ours_has_its_answer_at_its_place(tiny_shelf: Shelf) -> None:
    files, skipped = load(resources.calibration(), tiny_shelf.model()[0].tokenizer, None)
    assert skipped == []
    rows = [json.loads(line) for line in (resources.calibration() / "qa.jsonl").read_text(encoding="utf-8").splitlines()]
    for file in files:
        offsets = [row["offset_lf"] for row in rows if row["file"] == file.name]
        assert [question.start for question in file.questions] == offsets
    assert sum(len(file.questions) for file in files) == len(rows) >= 60


def test_calibrating_keeps_what_was_found_and_adds_no_document(tiny_shelf: Shelf, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = "The ferry is called Marigold. The inn is called Heron."
    for name in ("a.md", "b.md"):
        (tmp_path / name).write_text(text.replace("is", "was") if name == "b.md" else text, encoding="utf-8")
    asked = [("a.md", "What is the ferry?", "Marigold"), ("b.md", "What was the inn?", "Heron")]
    rows = [
        {"file": f, "question": q, "answer": a, "offset_lf": (tmp_path / f).read_text().index(a), "length": len(a)} for f, q, a in asked
    ]
    (tmp_path / "qa.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    monkeypatch.setattr(resources, "calibration", lambda: tmp_path)
    stages: list[str] = []
    result = tiny_shelf.call("models.calibrate", {}, Call(lambda name, data: stages.append(data.get("stage", ""))))
    installed = tiny_shelf.models.open()
    known = calibration.load(installed)
    assert (known.part_tokens, known.found) == (result["part_tokens"], result["found"])
    assert known.part_tokens in (1024, 2048)
    assert set(known.support["weights"]) == {"coverage", "explained"}  # type: ignore[index]
    assert "parts of 1024 tokens" in stages
    assert known.sampled_from is not None
    assert (list(known.dense_layers), known.sampled_from) == (result["dense_layers"], result["sampled_from"])
    assert result["found"]["sampling"].keys() == {"shift_by_layer", "shift_of_all", "shift", "exact_ms", "sampled_ms"}
    assert tiny_shelf.library.documents.all() == []
