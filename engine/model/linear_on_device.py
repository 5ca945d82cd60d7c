"""A matrix of a model on a device: few rows are multiplied by `kernels.gpu`, many by torch."""

from __future__ import annotations

import torch

from engine.model.linear import Linear, Scratch
from kernels import gpu, reference
from kernels.packings import BF16, F32, Band, plain


class LinearOnDevice(Linear):
    """As `Linear`; x and what it gives lie on the device, and so do the numbers, as its kernels read them."""

    def __init__(self, device: torch.device, bands: list[Band], columns: int, bias: torch.Tensor | None = None) -> None:
        if all(band.packing == bands[0].packing for band in bands) and bands[0].packing in (BF16, F32):
            bands = [plain(torch.cat([band.data.to(device) for band in bands]))]
        self.there = gpu.Matrix(bands, columns, bias, device)
        super().__init__([], columns, Scratch(), self.there.bias)
        self.rows = self.there.rows

    def few(self, x: torch.Tensor, norm: torch.Tensor | None = None, eps: float = 0.0) -> torch.Tensor:
        return gpu.linear(x if norm is None else reference.add_norm(x, None, norm, eps), self.there)

    def weight(self, dtype: torch.dtype) -> torch.Tensor:
        return gpu.unpack(self.there).to(dtype)
