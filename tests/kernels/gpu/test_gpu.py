"""The package says what it lacks instead of failing somewhere inside, and loads triton only for a kernel."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def said() -> list[str]:
    """By a process of its own, in which triton isn't found."""
    code = """
import importlib.util, sys
import kernels.gpu
print("triton" in sys.modules)
importlib.util.find_spec = lambda name: None
print(kernels.gpu.available())
try:
    from kernels.gpu import attend
except ImportError as error:
    print(error)
"""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True).stdout.splitlines()


def test_importing_it_loads_no_triton(said: list[str]) -> None:
    assert said[0] == "False"


def test_without_triton_it_says_so(said: list[str]) -> None:
    assert said[1] == "False"
    assert "triton is not installed" in said[2]
