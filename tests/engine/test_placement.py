"""What lies where: which device is meant, what fits on it, and what is said where it doesn't."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine import placement
from engine.attention.exact import Exact
from engine.attention.placed import Placed
from engine.errors import LongshelfError
from engine.placement import CONTEXT_BYTES, CPU, MARGIN, Device, Placement, plan, working_bytes
from tests.engine.attention.test_exact import CONFIG
from tests.engine.on_device import KIND

COMPILED = ("TRITON_CACHE_DIR", "CUDA_CACHE_PATH")
GB = 1_000_000_000
LLAMA_8B = replace(
    CONFIG, layers=32, hidden=4096, heads=32, kv_heads=8, head_dim=128, intermediate=14336, vocab=128256, window=131072, tied=False
)
without_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")


class Gpu(Device):
    """A GPU with so much memory."""

    def __init__(self, free: int, total: int) -> None:
        super().__init__("cuda", "a GPU", torch.device("cpu"))
        object.__setattr__(self, "measured", (free, total))

    def memory(self) -> tuple[int, int]:
        measured: tuple[int, int] = self.measured  # type: ignore[attr-defined]
        return measured


# ---- which device ----


@without_gpu
def test_without_a_gpu_auto_is_the_processor() -> None:
    assert placement.device("auto") == CPU


@without_gpu
def test_a_gpu_that_is_not_there_is_refused_with_the_reason() -> None:
    with pytest.raises(LongshelfError, match="no NVIDIA GPU") as error:
        placement.device("cuda")
    assert (error.value.kind, error.value.hint) == ("no_device", "Use --device cpu.")


def test_what_is_compiled_for_a_gpu_is_kept_in_the_folder_named_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement, "_named", dict.fromkeys(COMPILED, "/earlier"))
    for name in COMPILED:
        monkeypatch.setenv(name, "/earlier")
    for folder in (Path("/first"), Path("/second")):
        placement.keep_compiled_in(folder)
        assert [os.environ[name] for name in COMPILED] == [str(folder)] * 2


def test_what_is_compiled_stays_where_the_user_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement, "_named", {})
    for name in COMPILED:
        monkeypatch.setenv(name, "/wanted")
    placement.keep_compiled_in(Path("/home"))
    assert [os.environ[name] for name in COMPILED] == ["/wanted"] * 2


def test_without_triton_no_device_but_the_processor_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "triton" else find(name))
    assert placement.device("auto") == CPU
    with pytest.raises(LongshelfError, match="triton is not installed"):
        placement.device(KIND)


def test_an_unknown_device_is_wrong_usage() -> None:
    with pytest.raises(LongshelfError, match="tpu") as error:
        placement.device("tpu")
    assert error.value.kind == "usage"


def test_the_processor_reads_everything_in_memory_and_a_device_where_it_lies() -> None:
    assert type(Placement("cpu", CONFIG, 0).exact()) is Exact
    assert type(Placement(KIND, CONFIG, 0).exact()) is Placed


# ---- what fits ----


def test_what_weights_and_work_leave_of_a_gpu_is_for_chains() -> None:
    planned = plan(Gpu(140 * GB, 141 * GB), LLAMA_8B, 16 * GB, packed=False)
    assert planned.room == 140 * GB - 16 * GB - planned.working
    assert planned.working == working_bytes(LLAMA_8B, False) + int(MARGIN * (141 * GB)) + CONTEXT_BYTES
    assert 98304 * LLAMA_8B.kv_bytes_per_token < planned.room  # 12.9 GB


def test_a_gpu_without_room_for_chains_still_takes_the_weights() -> None:
    assert 0 <= plan(Gpu(20 * GB, 24 * GB), LLAMA_8B, 16 * GB, packed=False).room < GB


def test_chains_may_be_kept_in_memory_whatever_the_room() -> None:
    assert plan(Gpu(140 * GB, 141 * GB), LLAMA_8B, 16 * GB, packed=False, kv="ram").room == 0


def test_a_gpu_too_small_for_the_weights_is_refused_with_the_numbers() -> None:
    with pytest.raises(LongshelfError, match=r"takes 1\d\.\d GB of GPU memory; 7\.0 of 8\.0 GB are free on a GPU") as error:
        plan(Gpu(7 * GB, 8 * GB), LLAMA_8B, 16 * GB, packed=False)
    assert error.value.kind == "not_enough_memory"


def test_where_nobody_named_a_device_a_gpu_too_small_leaves_the_model_to_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement, "device", lambda asked: Gpu(7 * GB, 8 * GB))
    assert Placement("auto", LLAMA_8B, 16 * GB).device == CPU
    with pytest.raises(LongshelfError):
        Placement("cuda", LLAMA_8B, 16 * GB)


def test_memory_here_is_measured() -> None:
    available, total = placement.memory_here()
    assert 0 < available <= total
