"""Dense attention over a list of KV blocks, on the CPU; its meaning is `kernels.reference.attend`."""

from __future__ import annotations

import ctypes

import torch

from kernels import reference
from kernels.cpu.library import library
from kernels.reference import Block

FEW = 16
"""Up to this many rows of a call, a row's result doesn't depend on the others in any bit."""
_DTYPES = {torch.bfloat16: 0, torch.float32: 1}


class BlockStruct(ctypes.Structure):
    _fields_ = [
        ("k", ctypes.c_void_p),
        ("v", ctypes.c_void_p),
        ("head_stride", ctypes.c_int64),
        ("token_stride", ctypes.c_int64),
        ("key_offset", ctypes.c_int64),
        ("length", ctypes.c_int32),
        ("position", ctypes.c_int32),
        ("row_begin", ctypes.c_int32),
        ("row_end", ctypes.c_int32),
        ("dtype", ctypes.c_int32),
    ]


class AttendCall(ctypes.Structure):
    _fields_ = [
        ("q", ctypes.c_void_p),
        ("positions", ctypes.c_void_p),
        ("blocks", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("lse", ctypes.c_void_p),
        ("scores", ctypes.c_void_p),
        ("score_of", ctypes.c_void_p),
        ("keys", ctypes.c_int64),
        ("rows", ctypes.c_int32),
        ("heads", ctypes.c_int32),
        ("kv_heads", ctypes.c_int32),
        ("dim", ctypes.c_int32),
        ("block_count", ctypes.c_int32),
        ("threads", ctypes.c_int32),
        ("scale", ctypes.c_float),
        ("softcap", ctypes.c_float),
        ("window", ctypes.c_int32),
    ]


class BlockList:
    """The blocks that packed rows read in one layer, ready for many calls: the C structures are made once.

    blocks: in order of position for each row. The tensors are kept alive.
    """

    def __init__(self, blocks: list[Block]) -> None:
        self.blocks = blocks
        self._structs = (BlockStruct * max(1, len(blocks)))()
        offset = 0
        for index, block in enumerate(blocks):
            self._structs[index] = block_struct(block, offset)
            offset += block.k.shape[1]
        self.keys = offset
        self.address = ctypes.addressof(self._structs)


def block_struct(block: Block, key_offset: int = 0) -> BlockStruct:
    """key_offset: where its keys stand in scores."""
    if block.k.stride() != block.v.stride() or block.k.stride(2) != 1 or block.k.dtype != block.v.dtype:
        raise ValueError("K and V of a block need equal strides and dtype, and contiguous rows")
    return BlockStruct(
        k=block.k.data_ptr(),
        v=block.v.data_ptr(),
        head_stride=block.k.stride(0),
        token_stride=block.k.stride(1),
        key_offset=key_offset,
        length=block.k.shape[1],
        position=block.position,
        row_begin=block.row_begin,
        row_end=block.row_end,
        dtype=_DTYPES[block.k.dtype],
    )


def attend(
    q: torch.Tensor,
    positions: torch.Tensor,
    blocks: BlockList,
    scale: float,
    softcap: float = 0.0,
    window: int = 0,
    scores: torch.Tensor | None = None,
    score_of: torch.Tensor | None = None,
    lse: torch.Tensor | None = None,
) -> torch.Tensor:
    """Dense attention, meaning as `reference.attend`; gives out [N, Hq, D] float32.

    q: [N, Hq, D] float32 contiguous; positions: [N] int32; scores: [groups, Hkv, keys] float32 contiguous or None, and
    with it score_of: [N] int32; lse: [N, Hq] float32 contiguous, filled where given.
    A row's bits don't depend on the other rows or on the number of threads, only on the instruction set.
    """
    native = library()
    rows, heads, dim = q.shape
    if native is None or dim % 16 or dim > 256 or not blocks.blocks:
        return _without_library(q, positions, blocks.blocks, scale, softcap, window, scores, score_of, lse)
    out = torch.empty_like(q)
    call = AttendCall(
        q=q.data_ptr(),
        positions=positions.data_ptr(),
        blocks=blocks.address,
        out=out.data_ptr(),
        lse=lse.data_ptr() if lse is not None else None,
        scores=scores.data_ptr() if scores is not None else None,
        score_of=score_of.data_ptr() if score_of is not None else None,
        keys=scores.shape[2] if scores is not None else 0,
        rows=rows,
        heads=heads,
        kv_heads=blocks.blocks[0].k.shape[0],
        dim=dim,
        block_count=len(blocks.blocks),
        threads=torch.get_num_threads(),
        scale=scale,
        softcap=softcap,
        window=window,
    )
    native.ls_attend(ctypes.byref(call))
    return out


def _without_library(
    q: torch.Tensor,
    positions: torch.Tensor,
    blocks: list[Block],
    scale: float,
    softcap: float,
    window: int,
    scores: torch.Tensor | None,
    score_of: torch.Tensor | None,
    lse: torch.Tensor | None,
) -> torch.Tensor:
    """The reference; few rows one at a time and on the keys they see alone, since torch's sums differ with the numbers of both."""
    if scores is not None or len(q) > FEW:
        out, mass = reference.attend(q, positions, blocks, scale, softcap, window, scores, score_of)
        if len(q) > FEW:
            if lse is not None:
                lse.copy_(mass)
            return out
    rows = []
    for row, position in enumerate(positions.tolist()):
        seen = [
            Block(block.k[:, : position - block.position + 1], block.v[:, : position - block.position + 1], block.position, 0, 1)
            for block in blocks
            if block.row_begin <= row < block.row_end and block.position <= position and block.k.shape[1]
        ]
        rows.append(reference.attend(q[row : row + 1], positions[row : row + 1], seen, scale, softcap, window))
    if lse is not None:
        lse.copy_(torch.cat([mass for _, mass in rows]))
    return torch.cat([out for out, _ in rows])
