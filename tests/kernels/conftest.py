"""Instruction sets and threads: tests choose them, and what was chosen ends with the test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from kernels import cpu


@pytest.fixture(autouse=True)
def _as_it_was_afterwards() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    if sets := cpu.instruction_sets():
        cpu.use_instruction_set(sets[-1])


@pytest.fixture(params=cpu.instruction_sets() or ["torch"])
def isa(request: pytest.FixtureRequest) -> str:
    """Each instruction set in turn; "torch" where there is no library, so that the same holds of the fallback."""
    if request.param != "torch":
        cpu.use_instruction_set(request.param)
    return str(request.param)
