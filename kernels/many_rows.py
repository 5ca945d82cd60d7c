"""Dense attention of many rows over a list of KV blocks, in torch, on whatever device they lie: what reading takes on a GPU.

A block at a time, in float32, with the partial results merged by online softmax (Milakov and Gimelshein 2018, arXiv:1805.02867). Its
meaning is `kernels.reference.attend`. Blocks come from an iterator, so that one that is brought from elsewhere needn't stay.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from kernels.reference import Block

AT_ONCE = 1024
"""Keys of a block that are taken at a time."""


def attend(
    q: torch.Tensor, positions: torch.Tensor, blocks: Iterable[Block], scale: float, softcap: float = 0.0, window: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    """(out [N, Hq, D], lse [N, Hq]) of q [N, Hq, D] float32 and positions [N] int32, all on one device."""
    rows, heads, dim = q.shape
    top = q.new_full((heads, rows, 1), -torch.inf)
    total, mean = torch.zeros_like(top), q.new_zeros(heads, rows, dim)
    for block in blocks:
        part = slice(block.row_begin, block.row_end)
        for logits, _, v in _logits(q, positions, block, scale, softcap, window):
            higher = torch.maximum(top[:, part], logits.amax(-1, keepdim=True))
            finite = torch.where(higher == -torch.inf, 0.0, higher)
            weights = logits.sub_(finite).exp_()
            old = torch.exp(top[:, part] - finite)
            total[:, part] = total[:, part] * old + weights.sum(-1, keepdim=True)
            grouped = weights.view(v.shape[0], -1, v.shape[1])
            mean[:, part] = mean[:, part] * old + torch.bmm(grouped, v.float()).view(heads, -1, dim)
            top[:, part] = higher
    seen = total > 0
    out = torch.where(seen, mean / total.clamp_min(torch.finfo(q.dtype).tiny), 0.0)
    lse = torch.where(seen, top + total.log(), -torch.inf)
    return out.transpose(0, 1).contiguous(), lse[..., 0].transpose(0, 1).contiguous()


def add_scores(
    scores: torch.Tensor,
    score_of: torch.Tensor,
    lse: torch.Tensor,
    q: torch.Tensor,
    positions: torch.Tensor,
    blocks: Iterable[Block],
    scale: float,
    softcap: float = 0.0,
    window: int = 0,
) -> None:
    """Add the rows' probabilities, given their lse [N, Hq], to scores [groups, Hkv, keys]: see `reference.attend`."""
    kv_heads = scores.shape[1]
    groups = torch.arange(len(scores), device=score_of.device)[:, None]
    belongs = (groups == score_of).float()  # [groups, N]
    offset = 0
    for block in blocks:
        part = slice(block.row_begin, block.row_end)
        of_heads = lse[part].transpose(0, 1)[..., None]
        for logits, first, v in _logits(q, positions, block, scale, softcap, window):
            probabilities = logits.sub_(of_heads).exp_().nan_to_num_(0.0).view(kv_heads, -1, *logits.shape[1:]).sum(1)  # [Hkv, n, T]
            into = scores[:, :, offset + first : offset + first + v.shape[1]]
            into += torch.einsum("gn,hnt->ght", belongs[:, part], probabilities)
        offset += block.k.shape[1]


def _logits(
    q: torch.Tensor, positions: torch.Tensor, block: Block, scale: float, softcap: float, window: int
) -> Iterable[tuple[torch.Tensor, int, torch.Tensor]]:
    """(logits [Hq, rows of the block, T], the first of these keys, their values [Hkv, T, D]), some keys at a time; -inf: not seen."""
    kv_heads, tokens, dim = block.k.shape
    own = positions[block.row_begin : block.row_end, None]
    packed = q[block.row_begin : block.row_end].transpose(0, 1).reshape(kv_heads, -1, dim)  # query heads of a KV head are neighbours
    for first in range(0, tokens, AT_ONCE):
        k, v = block.k[:, first : first + AT_ONCE], block.v[:, first : first + AT_ONCE]
        logits = torch.bmm(packed, k.to(q.dtype).transpose(1, 2)).mul_(scale).view(q.shape[1], -1, k.shape[1])
        if softcap:
            logits = logits.div_(softcap).tanh_().mul_(softcap)
        keys = torch.arange(block.position + first, block.position + first + k.shape[1], device=q.device)
        hidden = keys > own
        if window:
            hidden |= keys <= own - window
        yield logits.masked_fill_(hidden, -torch.inf), first, v
