"""Attention of few rows over chosen keys, each with a log weight on top of its logit, on the GPU; meaning: `kernels.gathering.attend`.

A key's row is read where its id says, if a query head of the group uses it. As in `attention`, chosen keys are cut into chunks whose
partial results are merged. Each row's query heads stand in tiles of their own: a row's result doesn't depend on the others.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators, allow-untyped-calls

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernels.gpu.attention import CHUNK, TILE, add_keys, keys_at_a_time, soften, store_part
from kernels.gpu.language import largest, product, steps
from kernels.gpu.merging import merge


@triton.jit
def gathered_kernel(
    q, k, v, ids, log_weights, outs, lses, scale, softcap, rows, chosen, tiles,
    head_stride, token_stride, ids_row_stride, ids_head_stride, weights_row_stride,
    GROUP: tl.constexpr, DIM: tl.constexpr, WIDE: tl.constexpr, TILE: tl.constexpr, KEYS: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    chunk, head = tl.program_id(0), tl.program_id(1).to(tl.int64)
    row = tl.program_id(2) // tiles
    member = tl.program_id(2) % tiles * TILE + tl.arange(0, TILE)
    query_head, there, dims = head * GROUP + member, member < GROUP, tl.arange(0, WIDE)
    place = row.to(tl.int64) * tl.num_programs(1) * GROUP + query_head
    query = tl.load(q + place[:, None] * DIM + dims[None, :], mask=there[:, None] & (dims < DIM)[None, :], other=0.0)
    of_ids = ids + row * ids_row_stride + head * ids_head_stride
    of_weights = log_weights + row.to(tl.int64) * weights_row_stride + query_head * chosen
    top = tl.full([TILE], float("-inf"), tl.float32)
    total, mean = tl.full([TILE], 0.0, tl.float32), tl.full([TILE, WIDE], 0.0, tl.float32)
    for start in steps(chunk * CHUNK, tl.minimum((chunk + 1) * CHUNK, chosen), KEYS):
        at = start + tl.arange(0, KEYS)
        weight = tl.load(of_weights[:, None] + at[None, :], mask=there[:, None] & (at < chosen)[None, :], other=float("-inf"))
        used = largest(weight, 0) > float("-inf")
        key = tl.load(of_ids + at, mask=used, other=0).to(tl.int64)
        offsets = head * head_stride + key[:, None] * token_stride + dims[None, :]
        inside = used[:, None] & (dims < DIM)[None, :]
        key_tile = tl.load(k + offsets, mask=inside, other=0.0)
        logits = soften(product(query, tl.trans(key_tile), tl.full([TILE, KEYS], 0.0, tl.float32)) * scale, softcap)
        value_tile = tl.load(v + offsets, mask=inside, other=0.0)
        top, total, mean = add_keys(top, total, mean, logits + weight, value_tile)
    store_part(outs, lses, chunk.to(tl.int64) * rows * tl.num_programs(1) * GROUP + place, there, top, total, mean, DIM, WIDE)


def attend_gathered(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    ids: torch.Tensor,
    log_weights: torch.Tensor,
    scale: float,
    softcap: float = 0.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(out [n, Hq, D], lse [n, Hq]) float32 of q [n, Hq, D] float32 contiguous over the keys `ids` of k, v [Hkv, T, D].

    ids: [Hkv, m] int32, or [n, Hkv, m] where each row has its own; log_weights: [Hq, m] or [n, Hq, m] float32 contiguous, -inf where a
    query head doesn't use a key; an id that no head of the group uses may be anything. k, v: bf16 or float32, of equal strides, rows of D
    contiguous. A head that uses no key has out 0 and lse -inf.
    """
    rows, heads, dim = q.shape
    kv_heads, chosen = k.shape[0], ids.shape[-1]
    if k.stride() != v.stride() or k.stride(2) != 1 or ids.stride(-1) != 1 or not log_weights.is_contiguous():
        raise ValueError("K and V need equal strides, and with ids and log weights contiguous rows")
    if not rows or not chosen:
        return torch.zeros_like(q), q.new_full((rows, heads), -torch.inf)
    parts, group, wide = triton.cdiv(chosen, CHUNK), heads // kv_heads, triton.next_power_of_2(dim)
    tiles, keys = triton.cdiv(group, TILE), max(16, keys_at_a_time(wide, k.dtype) // 2)  # addresses of single rows take registers too
    outs, lses = q.new_empty(parts, rows, heads, dim), q.new_full((parts, rows, heads), -torch.inf)
    gathered_kernel[(parts, kv_heads, rows * tiles)](
        q, k, v, ids, log_weights, outs, lses, scale, softcap, rows, chosen, tiles, k.stride(0), k.stride(1),
        ids.stride(0) if ids.dim() == 3 else 0, ids.stride(-2), log_weights.stride(0) if log_weights.dim() == 3 else 0,
        GROUP=group, DIM=dim, WIDE=wide, TILE=TILE, KEYS=keys, CHUNK=CHUNK,
        num_warps=4, num_stages=2,
    )  # fmt: skip
    return merge(outs, lses)
