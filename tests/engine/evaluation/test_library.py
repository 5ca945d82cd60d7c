"""`bench library`: every question finds its documents among pages that no model has read."""

from __future__ import annotations

import pytest

from engine.evaluation import library
from engine.evaluation.library import bench_library


def test_each_question_is_timed_and_finds_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "QUICK_DOCUMENTS", 60)
    report = bench_library(lambda text: None, quick=True)
    assert report.settings["documents"] == 60
    assert sum(row["found"] > 0 for row in report.rows) > len(report.rows) / 2
    assert max(row["found"] for row in report.rows) <= 20
    assert 0 < report.figures["candidates_s"] <= report.figures["candidates_worst_s"]
