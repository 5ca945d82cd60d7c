"""Keys with a few far from the rest, their sketches, and queries that sample them."""

from __future__ import annotations

import torch

from kernels import budgets, cpu, sampling, sketch
from kernels.budgets import Promise
from kernels.cpu import sampled
from kernels.reference import Block
from kernels.sampling import Drawn, SketchedBlock
from kernels.sketch import Layout, Projection

KV_HEADS = 2
LAYOUT = Layout(2, 2, 0)


def projection(dim: int, layout: Layout = LAYOUT, seed: int = 0) -> Projection:
    """Coordinates by a random rotation, in steps of about half of a key's spread."""
    draw = torch.Generator().manual_seed(seed)
    wide = max(layout.coordinates, dim)
    turned = torch.linalg.qr(torch.randn(KV_HEADS, wide, wide, generator=draw))[0][:, :dim, : layout.coordinates]
    steps = torch.cat([torch.full((32 // bits,), {4: 0.5, 2: 1.0, 1: 1.6}[bits]) for bits in layout.bits()])
    centres = torch.randn(KV_HEADS, dim, generator=draw)
    return Projection(layout, centres, (turned / steps).contiguous(), (turned * steps).contiguous())


class SampledCase:
    """Rows behind a chain of sketched blocks of these lengths, between two blocks that are read whole."""

    def __init__(
        self,
        lengths: tuple[int, ...] = (1024, 300),
        dim: int = 64,
        group: int = 3,
        rows: int = 2,
        layout: Layout = LAYOUT,
        dtype: torch.dtype = torch.bfloat16,
        certain: float = 0.0,
        budget: float = 60.0,
    ) -> None:
        self.draw = torch.Generator().manual_seed(1)
        self.projection = projection(dim, layout)
        self.scale, self.softcap, self.seed = dim**-0.5, 0.0, 77
        self.whole = [self._block(4, 0, dtype)]
        self.sketched: list[SketchedBlock] = []
        position = 4
        for length in lengths:
            block = self._block(length, position, dtype)
            bits = torch.rand(KV_HEADS, sketch.groups(length), 16, generator=self.draw) < certain
            mask = (bits.int() << torch.arange(16)).sum(-1).to(torch.int16) if certain else None
            self.sketched.append(SketchedBlock(block, sketch.build(block.k, self.projection), mask))
            position += length
        self.whole.append(self._block(rows + 7, position, dtype))  # a tail with room behind the last row
        self.positions = torch.arange(position + 1, position + 1 + rows, dtype=torch.int32)
        self.q = 1.5 * torch.randn(rows, KV_HEADS * group, dim, generator=self.draw)
        self.budgets = torch.full((rows, KV_HEADS * group), float(budget))

    def _block(self, length: int, position: int, dtype: torch.dtype) -> Block:
        dim = self.projection.centres.shape[1]
        k, v = torch.randn(2, KV_HEADS, length, dim, generator=self.draw)
        return Block((k + self.projection.centres[:, None]).to(dtype), v.to(dtype), position, 0, 1 << 20)

    def native(self) -> Drawn:
        whole, sketched = cpu.BlockList(self.whole), sampled.SketchedList(self.sketched)
        return sampled.attend(self.q, self.positions, whole, sketched, self.projection, self.budgets, self.seed, self.scale, self.softcap)

    def reference(self, thresholds: torch.Tensor | None = None, double: bool = False) -> Drawn:
        q = self.q.double() if double else self.q
        return sampling.attend(
            q, self.positions, self.whole, self.sketched, self.projection, self.budgets, self.seed, self.scale, self.softcap, thresholds
        )

    def within(self, promise: Promise, thresholds: torch.Tensor | None = None) -> Drawn:
        whole, sketched = cpu.BlockList(self.whole), sampled.SketchedList(self.sketched)
        by = self.budgets, self.seed, self.scale, self.softcap, thresholds
        return sampled.attend_within(promise, self.q, self.positions, whole, sketched, self.projection, *by)

    def reference_within(self, promise: Promise, thresholds: torch.Tensor | None = None) -> Drawn:
        by = self.budgets, self.seed, self.scale, self.softcap, thresholds
        return budgets.attend_within(promise, self.q.double(), self.positions, self.whole, self.sketched, self.projection, *by)

    def everything(self) -> Drawn:
        """With every key certain, in float64."""
        return self.reference(torch.full(self.budgets.shape, sampling.EVERYTHING), double=True)
