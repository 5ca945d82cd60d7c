"""Where an installed model's tensors come from: rows in runs, so that a model needs no room for itself in memory.

Vectors become float32. Matrices become bf16, or blocks of a packing where that was asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import gguf
import numpy as np
from numpy.typing import NDArray

from engine.model.safetensors_file import Run, TensorInfo, to_bf16
from kernels.packings import PACKINGS

RUN = 1 << 23
"""Elements unpacked to float32 at once (32 MiB)."""
_OUTER = ("model.embed_tokens.weight", "lm_head.weight")
_OF_OUTER = "q8_0"

Numbers = Callable[[], Iterator[NDArray[np.float32]]]


@dataclass(frozen=True)
class Source:
    """One tensor of the model to be: `runs()` gives its rows in order, a run at a time."""

    info: TensorInfo
    runs: Callable[[], Iterator[Run]]


def plain(name: str, shape: tuple[int, ...], numbers: Numbers) -> Source:
    """The tensor `name` from its numbers."""
    if len(shape) == 1:
        return Source(TensorInfo(name, shape, "F32"), numbers)
    return Source(TensorInfo(name, shape), lambda: map(to_bf16, numbers()))


def packed(name: str, shape: tuple[int, ...], numbers: Numbers, pack: str) -> Source:
    """The same, packed where that can be: a matrix whose rows fill whole blocks. Embeddings and head keep 8 bits, as llama.cpp has it."""
    packing = PACKINGS[_OF_OUTER if name in _OUTER else pack]
    if len(shape) == 1 or shape[1] % packing.elements:
        return plain(name, shape, numbers)
    kind = gguf.GGMLQuantizationType[packing.name.upper()]
    info = TensorInfo(f"{name}.{packing.name}", (shape[0], packing.row_bytes(shape[1])), "U8")
    return Source(info, lambda: (gguf.quants.quantize(run, kind) for run in numbers()))


def steps(rows: int, columns: int) -> Iterator[tuple[int, int]]:
    """Runs [start, stop) of at most RUN numbers, one row at least."""
    step = max(1, RUN // max(columns, 1))
    for start in range(0, rows, step):
        yield start, min(start + step, rows)
