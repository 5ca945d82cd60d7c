"""What measurements report: raw rows, medians over the right ones, and figures that JSON can hold."""

from __future__ import annotations

import json
import os
import statistics

import pytest
import torch

from engine.evaluation.report import Report, machine, timed
from engine.threads import threads_in_use
from kernels import cpu


def report() -> Report:
    made = Report("decode", {"model": "tiny", "repeats": 3}, seeds=[7])
    for repeat, (ours, peer) in enumerate([(1.0, 2.0), (5.0, 2.5), (1.5, 9.0)]):
        made.add(side="longshelf", repeat=repeat, seconds=ours, context=512)
        made.add(side="sdpa", repeat=repeat, seconds=peer, context=512)
    made.add(side="longshelf", repeat=0, seconds=100.0, context=7680)
    return made


def test_a_median_is_taken_over_the_rows_that_match() -> None:
    assert report().median("seconds", side="longshelf", context=512) == 1.5
    assert report().median("seconds", side="sdpa") == 2.5


def test_without_conditions_a_median_is_taken_over_all_rows() -> None:
    assert report().median("seconds") == 2.5


def test_a_median_of_an_even_number_lies_between_the_middle_two() -> None:
    assert report().median("seconds", side="longshelf") == 3.25


def test_a_condition_that_no_row_meets_is_an_error() -> None:
    with pytest.raises(statistics.StatisticsError):
        report().median("seconds", side="eager")


def test_a_row_without_the_column_of_a_condition_does_not_match() -> None:
    made = report()
    made.add(seconds=1000.0)
    assert made.median("seconds", context=7680) == 100.0


def test_the_report_holds_every_row_and_rounds_only_figures() -> None:
    made = report()
    made.rows[0]["seconds"] = 1.0000001
    made.figures["exact_vs_transformers_512"] = 1.23456789
    value = json.loads(json.dumps(made.as_json()))
    assert value.keys() == {"name", "machine", "settings", "seeds", "rows", "figures"}
    assert (value["name"], value["settings"], value["seeds"]) == ("decode", {"model": "tiny", "repeats": 3}, [7])
    assert len(value["rows"]) == 7
    assert value["rows"][0] == {"side": "longshelf", "repeat": 0, "seconds": 1.0000001, "context": 512}
    assert value["figures"] == {"exact_vs_transformers_512": 1.2346}


def test_reports_share_no_rows() -> None:
    first, second = Report("a"), Report("b")
    first.add(seconds=1.0)
    assert second.rows == []


def test_the_machine_is_described_by_what_the_numbers_depend_on() -> None:
    told = machine()
    assert told["cores"] == os.cpu_count()
    assert told["threads"] == threads_in_use()
    assert told["torch"] == torch.__version__
    assert told["native"] == (cpu.native() or "none (torch fallback)")
    assert told["processor"]


def test_timing_does_the_work_once() -> None:
    done: list[int] = []
    assert timed(lambda: done.append(1)) >= 0
    assert done == [1]
