"""Keys in a cone, as a model's are, their hash tables, and queries that look them up."""

from __future__ import annotations

import torch

from kernels import cpu, lsh
from kernels.cpu import lsh as native
from kernels.lsh import IndexedBlock, Met
from kernels.reference import Block

KV_HEADS = 2


class LshCase:
    """Rows behind indexes of blocks of these lengths, between two blocks that are read whole; each index has a centre of its own."""

    def __init__(
        self,
        lengths: tuple[tuple[int, ...], ...] = ((300, 57),),
        dim: int = 64,
        group: int = 3,
        rows: int = 2,
        bits: int = 4,
        tables: int = 20,
        dtype: torch.dtype = torch.bfloat16,
        certain: float = 0.0,
        whole: bool = True,
        seed: int = 3,
    ) -> None:
        self.draw = torch.Generator().manual_seed(1)
        self.scale, self.softcap, self.dim = dim**-0.5, 0.0, dim
        self.hashing = lsh.hashing(dim, bits, tables, seed)
        self.directions = native.Directions(self.hashing)
        self.whole = [self._block(4, 0, dtype, torch.zeros(KV_HEADS, 1, dim))] if whole else []
        self.indexed: list[IndexedBlock] = []
        position = 4
        for of_index in lengths:
            centre, blocks = torch.randn(KV_HEADS, 1, dim, generator=self.draw), []
            for length in of_index:
                blocks.append(self._block(length, position, dtype, centre))
                position += length
            keys = sum(of_index)
            chosen = torch.rand(KV_HEADS, -(-keys // 16), 16, generator=self.draw) < certain
            bits_of = (chosen.int() << torch.arange(16)).sum(-1)
            bits_of[:, -1] &= (1 << (keys - 1) % 16 + 1) - 1
            self.indexed.append(IndexedBlock(blocks, native.build(blocks, self.directions), bits_of.to(torch.int16) if certain else None))
        if whole:
            self.whole.append(self._block(rows + 7, position, dtype, torch.zeros(KV_HEADS, 1, dim)))  # a tail with room behind the last row
        self.positions = torch.arange(position + 1, position + 1 + rows, dtype=torch.int32)
        self.q = 1.5 * torch.randn(rows, KV_HEADS * group, dim, generator=self.draw)

    def _block(self, length: int, position: int, dtype: torch.dtype, centre: torch.Tensor) -> Block:
        k, v = torch.randn(2, KV_HEADS, length, self.dim, generator=self.draw)
        return Block((k + centre).to(dtype), v.to(dtype), position, 0, 1 << 20)

    def native(self) -> Met:
        indexed = native.IndexedList(self.indexed)
        return native.attend(self.q, self.positions, cpu.BlockList(self.whole), indexed, self.directions, self.scale, self.softcap)

    def reference(self) -> Met:
        """In float64."""
        return lsh.attend(self.q.double(), self.positions, self.whole, self.indexed, self.hashing, self.scale, self.softcap)
