"""Every kernel compiles for the GPUs that are meant, and keeps what it works on in registers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("triton")

ROOT = Path(__file__).parents[3]
SHARED_MEMORY = {80: 163 << 10, 89: 99 << 10, 90: 227 << 10}
"""Bytes that a program may have: https://docs.nvidia.com/cuda/cuda-c-programming-guide (compute capabilities)."""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """By the Triton that is here, nothing of it from a cache."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment["TRITON_CACHE_DIR"] = str(tmp_path_factory.mktemp("triton"))
    command = [sys.executable, "-m", "kernels.gpu.compile", "--json"]
    said = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment)
    assert said.returncode == 0, said.stderr
    return list(json.loads(said.stdout))


def test_every_kernel_is_compiled_for_every_architecture(compiled: list[dict[str, Any]]) -> None:
    kernels = {each["kernel"] for each in compiled}
    assert kernels == {
        "attend_kernel",
        "build_kernel",
        "coordinates_kernel",
        "draw_kernel",
        "gathered_kernel",
        "guess_kernel",
        "hash_kernel",
        "linear_kernel",
        "merge_kernel",
        "sum_parts_kernel",
        "thresholds_kernel",
    }
    for kernel in kernels:
        assert {each["architecture"] for each in compiled if each["kernel"] == kernel} == {80, 89, 90}


def test_nothing_is_spilled(compiled: list[dict[str, Any]]) -> None:
    assert [each for each in compiled if each["spilled"]] == []


def test_shared_memory_suffices(compiled: list[dict[str, Any]]) -> None:
    assert [each for each in compiled if each["shared"] > SHARED_MEMORY[each["architecture"]]] == []
