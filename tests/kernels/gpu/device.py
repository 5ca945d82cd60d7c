"""Where the kernels are tested: the GPU where there is one, else the CPU, in Triton's interpreter."""

from __future__ import annotations

import torch

from kernels.reference import Block

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
NEAR = 2e-5 if DEVICE.type == "cpu" else 2e-4
"""How far results near 1 may be off: tensor cores sum with a few bits less than float32 has."""


def there(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(DEVICE)


def blocks_there(blocks: list[Block]) -> list[Block]:
    return [Block(there(block.k), there(block.v), block.position, block.row_begin, block.row_end) for block in blocks]
