"""`eval` and `bench` on the command line: one object of rows and figures, and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.engine.books import chapter
from tests.engine.commands.conftest import Longshelf


@pytest.fixture
def corpus_folder(tmp_path: Path) -> Path:
    text = "".join(map(chapter, (1, 2, 3)))
    (tmp_path / "book.txt").write_text(text, encoding="utf-8")
    row = {"file": "book.txt", "question": "Who is Ward2003?", "answer": "Ward2003", "offset_lf": text.index("Ward2003"), "length": 8}
    (tmp_path / "qa.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    return tmp_path


def test_an_evaluation_gives_one_object(longshelf: Longshelf, corpus_folder: Path) -> None:
    done = longshelf("eval", "routing", "--corpus", corpus_folder, "--part-tokens", 1024, "--max-tokens-per-file", 2500, "--json")
    assert (done.status, done.json["name"]) == (0, "routing")
    assert done.json.keys() == {"name", "machine", "settings", "seeds", "rows", "figures"}
    assert {"top1_en", "top3_en", "fts_top1_en", "chance_top1", "routing_s", "routing_bytes"} <= done.json["figures"].keys()
    assert done.json["settings"]["max_tokens_per_file"] == 2500


def test_figures_are_told_to_people(longshelf: Longshelf, corpus_folder: Path) -> None:
    done = longshelf("eval", "routing", "--corpus", corpus_folder, "--part-tokens", 1024)
    assert "fts_top1_en" in done.out


def test_a_corpus_may_be_named_by_the_environment(longshelf: Longshelf, corpus_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGSHELF_CORPUS", str(corpus_folder))
    assert longshelf("eval", "routing", "--part-tokens", 1024, "--json").status == 0
    monkeypatch.delenv("LONGSHELF_CORPUS")
    assert longshelf("eval", "routing", "--json").status == 2


def test_quick_is_refused_with_the_reason(longshelf: Longshelf, corpus_folder: Path) -> None:
    done = longshelf("eval", "qa", "--corpus", corpus_folder, "--quick", "--json")
    assert (done.status, done.json["error"]["kind"]) == (2, "usage")
    assert "50 s" in done.json["error"]["message"]


def test_a_folder_without_questions_is_refused(longshelf: Longshelf, tmp_path: Path) -> None:
    assert longshelf("eval", "qa", "--corpus", tmp_path, "--json").json["error"]["kind"] == "not_found"


def test_a_shape_is_timed_without_a_model(longshelf: Longshelf) -> None:
    done = longshelf("bench", "decode", "--shape", "tiny", "--context", 600, "--part-tokens", 200, "--device", "cpu", "--quick", "--json")
    assert done.status == 0, done.err
    assert done.json["settings"]["modes"] == ["exact", "sampled"]
    assert done.json["figures"]["exact_ms_1k"] > 0


def test_modes_of_the_installed_model_are_timed_behind_contexts(longshelf: Longshelf) -> None:
    done = longshelf("bench", "decode", "--mode", "exact,sampled", "--context", 2500, "--part-tokens", 1000, "--json")
    assert done.status == 0, done.err
    assert done.json["figures"]["sampled_vs_exact_2k"] > 0
    assert (done.json["settings"]["model"], done.json["settings"]["device"]) == ("tiny", "cpu")


def test_attention_is_measured_of_pinned_keys_and_of_a_layer_of_the_model(longshelf: Longshelf) -> None:
    done = longshelf("bench", "attention", "--shape", "tiny", "--context", "2048,3000", "--quick", "--json")
    assert done.status == 0, done.err
    figures = done.json["figures"]
    assert {"dense_bandwidth_fraction", "dense_vs_torch", "sampled_output_error"} <= figures.keys()
    assert {"sampled_speedup_2k", "sampled_speedup_3k"} <= figures.keys()
    assert figures["layer_sampled_speedup_3k"] > 0
    assert done.json["settings"]["layer"] == "tiny, layer 1"
