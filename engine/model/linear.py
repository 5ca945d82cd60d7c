"""A matrix of a model, and products with it: plain numbers, or the packed blocks of a GGUF, left packed in memory.

Rows of different layouts may stand below one another (a GGUF packs q, k and v as it likes), each run of them is a band. Few rows (decode,
verification) are multiplied by `kernels.cpu`, which unpacks in registers; many rows (prefill) by torch, from bf16 unpacked
into a buffer that all matrices share. Products of bf16 numbers are exact in float32, so a processor whose bf16 products are slow takes
float32 ones, on AVX2 those of `kernels.cpu`: they differ in the order of their sums alone.
"""

from __future__ import annotations

from functools import cache, cached_property

import torch
import torch.nn.functional as F

from kernels import cpu
from kernels.cpu import FEW
from kernels.packings import BF16, F32, Band, plain


@cache
def bulk_dtype(dtype: torch.dtype) -> torch.dtype:
    """What many rows of `dtype` are multiplied in: float32 where torch has no fast bf16 products for this processor (without
    AVX-512 they take six times as long as float32's)."""
    known = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    slow = known and not torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return torch.float32 if slow else dtype


class Scratch:
    """One buffer a type for unpacked matrices, as large as the largest; what `take` gave is overwritten by the next of that type."""

    def __init__(self) -> None:
        self._buffers: dict[torch.dtype, torch.Tensor] = {}

    def take(self, rows: int, columns: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
        """[rows, columns], content undefined."""
        there = self._buffers.get(dtype)
        if there is None or there.numel() < rows * columns:
            there = self._buffers[dtype] = torch.empty(rows * columns, dtype=dtype)
        return there[: rows * columns].view(rows, columns)


class Linear:
    """y = x Wᵀ + bias. bands: W [out, in], top to bottom; bias: [out] float32 or None."""

    def __init__(self, bands: list[Band], columns: int, scratch: Scratch, bias: torch.Tensor | None = None) -> None:
        if all(band.packing in (BF16, F32) for band in bands) and len({band.packing for band in bands}) == 1 and len(bands) > 1:
            bands = [plain(torch.cat([band.data for band in bands]))]
        self.bands = tuple(bands)
        self.columns = columns
        self.rows = sum(band.rows for band in bands)
        self.bias = bias
        self._scratch = scratch

    @cached_property
    def matrix(self) -> cpu.Matrix:
        """For native calls."""
        return cpu.Matrix(self.bands, self.columns, self.bias)

    def few(self, x: torch.Tensor, norm: torch.Tensor | None = None, eps: float = 0.0) -> torch.Tensor:
        """x [n <= 16, in] float32 contiguous, RMS-normalised by norm [in] first where given; gives [n, out] float32."""
        return cpu.linear(x, self.matrix, norm, eps)

    def many(self, x: torch.Tensor) -> torch.Tensor:
        """x [n, in] bf16 or float32, as the model's dtype is; gives [n, out] of the same dtype.

        Few rows come here only without the native library: one at a time, since torch's sums differ with their number.
        """
        if len(x) > FEW and self.bands and cpu.multiplies_many():  # on a device there are none
            return cpu.linear_many(x, self.matrix)
        dtype = x.dtype if x.is_cuda else bulk_dtype(x.dtype)
        weight, taken = self.weight(dtype), x.to(dtype)
        y = F.linear(taken, weight) if len(x) > FEW else torch.cat([F.linear(row, weight) for row in taken[:, None]])
        return y.to(x.dtype) if self.bias is None else (y + self.bias).to(x.dtype)

    def weight(self, dtype: torch.dtype) -> torch.Tensor:
        """[out, in] unpacked; valid until another matrix is unpacked."""
        if len(self.bands) == 1 and (only := self.bands[0]).packing in (BF16, F32):
            return only.data if only.data.dtype == dtype else self._as(only.data, dtype)
        unpacked = self._scratch.take(self.rows, self.columns)
        at = 0
        for band in self.bands:
            cpu.unpack(band.packing, band.data, unpacked[at : at + band.rows])
            at += band.rows
        return unpacked if dtype == unpacked.dtype else self._as(unpacked, dtype)

    def _as(self, matrix: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        return self._scratch.take(self.rows, self.columns, dtype).copy_(matrix)

    def row(self, indices: torch.Tensor) -> torch.Tensor:
        """Rows [n, in] as they are stored, unpacked: the look-up of an embedding (one band)."""
        (only,) = self.bands
        chosen = only.data[indices]
        if only.packing in (BF16, F32):
            return chosen
        rows = torch.empty(len(chosen), self.columns, dtype=torch.bfloat16)
        cpu.unpack(only.packing, chosen, rows)
        return rows
