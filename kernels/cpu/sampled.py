"""Sampled attention on the CPU; its meaning is `kernels.sampling.attend`, and `kernels.budgets.attend_within`."""

from __future__ import annotations

import ctypes

import torch

from kernels import budgets as planning
from kernels import sampling
from kernels.budgets import PILOT, Promise
from kernels.cpu.attention import AttendCall, BlockList, BlockStruct, block_struct
from kernels.cpu.library import library
from kernels.sampling import Drawn, SketchedBlock
from kernels.sketch import GROUP, Projection

_CHUNK = 1024  # keys of a block of which is chosen at once


STAGES = ("project", "threshold", "whole", "scan", "gather", "merge")
"""Of `attend`: queries are mapped to a sketch's coordinates; thresholds are found; blocks are read whole; sketches are scanned; what was
drawn is read; partial results are merged."""


def partial_keys(keys: int) -> int:
    """Keys of sketched blocks for which there is one partial result, where there are so many in full blocks."""
    chunks = keys // _CHUNK
    return _CHUNK * (1 if chunks < 8 else 2 if chunks < 16 else 4)


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
        ("open", ctypes.c_void_p),
        ("queries", ctypes.c_void_p),
        ("budgets", ctypes.c_void_p),
        ("thresholds", ctypes.c_void_p),
        ("read", ctypes.c_void_p),
        ("seconds", ctypes.c_void_p),
        ("block_count", ctypes.c_int32),
        ("fours", ctypes.c_int32),
        ("twos", ctypes.c_int32),
        ("ones", ctypes.c_int32),
        ("seed", ctypes.c_uint32),
    ]


class _Budgeted(ctypes.Structure):
    _fields_ = [
        ("draw", _Sampled),
        ("tolerance", ctypes.c_float),
        ("most", ctypes.c_float),
        ("everything", ctypes.c_float),
        ("seed", ctypes.c_uint32),
    ]


class SketchedList:
    """The sketched blocks that rows read in one layer, ready for many calls. The tensors are kept alive.

    tokens: of all blocks; open: [Hkv] int64, those that are not certain; row_bytes: of a key and its value.
    """

    def __init__(self, blocks: list[SketchedBlock]) -> None:
        self.blocks = blocks
        self._structs = (_SketchBlock * max(1, len(blocks)))()
        for struct, each in zip(self._structs, blocks, strict=False):
            struct.kv = block_struct(each.block)
            struct.sketch, struct.sketch_stride = each.sketch.data_ptr(), each.sketch.stride(0)
            struct.certain = each.certain.data_ptr() if each.certain is not None else None
        self.address = ctypes.addressof(self._structs)
        self.open = _open(blocks)
        self._call: _Sampled | None = None
        self._call_on = (0, 0)
        self._kept: tuple[BlockList, Projection] | None = None  # what the call points to
        self.tokens = sum(each.tokens for each in blocks)
        self.row_bytes = 2 * blocks[0].block.k.shape[2] * blocks[0].block.k.element_size() if blocks else 0

    def call(self, whole: BlockList, projection: Projection) -> _Sampled:
        """The call on these blocks; what changes from one to the next is to be filled in."""
        if self._call is None or self._call_on != (whole.address, id(projection)):
            layout = projection.layout
            kv_heads, dim = projection.centres.shape
            self._kept = whole, projection
            self._call_on = whole.address, id(projection)
            self._call = _Sampled(
                dense=AttendCall(blocks=whole.address, block_count=len(whole.blocks), kv_heads=kv_heads, dim=dim),
                blocks=self.address,
                open=self.open.data_ptr(),
                queries=projection.queries.data_ptr(),
                block_count=len(self.blocks),
                fours=layout.fours,
                twos=layout.twos,
                ones=layout.ones,
            )
        return self._call


def _open(blocks: list[SketchedBlock]) -> torch.Tensor:
    tokens = sum(each.tokens for each in blocks)
    bits = [each.certain for each in blocks if each.certain is not None]
    if not bits:
        return torch.full((blocks[0].block.k.shape[0] if blocks else 0,), tokens)
    certain = torch.cat(bits, 1)[..., None] >> torch.arange(GROUP, dtype=torch.int16) & 1
    return tokens - certain.sum((1, 2))


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
    seconds: torch.Tensor | None = None,
) -> Drawn:
    """As `sampling.attend`; q [N, Hq, D] float32 contiguous, positions [N] int32, budgets [N, Hq] float32 contiguous.

    seconds: [len(STAGES)] float64; what each stage took, summed over threads, is added where the library does it.
    """
    native = _native(q, projection)
    if native is None:
        return sampling.attend(q, positions, whole.blocks, sketched.blocks, projection, budgets, seed, scale, softcap)
    call, drawn = sketched.call(whole, projection), _room(q, projection)
    _fill(call, q, positions, budgets, seed, scale, softcap, drawn)
    call.seconds = seconds.data_ptr() if seconds is not None else None
    native.ls_sampled(ctypes.byref(call))
    return drawn


def attend_within(
    promise: Promise,
    q: torch.Tensor,
    positions: torch.Tensor,
    whole: BlockList,
    sketched: SketchedList,
    projection: Projection,
    budgets: torch.Tensor,
    seed: int,
    scale: float,
    softcap: float = 0.0,
    thresholds: torch.Tensor | None = None,
) -> Drawn:
    """As `budgets.attend_within`; tensors as for `attend`."""
    native = _native(q, projection)
    if native is None:
        return planning.attend_within(
            promise, q, positions, whole.blocks, sketched.blocks, projection, budgets, seed, scale, softcap, thresholds
        )
    call, drawn = sketched.call(whole, projection), _room(q, projection)
    _fill(call, q, positions, budgets, seed, scale, softcap, drawn)
    if thresholds is not None:
        drawn.thresholds.copy_(thresholds)
        call.budgets = None
    of_pilot = (seed ^ PILOT) & 0xFFFFFFFF
    native.ls_budgeted(ctypes.byref(_Budgeted(call, promise.tolerance, promise.most, promise.everything, of_pilot)))
    return drawn


def _native(q: torch.Tensor, projection: Projection) -> ctypes.CDLL | None:
    """The library, where it can do this."""
    _, heads, dim = q.shape
    few = heads <= 8 * projection.centres.shape[0] and projection.layout.coordinates <= 256
    return library() if dim % 16 == 0 and dim <= 256 and few else None


def _room(q: torch.Tensor, projection: Projection) -> Drawn:
    rows, heads, _ = q.shape
    read = torch.empty(rows, projection.centres.shape[0], 2, dtype=torch.int32)
    return Drawn(torch.empty_like(q), torch.empty(rows, heads), torch.empty(rows, heads), read)


def _fill(
    call: _Sampled,
    q: torch.Tensor,
    positions: torch.Tensor,
    budgets: torch.Tensor,
    seed: int,
    scale: float,
    softcap: float,
    into: Drawn,
) -> None:
    dense = call.dense
    dense.q, dense.positions, dense.out, dense.lse = q.data_ptr(), positions.data_ptr(), into.out.data_ptr(), into.lse.data_ptr()
    dense.rows, dense.heads, dense.threads = q.shape[0], q.shape[1], torch.get_num_threads()
    dense.scale, dense.softcap = scale, softcap
    call.budgets, call.thresholds, call.read = budgets.data_ptr(), into.thresholds.data_ptr(), into.read.data_ptr()
    call.seed = seed & 0xFFFFFFFF
