"""Products with plain and packed matrices, on the CPU."""

from __future__ import annotations

import torch

from kernels import packings
from kernels.packings import Packing


def unpack(packing: Packing, packed: torch.Tensor, out: torch.Tensor) -> None:
    """Write the numbers of packed rows [n, bytes of a row] uint8 into out [n, columns] bf16."""
    out.copy_(packings.unpack(packing, packed))
