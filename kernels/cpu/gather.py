"""Attention over chosen keys on the CPU; its meaning is `kernels.gathering.attend`."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import torch

from kernels import gathering
from kernels.cpu.attention import AttendCall, BlockList
from kernels.cpu.library import library


class _Gather(ctypes.Structure):
    _fields_ = [
        ("dense", AttendCall),
        ("blocks", ctypes.c_void_p),
        ("ids", ctypes.c_void_p),
        ("offsets", ctypes.c_void_p),
        ("log_weights", ctypes.c_void_p),
        ("block_count", ctypes.c_int32),
    ]


def attend(
    q: torch.Tensor,
    positions: torch.Tensor,
    whole: BlockList,
    blocks: BlockList,
    ids: Sequence[torch.Tensor],
    log_weights: Sequence[torch.Tensor],
    scale: float,
    softcap: float = 0.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """As `gathering.attend`; q [N, Hq, D] float32 contiguous, positions [N] int32."""
    native = library()
    rows, heads, dim = q.shape
    kv_heads = len(ids) // rows
    if native is None or dim % 16 or dim > 256 or heads > 8 * kv_heads:
        return gathering.attend(q, blocks.blocks, ids, log_weights, scale, softcap, whole.blocks, positions)
    out, lse = torch.empty_like(q), torch.empty(rows, heads)
    together, weights = torch.cat(list(ids)).int(), torch.cat([each.flatten() for each in log_weights]).float()
    offsets = torch.tensor([0, *(each.numel() for each in ids)]).cumsum(0)
    call = _Gather(
        dense=AttendCall(
            q=q.data_ptr(),
            positions=positions.data_ptr(),
            blocks=whole.address,
            out=out.data_ptr(),
            lse=lse.data_ptr(),
            rows=rows,
            heads=heads,
            kv_heads=kv_heads,
            dim=dim,
            block_count=len(whole.blocks),
            threads=torch.get_num_threads(),
            scale=scale,
            softcap=softcap,
        ),
        blocks=blocks.address,
        ids=together.data_ptr(),
        offsets=offsets.data_ptr(),
        log_weights=weights.data_ptr(),
        block_count=len(blocks.blocks),
    )
    native.ls_gather(ctypes.byref(call))
    return out, lse
