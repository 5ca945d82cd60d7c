"""Attention over chosen keys, each with a log weight on top of its logit: what it means, in plain torch."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from kernels.reference import Block


def attend(
    q: torch.Tensor,
    blocks: Sequence[Block],
    ids: Sequence[torch.Tensor],
    log_weights: Sequence[torch.Tensor],
    scale: float,
    softcap: float = 0.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """q: [N, Hq, D] float. For each row and KV head in turn, ids [n] int: ascending positions of keys, each in one of the blocks, and
    log_weights [G, n]: what the logits of each query head of the group get on top, -inf where it doesn't use the key.

    Gives (out [N, Hq, D], lse [N, Hq]) in q's dtype: the softmax over the chosen keys and the logarithm of its denominator, which merge
    with other parts of a sequence. A head that uses no key has out 0 and lse -inf. Blocks stand in order of position; their rows are not
    looked at.
    """
    rows, heads, _ = q.shape
    kv_heads = blocks[0].k.shape[0] if blocks else 1
    group = heads // kv_heads
    out, lse = torch.zeros_like(q), torch.full((rows, heads), -torch.inf, dtype=q.dtype)
    for i, (chosen, weights) in enumerate(zip(ids, log_weights, strict=True)):
        row, head = divmod(i, kv_heads)
        of_group = slice(head * group, (head + 1) * group)
        if not chosen.numel():
            continue
        k, v = (_rows(blocks, chosen, head, name).to(q.dtype) for name in ("k", "v"))
        logits = q[row, of_group] @ k.mT * scale
        if softcap:
            logits = softcap * torch.tanh(logits / softcap)
        logits = logits + weights.to(q.dtype)
        lse[row, of_group] = logits.logsumexp(-1)
        out[row, of_group] = torch.exp(logits - lse[row, of_group, None]).nan_to_num(0.0) @ v
    return out, lse


def _rows(blocks: Sequence[Block], chosen: torch.Tensor, head: int, name: str) -> torch.Tensor:
    """[n, D] of the keys or values at these positions."""
    found = []
    for block in blocks:
        within = (chosen >= block.position) & (chosen < block.position + block.k.shape[1])
        found.append(getattr(block, name)[head, chosen[within].long() - block.position])
    return torch.cat(found)
