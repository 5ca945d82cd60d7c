"""The package says what it lacks instead of failing somewhere inside."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def said_by(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True).stdout


def test_without_triton_it_says_so() -> None:
    code = """
import importlib.util
importlib.util.find_spec = lambda name: None
from kernels import gpu
print(gpu.available())
try:
    gpu.attend
except ImportError as error:
    print(error)
"""
    available, message = said_by(code).splitlines()
    assert available == "False"
    assert "triton is not installed" in message


def test_importing_it_loads_no_triton() -> None:
    assert said_by("import sys, kernels.gpu; print('triton' in sys.modules)") == "False\n"
