"""What calibration found for a model stays with it; without it, the model's size tells what can be told."""

from __future__ import annotations

import json

import pytest

from engine.errors import LongshelfError
from engine.home import Home
from engine.model import calibration
from engine.model.calibration import CALIBRATION_FILE, Calibration
from engine.model.installed import InstalledModel, Models


@pytest.fixture
def installed(tiny_home: Home) -> InstalledModel:
    return Models(tiny_home).open()


def test_without_calibration_parts_are_as_the_card_has_them(installed: InstalledModel) -> None:
    known = calibration.load(installed)
    assert (known.part_tokens, known.support, known.found) == (installed.card.part_tokens, None, {})
    assert 0 < known.row_s < 1e-4  # a model a thousand times smaller than the default one


def test_what_was_found_is_read_back(installed: InstalledModel) -> None:
    found = Calibration(2048, 0.002, {"weights": {"coverage": 1.0}, "bias": -1.0, "least": 0.4}, {"auc": 0.9}, (0, 3), 2560)
    calibration.save(installed, found)
    assert calibration.load(installed) == found


def test_what_an_earlier_version_found_says_nothing_of_sampling(installed: InstalledModel) -> None:
    (installed.folder / CALIBRATION_FILE).write_text(json.dumps({"format": 1, "part_tokens": 2048, "row_s": 0.002}), encoding="utf-8")
    known = calibration.load(installed)
    assert (known.part_tokens, known.dense_layers, known.sampled_from) == (2048, (), None)


def test_lists_show_what_was_found(installed: InstalledModel, tiny_home: Home) -> None:
    assert [row["calibration"] for row in Models(tiny_home).list() if row["name"] == "tiny"] == [None]
    calibration.save(installed, Calibration(2048, 0.002, dense_layers=(0, 3), sampled_from=2560))
    [shown] = [row["calibration"] for row in Models(tiny_home).list() if row["name"] == "tiny"]
    assert shown == {"part_tokens": 2048, "dense_layers": [0, 3], "sampled_from": 2560}


def test_a_changed_byte_is_noticed(installed: InstalledModel, tiny_home: Home) -> None:
    calibration.save(installed, Calibration(2048, 0.002))
    path = installed.folder / CALIBRATION_FILE
    path.write_text(path.read_text(encoding="utf-8").replace("2048", "1024"), encoding="utf-8")
    with pytest.raises(LongshelfError, match="fails its checksum"):
        calibration.load(installed)
    assert "fails its checksum" in next(row["problem"] for row in Models(tiny_home).list() if row["name"] == "tiny")


def test_a_file_of_a_later_version_is_refused(installed: InstalledModel) -> None:
    (installed.folder / CALIBRATION_FILE).write_text(json.dumps({"format": 99}), encoding="utf-8")
    with pytest.raises(LongshelfError) as refused:
        calibration.load(installed)
    assert refused.value.kind == "newer_home"


def test_a_damaged_file_is_named(installed: InstalledModel) -> None:
    (installed.folder / CALIBRATION_FILE).write_text('{"parts": 7}', encoding="utf-8")
    with pytest.raises(LongshelfError, match=r"calibration\.json is damaged"):
        calibration.load(installed)
