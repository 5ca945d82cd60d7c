"""What each kernel means, in plain torch: the definition the native and GPU kernels are tested against.

Also the fallback where no native library could be built: the same results within rounding, slower.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from kernels.packings import PACKINGS, Band, unpack


@dataclass(frozen=True)
class Block:
    """A run of keys and values of one layer that packed rows [row_begin, row_end) read.

    k, v: [Hkv, T, D], bfloat16 or float32, equal strides, rows of D contiguous; position: of the first token in its sequence.
    """

    k: torch.Tensor
    v: torch.Tensor
    position: int
    row_begin: int
    row_end: int


def attend(
    q: torch.Tensor,
    positions: torch.Tensor,
    blocks: list[Block],
    scale: float,
    softcap: float = 0.0,
    window: int = 0,
    scores: torch.Tensor | None = None,
    score_of: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Dense attention of packed rows over a list of blocks, without expanding KV heads.

    q: [N, Hq, D] float; positions: [N] int, a row sees the keys of its blocks at positions <= its own and, where window is not 0,
    > its own - window. Blocks stand in order of position for each row. A logit x is scale * q.k, or softcap * tanh(scale * q.k / softcap)
    where softcap is not 0. Gives (out [N, Hq, D], lse [N, Hq]) in q's dtype; a row that sees nothing has out 0 and lse -inf.
    scores: [groups, Hkv, keys] float, keys = the blocks' lengths added up: to each group the probabilities of its rows, summed over
    the query heads of a KV head, are added. score_of: [N] int, the group of each row, -1 for none.
    """
    rows, heads, dim = q.shape
    kv_heads = blocks[0].k.shape[0] if blocks else 1
    group = heads // kv_heads
    packed = q.reshape(rows, kv_heads, group, dim).permute(1, 0, 2, 3)  # [Hkv, N, G, D]
    total_max = torch.full((kv_heads, rows, group), -torch.inf, dtype=q.dtype)
    total_sum = torch.zeros((kv_heads, rows, group), dtype=q.dtype)
    total = torch.zeros((kv_heads, rows, group, dim), dtype=q.dtype)
    logits = [_logits(packed, positions, block, scale, softcap, window) for block in blocks]
    for block, logit in zip(blocks, logits, strict=True):
        part = slice(block.row_begin, block.row_end)
        top = torch.maximum(total_max[:, part], logit.amax(-1))
        finite = torch.where(torch.isfinite(top), top, 0)
        weights = torch.exp(logit - finite[..., None])
        old = torch.exp(total_max[:, part] - finite)
        total_sum[:, part] = total_sum[:, part] * old + weights.sum(-1)
        total[:, part] = total[:, part] * old[..., None] + _mix(weights, block.v)
        total_max[:, part] = top
    seen = total_sum > 0
    out = torch.where(seen[..., None], total / total_sum.clamp_min(torch.finfo(q.dtype).tiny)[..., None], 0)
    lse = torch.where(seen, total_max + torch.log(total_sum), -torch.inf)
    if scores is not None and score_of is not None:
        _add_scores(scores, blocks, logits, lse, score_of.tolist())
    return out.permute(1, 0, 2, 3).reshape(rows, heads, dim), lse.permute(1, 0, 2).reshape(rows, heads)


def _logits(packed: torch.Tensor, positions: torch.Tensor, block: Block, scale: float, softcap: float, window: int) -> torch.Tensor:
    """[Hkv, rows of the block, G, T], -inf where a row may not see a key."""
    q = packed[:, block.row_begin : block.row_end]
    kv_heads, rows, group, dim = q.shape
    logits = torch.bmm(q.reshape(kv_heads, rows * group, dim), block.k.to(q.dtype).transpose(1, 2)) * scale
    logits = logits.view(kv_heads, rows, group, -1)
    if softcap:
        logits = softcap * torch.tanh(logits / softcap)
    key_positions = torch.arange(block.position, block.position + block.k.shape[1])[None, :]
    own = positions[block.row_begin : block.row_end, None]
    hidden = key_positions > own
    if window:
        hidden |= key_positions <= own - window
    return logits.masked_fill(hidden[None, :, None, :], -torch.inf)


