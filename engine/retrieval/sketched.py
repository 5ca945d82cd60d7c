"""The product's own choice: threshold samples by what fitted sketches guess, draw for draw as `engine.attention.sampled` has them."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from engine.attention.sampled import certain_bits
from engine.retrieval.candidates import Candidates
from engine.retrieval.selection import Selection, from_dense
from kernels import cpu, sampling, sketch
from kernels.cpu import sampled
from kernels.reference import Block
from kernels.sampling import SAMPLE, SketchedBlock, seed_of
from kernels.sketch import Projection


class ByThreshold:
    """budget: keys of each query head, on the average. projections: one a layer. lengths: tokens of each segment of the chain, of
    which those with an open key are sketched."""

    def __init__(self, candidates: Candidates, projections: Sequence[Projection], lengths: Sequence[int], budget: float, seed: int) -> None:
        self._candidates, self._projections, self._lengths = candidates, projections, lengths
        self._budget, self._seed = float(budget), seed
        self._blocks = [self._sketched(layer) for layer in range(len(candidates.keys))]

    def _sketched(self, layer: int) -> sampled.SketchedList:
        keys, shown, blocks, position = self._candidates.keys[layer], self._candidates.open[layer], [], 0
        for length in self._lengths:
            of_segment = slice(position, position + length)
            if shown[:, of_segment].any():
                # Values are never looked at; keys stand in for them.
                block = Block(keys[:, of_segment], keys[:, of_segment], position, 0, 1 << 30)
                made = sketch.build(block.k, self._projections[layer])
                blocks.append(SketchedBlock(block, made, certain_bits(~shown[:, of_segment]).contiguous()))
            position += length
        return sampled.SketchedList(blocks)

    def select(self, layer: int, q: torch.Tensor, position: int) -> Selection:
        """See `Selector`."""
        blocks, projection = self._blocks[layer], self._projections[layer]
        at, budgets = torch.tensor([position], dtype=torch.int32), torch.full((1, *q.shape[:2]), self._budget)
        by = projection, budgets, seed_of(self._seed, layer), self._candidates.scale
        thresholds = self._thresholds(q, at, blocks, *by)
        _, chosen = sampling.choose(q[None].float(), at, blocks.blocks, *by, thresholds)
        weights = torch.full((*q.shape[:2], sum(self._lengths)), -torch.inf)
        for each, added in zip(blocks.blocks, chosen, strict=True):
            weights[..., each.block.position : each.block.position + each.tokens] = added[0].float()
        weights.masked_fill_(~self._candidates.open[layer, :, None], -torch.inf)
        looked_at = blocks.tokens + blocks.tokens // max(1, blocks.tokens // SAMPLE)  # some twice: for the threshold, then for the draw
        return from_dense(weights, q.shape[0] * looked_at * projection.layout.bytes_per_key)

    @staticmethod
    def _thresholds(
        q: torch.Tensor,
        at: torch.Tensor,
        blocks: sampled.SketchedList,
        projection: Projection,
        budgets: torch.Tensor,
        seed: int,
        scale: float,
    ) -> torch.Tensor:
        """[1, Hq], as the kernel finds them."""
        flat = q.reshape(1, -1, q.shape[-1]).float().contiguous()
        return sampled.attend(flat, at, cpu.BlockList([]), blocks, projection, budgets.flatten(1), seed, scale).thresholds
