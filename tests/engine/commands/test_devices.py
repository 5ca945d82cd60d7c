"""`ask --device`: the same answer from a model that runs elsewhere, and a plain word where it can't."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("triton")

import torch
from triton import knobs

from engine import placement
from tests.engine.books import PART, book
from tests.engine.commands.conftest import Longshelf
from tests.engine.on_device import KIND

QUESTION = "Who keeps lamp 1.3?"


@pytest.fixture
def shelf(longshelf: Longshelf, tmp_path: Path) -> Longshelf:
    longshelf("add", book(tmp_path, 1), "--part-tokens", PART)
    return longshelf


def test_an_answer_is_the_same_on_a_device(shelf: Longshelf) -> None:
    here, there = (shelf("ask", "book", QUESTION, "--max-tokens", 3, "--device", device, "--json").json for device in ("cpu", KIND))
    assert (here["device"], there["device"]) == ("cpu", KIND)
    assert there["token_ids"] == here["token_ids"]
    assert there["kv_bytes_read"] == here["kv_bytes_read"]
    assert [each["start"] for each in there["citations"]] == [each["start"] for each in here["citations"]]


def test_what_is_compiled_for_a_gpu_is_kept_in_the_home(shelf: Longshelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement, "_named", {"TRITON_CACHE_DIR": "/earlier"})
    monkeypatch.setenv("TRITON_CACHE_DIR", "/earlier")
    shelf("ask", "book", QUESTION, "--max-tokens", 1)
    assert knobs.cache.dir == str(shelf.home.cache / "compiled")


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_gpu_that_is_not_there_is_refused_with_what_to_do(shelf: Longshelf) -> None:
    done = shelf("ask", "book", QUESTION, "--device", "cuda", "--json")
    assert (done.status, done.json["error"]["kind"]) == (1, "no_device")
    assert "no NVIDIA GPU" in done.err
    assert "--device cpu" in done.err


def test_an_unknown_device_is_wrong_usage(shelf: Longshelf) -> None:
    done = shelf("ask", "book", QUESTION, "--device", "tpu", "--json")
    assert (done.status, done.json["error"]["kind"]) == (2, "usage")