def _mix(weights: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    kv_heads, rows, group, keys = weights.shape
    return torch.bmm(weights.view(kv_heads, rows * group, keys), v.to(weights.dtype)).view(kv_heads, rows, group, -1)


def _add_scores(scores: torch.Tensor, blocks: list[Block], logits: list[torch.Tensor], lse: torch.Tensor, score_of: list[int]) -> None:
    offset = 0
    for block, logit in zip(blocks, logits, strict=True):
        probabilities = torch.exp(logit - lse[:, block.row_begin : block.row_end, :, None]).nan_to_num(0.0).sum(2)  # [Hkv, rows, T]
        for row in range(block.row_begin, block.row_end):
            if score_of[row] >= 0:
                into = scores[score_of[row], :, offset : offset + block.k.shape[1]]
                into += probabilities[:, row - block.row_begin].to(scores.dtype)
        offset += block.k.shape[1]


def linear(
    x: torch.Tensor, bands: Sequence[Band], bias: torch.Tensor | None = None, norm: torch.Tensor | None = None, eps: float = 0.0
) -> torch.Tensor:
    """x Wᵀ + bias for few rows: x [n, columns] float, RMS-normalised by norm [columns] first where given; gives [n, rows].

    W's rows are the bands', from top to bottom. A row at a time, so that what it gives doesn't depend on the rows beside it.
    """
    if norm is not None:
        x = F.rms_norm(x, norm.shape, norm.to(x.dtype), eps)
    weights = [(unpack(b.packing, b.data) if b.packing.name in PACKINGS else b.data).to(x.dtype) for b in bands]
    y = torch.cat([torch.cat([F.linear(row, weight) for weight in weights], -1) for row in x[:, None]])
    return y if bias is None else y + bias.to(x.dtype)


def add_norm(x: torch.Tensor, delta: torch.Tensor | None, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """x += delta in place; then RMSNorm (Zhang and Sennrich 2019, arXiv:1910.07467) of x [n, E] in float32, times weight [E] float32,
    rounded once to x's dtype."""
    if delta is not None:
        x += delta
    return _rms_norm(x, weight, eps).to(x.dtype)


def gated(gate: torch.Tensor, up: torch.Tensor, activation: str) -> torch.Tensor:
    """activation(gate) * up in float32, rounded once, in gate's place. activation: "silu" or "gelu_tanh"."""
    wide = gate.float()
    wide = F.silu(wide) if activation == "silu" else F.gelu(wide, approximate="tanh")
    return gate.copy_(wide * up)


def split_heads(
    qkv: torch.Tensor,
    heads: int,
    kv_heads: int,
    norms: tuple[torch.Tensor, torch.Tensor] | None,
    angles: tuple[torch.Tensor, torch.Tensor] | None,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """q [n, Hq, D] float32, k and v [n, Hkv, D] in qkv's dtype, from qkv [n, (Hq + 2 Hkv) D]; everything in float32, rounded once.

    norms: RMSNorm weights [D] of q's and k's heads. angles: (cos, sin) [n, 1, R] that turn the leading R dims of q and k, halves being
    pairs (RoPE, arXiv:2104.09864); the first half of the sines is negated.
    """
    wide = qkv.view(len(qkv), heads + 2 * kv_heads, -1).float()
    q, k, v = wide[:, :heads], wide[:, heads : heads + kv_heads], wide[:, heads + kv_heads :]
    if norms is not None:
        q, k = _rms_norm(q, norms[0], eps), _rms_norm(k, norms[1], eps)
    if angles is not None:
        q, k = rotate(q, *angles), rotate(k, *angles)
    return q.contiguous(), k.to(qkv.dtype).contiguous(), v.to(qkv.dtype).contiguous()


def _rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return F.rms_norm(x.float(), weight.shape, weight, eps)


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """x [n, H, D], its leading R dims turned by the angles cos, sin [n, 1, R] (see `split_heads`); float32."""
    x, rotated = x.float(), cos.shape[-1]
    turning = x[..., :rotated]
    swapped = torch.cat([turning[..., rotated // 2 :], turning[..., : rotated // 2]], -1)
    return torch.cat([torch.addcmul(turning * cos, swapped, sin), x[..., rotated:]], -1)
