"""Random rows and blocks, and what plain softmax attention in float64 makes of them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from kernels import cpu, reference
from kernels.reference import Block

KV_HEADS = 2
FEW, MANY = (5, 40)
"""Row counts on either side of the border between the two native ways of sharing out the work."""


class Case:
    """Packed rows and the blocks they read, with random content. scale makes attention neither flat nor a single spike."""

    def __init__(self, dim: int, group: int, positions: Sequence[int], dtype: torch.dtype = torch.bfloat16, seed: int = 0) -> None:
        self.random = torch.Generator().manual_seed(seed)
        self.dim, self.group, self.dtype = dim, group, dtype
        self.positions = torch.tensor(positions, dtype=torch.int32)
        self.q = (torch.randn(len(positions), KV_HEADS * group, dim, generator=self.random) * 3).to(torch.bfloat16).float()
        self.scale, self.softcap, self.window = dim**-0.5, 0.0, 0
        self.blocks: list[Block] = []

    def block(self, tokens: int, position: int, rows: tuple[int, int] | None = None) -> Case:
        """Add a block of its own memory; rows: those that read it, all by default."""
        k, v = (torch.randn(KV_HEADS, tokens, self.dim, generator=self.random).to(self.dtype) for _ in range(2))
        self.blocks.append(Block(k, v, position, *(rows or (0, len(self.positions)))))
        return self

    def attend(self, rows: slice = slice(None)) -> torch.Tensor:
        """What the native library (or its fallback) gives for these rows alone, whose blocks all rows must share."""
        count = len(self.positions[rows])
        blocks = [Block(block.k, block.v, block.position, 0, count) for block in self.blocks] if rows != slice(None) else self.blocks
        q, positions = self.q[rows].contiguous(), self.positions[rows].contiguous()
        return cpu.attend(q, positions, cpu.BlockList(blocks), self.scale, self.softcap, self.window)

    def scored(self, *groups: tuple[int, int], into: torch.Tensor | None = None) -> torch.Tensor:
        """The scores [groups, Hkv, keys] of the native library (or its fallback) for these ranges of rows, added to `into`."""
        scores = self.no_scores(len(groups)) if into is None else into
        of = self.score_of(*groups)
        cpu.attend(self.q, self.positions, cpu.BlockList(self.blocks), self.scale, self.softcap, self.window, scores, of)
        return scores

    def no_scores(self, groups: int) -> torch.Tensor:
        return torch.zeros(groups, KV_HEADS, sum(block.k.shape[1] for block in self.blocks))

    def score_of(self, *groups: tuple[int, int]) -> torch.Tensor:
        """[N] int32: which of these ranges a row is in, -1 for none."""
        of = torch.full((len(self.q),), -1, dtype=torch.int32)
        for group, (begin, end) in enumerate(groups):
            of[begin:end] = group
        return of

    def reference(self, scores: torch.Tensor | None = None, score_of: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        return reference.attend(self.q, self.positions, self.blocks, self.scale, self.softcap, self.window, scores, score_of)

    def truth(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """(out [N, Hq, D], lse [N, Hq], probabilities [N, Hq, keys]) in float64."""
        rows, heads, dim = self.q.shape
        k, v = (torch.cat([getattr(block, name) for block in self.blocks], 1).double() for name in "kv")
        seen = torch.cat([self._seen(block) for block in self.blocks], 1)
        logits = torch.einsum("nhgd,hkd->nhgk", self.q.double().view(rows, KV_HEADS, self.group, dim), k) * self.scale
        if self.softcap:
            logits = self.softcap * torch.tanh(logits / self.softcap)
        logits = logits.masked_fill(~seen[:, None, None], -torch.inf)
        probabilities = logits.softmax(-1).nan_to_num(0.0)  # where a row sees nothing
        out = torch.einsum("nhgk,hkd->nhgd", probabilities, v)
        return out.reshape(rows, heads, dim), logits.logsumexp(-1).view(rows, heads), probabilities.view(rows, heads, -1)

    def _seen(self, block: Block) -> torch.Tensor:
        """[N, keys of the block]: which rows may see which keys."""
        rows = torch.arange(len(self.positions))[:, None]
        reads = (block.row_begin <= rows) & (rows < block.row_end)
        keys, own = torch.arange(block.position, block.position + block.k.shape[1]), self.positions[:, None]
        return reads & (keys <= own) & ((keys > own - self.window) if self.window else True)


def one_sequence(dim: int, group: int, rows: int, dtype: torch.dtype = torch.bfloat16) -> Case:
    """The last `rows` tokens of a chain of three ragged segments and a tail that is half full."""
    case = Case(dim, group, range(330, 330 + rows), dtype)
    return case.block(257, 0).block(1, 257).block(70, 258).block(90, 328)


def two_sequences(rows: int) -> Case:
    """Two sequences of `rows` rows each on one shared segment; the second has a segment more, and each a tail."""
    case = Case(64, 3, [*range(300, 300 + rows), *range(340, 340 + rows)])
    case.block(300, 0, (0, 2 * rows)).block(40, 300, (rows, 2 * rows))
    return case.block(64, 300, (0, rows)).block(64, 340, (rows, 2 * rows))


def native_out(case: Case) -> torch.Tensor:
    return case.attend()


def reference_out(case: Case) -> torch.Tensor:
    return case.reference()[0]


def off(ours: torch.Tensor, truth: torch.Tensor) -> float:
    return float((ours.double() - truth).abs().max())


def near(case: Case) -> float:
    """How far the native output may be off: many rows on bf16 pairs have their weights rounded to bf16."""
    rounded = cpu.native() == "avx512_bf16" and len(case.positions) > cpu.FEW and case.dtype == torch.bfloat16
    return 1e-2 if rounded else 2e-5


def summed(case: Case, *groups: tuple[int, int]) -> torch.Tensor:
    """[groups, Hkv, keys] float64: the true probabilities of these ranges of rows, summed over the heads of each KV head."""
    each = case.truth()[2].view(len(case.q), KV_HEADS, case.group, -1).sum(2)
    return torch.stack([each[begin:end].sum(0) for begin, end in groups])


attends = pytest.mark.parametrize("attend", [native_out, reference_out], ids=["native", "reference"])
needs_library = pytest.mark.skipif(cpu.native() is None, reason="the native library isn't built")
