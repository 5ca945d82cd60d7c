"""The kernels in Triton, for NVIDIA GPUs from compute capability 8.0 on: tensors in and out lie on one device.

Nothing else imports triton, and importing this package doesn't either: the first use of a kernel does, and says so where it can't.
Without a GPU the kernels run in Triton's interpreter, on CPU tensors, if TRITON_INTERPRET=1 stands in the environment before that
first use: slow, and the same numbers within rounding. Meanings: `kernels.reference`, `kernels.sketch` and `kernels.sampling`.
"""

from __future__ import annotations

import importlib.util
import os
from importlib import import_module
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from kernels.gpu.attention import BlockList as BlockList
    from kernels.gpu.attention import attend as attend
    from kernels.gpu.gathering import attend_gathered as attend_gathered
    from kernels.gpu.hashing import hash_codes as hash_codes
    from kernels.gpu.merging import merge as merge
    from kernels.gpu.sampling import choose as choose
    from kernels.gpu.sketch import build_sketch as build_sketch
    from kernels.gpu.sketch import guess as guess
    from kernels.gpu.weights import Matrix as Matrix
    from kernels.gpu.weights import linear as linear
    from kernels.gpu.weights import unpack as unpack

_HOMES = {
    "BlockList": "attention",
    "Matrix": "weights",
    "attend": "attention",
    "attend_gathered": "gathering",
    "build_sketch": "sketch",
    "choose": "sampling",
    "guess": "sketch",
    "hash_codes": "hashing",
    "linear": "weights",
    "merge": "merging",
    "unpack": "weights",
}
"""What this package gives, and the module that has it."""

FEW = 16
"""Up to this many rows of a call, a row's result doesn't depend on the others in any bit."""


def available() -> bool:
    """Whether the kernels run here: on a GPU, or in the interpreter where that was asked for."""
    return _lacking() is None


def interpreted() -> bool:
    """Whether kernels run in Triton's interpreter, so on CPU tensors."""
    return os.environ.get("TRITON_INTERPRET") == "1"


def _lacking() -> str | None:
    if importlib.util.find_spec("triton") is None:
        return "triton is not installed (on Linux x86-64: pip install 'longshelf[gpu]')"
    if not interpreted() and not torch.cuda.is_available():
        return "there is no GPU that torch can use; TRITON_INTERPRET=1 runs them slowly without one"
    return None


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if lacking := _lacking():
        raise ImportError(f"the GPU kernels can't run here: {lacking}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
