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
    whole: Sequence[Block] = (),
    positions: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """q: [N, Hq, D] float. For each row and KV head in turn, ids [n] int: positions of different keys, each in one of the blocks, and
    log_weights [G, n]: what the logits of each query head of the group get on top, -inf where it doesn't use the key.

    whole: blocks that are read whole too, by the rows at and behind their positions; positions: [N] int, only needed for these.

    Gives (out [N, Hq, D], lse [N, Hq]) in q's dtype: the softmax over all that is read and the logarithm of its denominator, which
    merge with other parts of a sequence. A head that uses no key has out 0 and lse -inf. Blocks stand in order of position.
    """
    rows, heads, _ = q.shape
    kv_heads = [*blocks, *whole][0].k.shape[0]
    group = heads // kv_heads
    out, lse = torch.zeros_like(q), torch.full((rows, heads), -torch.inf, dtype=q.dtype)
    at = [torch.arange(block.position, block.position + block.k.shape[1]) for block in (*blocks, *whole)]
    everywhere, from_blocks = torch.cat(at), sum(block.k.shape[1] for block in blocks)
    for i, (chosen, weights) in enumerate(zip(ids, log_weights, strict=True)):
        row, head = divmod(i, kv_heads)
        of_group = slice(head * group, (head + 1) * group)
        seen = everywhere[from_blocks:] <= (0 if positions is None else positions[row])
        picked = torch.cat([torch.searchsorted(everywhere[:from_blocks], chosen.long()), from_blocks + seen.nonzero().flatten()])
        if not picked.numel():
            continue
        k, v = (torch.cat([getattr(block, name)[head] for block in (*blocks, *whole)])[picked].to(q.dtype) for name in ("k", "v"))
        logits = q[row, of_group] @ k.mT * scale
        if softcap:
            logits = softcap * torch.tanh(logits / softcap)
        logits[:, : len(chosen)] += weights.to(q.dtype)
        lse[row, of_group] = logits.logsumexp(-1)
        out[row, of_group] = torch.exp(logits - lse[row, of_group, None]).nan_to_num(0.0) @ v
    return out, lse
