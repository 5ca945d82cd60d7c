"""`bench add`: its figures are made of what was measured, and what it added is removed again."""

from __future__ import annotations

from engine.evaluation.add import bench_add
from engine.shelf import Shelf


def test_adding_is_measured_stage_by_stage_and_leaves_nothing(tiny_shelf: Shelf) -> None:
    report = bench_add(tiny_shelf, tiny_shelf.model()[0], lambda stage: None, quick=True)
    [row] = report.rows
    figures = report.figures
    assert figures["index_size_fraction"] == row["index_bytes"] / row["segment_bytes"]
    assert figures["index_build_fraction"] == row["index_s"] / row["model_s"]
    assert row["bytes"] == row["segment_bytes"] + row["index_bytes"]
    assert min(row["index_bytes"], row["index_s"], row["model_s"]) > 0
    assert figures["bytes_vs_kv"] > 1
    assert tiny_shelf.library.documents.all() == []
    assert tiny_shelf.library.sidecars.all() == []
