"""Quick join: parts that were read apart, put behind one another as one chain without reading them again. An approximation.

Keys of a later part are turned from the positions where they were read to those that they have now (RoPE angles add up), in float32
from the stored originals, and rounded once. Its first tokens are computed anew behind what now stands before them: read at the
start of a chain they took on the weight that a start gets, and they are what later tokens looked back to. Everything else still
knows nothing of the other parts, as in Prompt Cache (Gim et al. 2024, arXiv:2311.04934) and CacheBlend (Yao et al. 2025,
arXiv:2405.16444). What is made here lives as long as the question.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from engine.attention.exact import Exact
from engine.attention.sequence import KV, Rows, Tail
from engine.attention.sequence import Sequence as Read
from engine.model.config import ModelConfig
from engine.model.loaded import LoadedModel
from engine.model.rope import Rope
from engine.reading.memory import Chain, InMemory
from kernels.reference import rotate

ANEW = 32
"""Tokens of each later part that are computed again."""


def quick_join(
    model: LoadedModel, preamble: Chain, chains: Sequence[Chain], between_layers: Callable[[], None]
) -> tuple[tuple[KV, ...], int]:
    """(chain, tokens computed): the first chain, then the others' parts behind it in this order. On the model thread."""
    joined: list[KV] = list(chains[0].segments)
    computed = 0
    for chain in chains[1:]:
        length = sum(kv.tokens for kv in joined)
        behind = chain.segments[len(preamble.segments) :]
        ids = [int(i) for segment in behind for i in segment.ids[:ANEW]][:ANEW]
        joined.append(_read(model, joined, ids, between_layers))
        computed += len(ids)
        skipped = len(ids)
        for segment in behind:
            if skipped < segment.tokens:
                joined.append(moved(model.config, segment, length - preamble.length, skipped))
            skipped = max(0, skipped - segment.tokens)
    return tuple(joined), computed


def moved(config: ModelConfig, kv: KV, by: int, skip: int = 0) -> InMemory:
    """K and V of one run without its first `skip` tokens, its keys turned as if it had been read `by` positions later."""
    turns = {kind: _turn(Rope(config, kind == "sliding"), by) for kind in {*map(config.kind, range(config.layers))} - {"nope"}}
    made = torch.empty(config.layers, 2, config.kv_heads, kv.tokens - skip, config.head_dim, dtype=kv.key(0).dtype)
    for layer in range(config.layers):
        key, turn = kv.key(layer)[:, skip:], turns.get(config.kind(layer))
        made[layer, 0] = rotate(key, *turn) if turn else key
        made[layer, 1] = kv.value(layer)[:, skip:]
    return InMemory(made)


def _turn(rope: Rope, by: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(cos, sin) [1, 1, R] of a move; without the factor that some rules put on both, which the stored keys have already."""
    cos, sin = rope.at(torch.tensor([by]))
    size = torch.hypot(cos, sin)
    return cos / size, sin / size


def _read(model: LoadedModel, behind: Sequence[KV], ids: list[int], between_layers: Callable[[], None]) -> InMemory:
    tail = Tail(model.config, model.decoder.dtype, len(ids))
    rows = Rows([(Read(behind, tail), len(ids))])
    model.decoder.forward(torch.tensor(ids), rows, Exact(model.config), None, between_layers)
    return InMemory(tail.kv)
