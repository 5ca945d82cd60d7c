"""Compiling the kernels for GPUs that aren't there, and what they would take of one: `python -m kernels.gpu.compile`.

The functions that launch the kernels are called as they would be on a GPU, on CPU tensors, and each launch ends after compiling: what
is compiled is what would run. Must be the first to load the kernels in its process, without TRITON_INTERPRET.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.runtime import JITFunction, driver

from kernels.gpu.attention import attend
from kernels.gpu.gathering import attend_gathered
from kernels.gpu.hashing import hash_codes
from kernels.gpu.sampling import choose
from kernels.gpu.sketch import build_sketch, guess
from kernels.gpu.weights import Matrix, linear
from kernels.packings import PACKINGS, Band, plain
from kernels.reference import Block
from kernels.sketch import Layout, Projection

ARCHITECTURES = (80, 89, 90)
"""Compute capabilities: A100, RTX 4090 and L40, H100 and H200."""


@dataclass(frozen=True)
class Compiled:
    """A kernel as compiled for one architecture. registers: of a thread; spilled: bytes of a thread kept in memory
    instead; shared: bytes of a program."""

    case: str
    kernel: str
    architecture: int
    warps: int
    registers: int
    spilled: int
    shared: int


def compile_all(architectures: tuple[int, ...] = ARCHITECTURES) -> list[Compiled]:
    """Every kernel in its main configurations; one process for each architecture, as many at a time as there are processors."""
    with ProcessPoolExecutor(min(len(architectures), os.cpu_count() or 1), multiprocessing.get_context("fork")) as pool:
        return [each for of_architecture in pool.map(_compile_for, architectures) for each in of_architecture]


def _compile_for(architecture: int) -> list[Compiled]:
    torch.set_num_threads(1)
    return [each for name, call in _cases().items() for each in _compile(name, call, architecture)]


def _cases() -> dict[str, Callable[[], object]]:
    return {
        "attend, bf16, D 64": lambda: _attend(64, 3),
        "attend, bf16, D 128": lambda: _attend(128, 4),
        **{f"linear, {name}": partial(_linear, name) for name in ("bf16", "q8_0", "q4_1")},
        "sketch, D 64": lambda: _sketch(64, Layout(2, 2, 0)),
        "sketch, D 128": lambda: _sketch(128, Layout(4, 4, 0)),
        "choose": _choose,
        "gathered, bf16, D 64": lambda: _gathered(64, 3),
        "gathered, bf16, D 128": lambda: _gathered(128, 4),
        "gathered, ids of each row": lambda: _gathered(128, 4, 5, 1001),
        "hash, one query": lambda: hash_codes(torch.zeros(8, 1, 128), torch.zeros(1, 128, 1500), 150, 10),
        "hash, many keys": lambda: hash_codes(torch.zeros(2, 4096, 128), torch.zeros(1, 128, 1500), 150, 10),
    }


def _attend(dim: int, group: int) -> object:
    k, v = torch.zeros(2, 2, 512, dim, dtype=torch.bfloat16)
    return attend(torch.zeros(1, 2 * group, dim), torch.zeros(1, dtype=torch.int32), [Block(k, v, 0, 0, 1)], 1.0)


def _gathered(dim: int, group: int, rows: int = 1, chosen: int = 512) -> object:
    """Of one row and a multiple of 16 keys Triton makes code of its own, which takes fewer registers."""
    k, v = torch.zeros(2, 2, 1024, dim, dtype=torch.bfloat16)
    ids, log_weights = torch.zeros(rows, 2, chosen, dtype=torch.int32), torch.zeros(rows, 2 * group, chosen)
    return attend_gathered(torch.zeros(rows, 2 * group, dim), k, v, ids, log_weights, 1.0)


def _choose() -> object:
    certain = torch.zeros(2, 256, dtype=torch.int16)
    return choose(torch.zeros(1, 6, 4096), torch.zeros(1, 6), certain, 1, torch.zeros(1, dtype=torch.int32), 1.0, 2)


def _linear(layout: str) -> object:
    """576 x 1536, of the default model."""
    packing = PACKINGS.get(layout)
    band = plain(torch.zeros(576, 1536, dtype=torch.bfloat16))
    if packing is not None:
        band = Band(packing, torch.zeros(576, packing.row_bytes(1536), dtype=torch.uint8))
    return linear(torch.zeros(1, 1536), Matrix([band], 1536))


def _sketch(dim: int, layout: Layout) -> object:
    maps = torch.zeros(2, 2, dim, layout.coordinates)
    projection = Projection(layout, torch.zeros(2, dim), *maps)
    sketch = build_sketch(torch.zeros(2, 1024, dim, dtype=torch.bfloat16), projection)
    return guess(torch.zeros(1, 8, dim), sketch, projection, 1024)


# ---- how ----


class _NoDevice(DriverBase):  # type: ignore[misc]
    """As much of a driver as compiling asks for."""

    def __init__(self, architecture: int) -> None:
        super().__init__()
        self.architecture = architecture

    @classmethod
    def is_active(cls) -> bool:
        return True

    def map_python_to_cpp_type(self, ty: str) -> str:
        return ty

    def get_current_target(self) -> Any:
        return GPUTarget("cuda", self.architecture, 32)

    def get_current_device(self) -> int:
        return self.architecture  # kernels are kept by device

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cpu")

    def get_benchmarker(self) -> Any:
        raise NotImplementedError("nothing can be timed without a GPU")


def _compile(case: str, call: Callable[[], object], architecture: int) -> Iterator[Compiled]:
    with _launches_recorded(architecture) as launched:
        call()
    for kernel in launched:
        registers, spilled = _resources(kernel.asm["cubin"])
        yield Compiled(case, kernel.name, architecture, kernel.metadata.num_warps, registers, spilled, kernel.metadata.shared)


@contextmanager
def _launches_recorded(architecture: int) -> Iterator[list[Any]]:
    launched: list[Any] = []
    run = JITFunction.run

    def compile_only(self: Any, *args: Any, warmup: bool, **kwargs: Any) -> None:
        launched.append(run(self, *args, warmup=True, **kwargs))

    driver.set_active(_NoDevice(architecture))
    with patch.object(JITFunction, "run", compile_only):
        yield launched


def _resources(cubin: bytes) -> tuple[int, int]:
    """(registers of a thread, bytes of stack: kernels without calls have one only for what they spill)."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        command = [triton.knobs.nvidia.cuobjdump.path, "--dump-resource-usage", str(path)]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = re.search(r"REG:(\d+) STACK:(\d+)", said)
    assert found, f"cuobjdump doesn't say what the kernel uses: {said}"
    return int(found[1]), int(found[2])


def main() -> None:
    made = compile_all()
    if "--json" in sys.argv:
        print(json.dumps([asdict(each) for each in made]))
        return
    print(f"{'':32} {'kernel':24} {'sm':>3} {'warps':>5} {'registers':>9} {'spilled':>7} {'shared':>7}")
    for each in made:
        numbers = f"{each.architecture:>3} {each.warps:>5} {each.registers:>9} {each.spilled:>7} {each.shared:>7}"
        print(f"{each.case:32} {each.kernel:24} {numbers}")


if __name__ == "__main__":
    main()
