"""Sampled attention on the CPU; its meaning is `kernels.sampling.attend`."""

from __future__ import annotations

import ctypes

import torch

from kernels import sampling
from kernels.cpu.attention import AttendCall, BlockList, BlockStruct, block_struct
from kernels.cpu.library import library
from kernels.sampling import Drawn, SketchedBlock
from kernels.sketch import Projection


class _SketchBlock(ctypes.Structure):
    _fields_ = [
        ("kv", BlockStruct),
        ("sketch", ctypes.c_void_p),
        ("sketch_stride", ctypes.c_int64),
        ("certain", ctypes.c_void_p),
    ]


class _Sampled(ctypes.Structure):
    _fields_ = [
        ("dense", AttendCall),
        ("blocks", ctypes.c_void_p),
        ("queries", ctypes.c_void_p),
        ("budgets", ctypes.c_void_p),
        ("thresholds", ctypes.c_void_p),
        ("read", ctypes.c_void_p),
        ("block_count", ctypes.c_int32),
        ("fours", ctypes.c_int32),
        ("twos", ctypes.c_int32),
        ("ones", ctypes.c_int32),
        ("seed", ctypes.c_uint32),
    ]


class SketchedList:
    """The sketched blocks that rows read in one layer, ready for many calls. The tensors are kept alive.

    tokens: of all blocks; row_bytes: of a key and its value.
    """

    def __init__(self, blocks: list[SketchedBlock]) -> None:
        self.blocks = blocks
        self._structs = (_SketchBlock * max(1, len(blocks)))()
        for struct, each in zip(self._structs, blocks, strict=False):
            struct.kv = block_struct(each.block)
            struct.sketch, struct.sketch_stride = each.sketch.data_ptr(), each.sketch.stride(0)
            struct.certain = each.certain.data_ptr() if each.certain is not None else None
        self.address = ctypes.addressof(self._structs)
        self.tokens = sum(each.tokens for each in blocks)
        self.row_bytes = 2 * blocks[0].block.k.shape[2] * blocks[0].block.k.element_size() if blocks else 0


def attend(
    q: torch.Tensor,
    positions: torch.Tensor,
    whole: BlockList,
    sketched: SketchedList,
    projection: Projection,
    budgets: torch.Tensor,
    seed: int,
    scale: float,
    softcap: float = 0.0,
) -> Drawn:
    """As `sampling.attend`; q [N, Hq, D] float32 contiguous, positions [N] int32, budgets [N, Hq] float32 contiguous."""
    native = library()
    rows, heads, dim = q.shape
    kv_heads = projection.centres.shape[0]
    if native is None or dim % 16 or dim > 256 or heads > 8 * kv_heads or projection.layout.coordinates > 256:
        return sampling.attend(q, positions, whole.blocks, sketched.blocks, projection, budgets, seed, scale, softcap)
    out, lse, thresholds = torch.empty_like(q), torch.empty(rows, heads), torch.empty(rows, heads)
    read = torch.empty(rows, kv_heads, 2, dtype=torch.int32)
    layout = projection.layout
    call = _Sampled(
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
        blocks=sketched.address,
        queries=projection.queries.data_ptr(),
        budgets=budgets.data_ptr(),
        thresholds=thresholds.data_ptr(),
        read=read.data_ptr(),
        block_count=len(sketched.blocks),
        fours=layout.fours,
        twos=layout.twos,
        ones=layout.ones,
        seed=seed & 0xFFFFFFFF,
    )
    native.ls_sampled(ctypes.byref(call))
    return Drawn(out, lse, thresholds, read)
