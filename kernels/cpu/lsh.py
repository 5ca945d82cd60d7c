"""Hash tables of keys on the CPU; what they mean is in `kernels.lsh`."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import torch

from kernels import lsh
from kernels.cpu.attention import AttendCall, BlockList
from kernels.cpu.library import library
from kernels.lsh import PANEL, Hashing, Index, IndexedBlock, Met
from kernels.reference import Block


class _Build(ctypes.Structure):
    _fields_ = [
        ("blocks", ctypes.c_void_p),
        ("panels", ctypes.c_void_p),
        ("centres", ctypes.c_void_p),
        ("codes", ctypes.c_void_p),
        ("starts", ctypes.c_void_p),
        ("ids", ctypes.c_void_p),
        ("norms", ctypes.c_void_p),
        ("block_count", ctypes.c_int32),
        ("kv_heads", ctypes.c_int32),
        ("dim", ctypes.c_int32),
        ("keys", ctypes.c_int32),
        ("bits", ctypes.c_int32),
        ("tables", ctypes.c_int32),
        ("threads", ctypes.c_int32),
    ]


class _Index(ctypes.Structure):
    _fields_ = [
        ("blocks", ctypes.c_void_p),
        ("centres", ctypes.c_void_p),
        ("norms", ctypes.c_void_p),
        ("starts", ctypes.c_void_p),
        ("ids", ctypes.c_void_p),
        ("certain", ctypes.c_void_p),
        ("block_count", ctypes.c_int32),
        ("keys", ctypes.c_int32),
    ]


class _Lsh(ctypes.Structure):
    _fields_ = [
        ("dense", AttendCall),
        ("indexes", ctypes.c_void_p),
        ("panels", ctypes.c_void_p),
        ("read", ctypes.c_void_p),
        ("index_count", ctypes.c_int32),
        ("bits", ctypes.c_int32),
        ("tables", ctypes.c_int32),
    ]


class Directions:
    """A hashing as the library takes it: directions in panels of 16."""

    def __init__(self, hashing: Hashing) -> None:
        self.hashing = hashing
        dim, count = hashing.directions.shape
        padded = torch.nn.functional.pad(hashing.directions, (0, -count % PANEL))
        self.panels = padded.view(dim, -1, PANEL).transpose(0, 1).contiguous()  # [panels, D, 16]


def build(blocks: Sequence[Block], directions: Directions) -> Index:
    """The index of the keys of blocks that stand behind one another; as `lsh.build` of all of them."""
    native, hashing = library(), directions.hashing
    kv_heads, _, dim = blocks[0].k.shape
    keys = sum(block.k.shape[1] for block in blocks)
    if keys > lsh.MOST_KEYS:
        raise ValueError(f"an index has up to {lsh.MOST_KEYS} keys, not {keys}")
    if native is None or dim % 16 or dim > 256:
        return lsh.build(torch.cat([block.k for block in blocks], 1), hashing)
    centres = torch.stack([block.k.float().sum(1) for block in blocks]).sum(0) / keys
    norms, listed = torch.empty(kv_heads, keys), BlockList(list(blocks))
    codes = torch.empty(kv_heads, hashing.tables, keys, dtype=torch.uint16)
    starts = torch.empty(kv_heads, hashing.tables, (1 << hashing.bits) + 1, dtype=torch.uint16)
    ids = torch.empty_like(codes)
    call = _Build(
        blocks=listed.address,
        panels=directions.panels.data_ptr(),
        centres=centres.data_ptr(),
        codes=codes.data_ptr(),
        starts=starts.data_ptr(),
        ids=ids.data_ptr(),
        norms=norms.data_ptr(),
        block_count=len(blocks),
        kv_heads=kv_heads,
        dim=dim,
        keys=keys,
        bits=hashing.bits,
        tables=hashing.tables,
        threads=torch.get_num_threads(),
    )
    native.ls_lsh_build(ctypes.byref(call))
    return Index(centres, norms, starts, ids)


class IndexedList:
    """The indexed blocks that rows read in one layer, ready for many calls. The tensors are kept alive."""

    def __init__(self, indexed: list[IndexedBlock]) -> None:
        self.indexed = indexed
        self._blocks = [BlockList(list(each.blocks)) for each in indexed]
        self._structs = (_Index * max(1, len(indexed)))()
        for struct, each, blocks in zip(self._structs, indexed, self._blocks, strict=False):
            index = each.index
            struct.blocks, struct.block_count, struct.keys = blocks.address, len(each.blocks), index.keys
            struct.centres, struct.norms = index.centres.data_ptr(), index.norms.data_ptr()
            struct.starts, struct.ids = index.starts.data_ptr(), index.ids.data_ptr()
            struct.certain = each.certain.data_ptr() if each.certain is not None else None
        self.address = ctypes.addressof(self._structs)
        self.tokens = sum(each.index.keys for each in indexed)


def attend(
    q: torch.Tensor,
    positions: torch.Tensor,
    whole: BlockList,
    indexed: IndexedList,
    directions: Directions,
    scale: float,
    softcap: float = 0.0,
) -> Met:
    """As `lsh.attend`; q [N, Hq, D] float32 contiguous, positions [N] int32."""
    native, hashing = library(), directions.hashing
    rows, heads, dim = q.shape
    kv_heads = (indexed.indexed[0].index.norms if indexed.indexed else whole.blocks[0].k).shape[0]
    if native is None or dim % 16 or dim > 256 or heads > 8 * kv_heads:
        return lsh.attend(q, positions, whole.blocks, indexed.indexed, hashing, scale, softcap)
    out, lse, read = torch.empty_like(q), torch.empty(rows, heads), torch.empty(rows, kv_heads, 3, dtype=torch.int32)
    call = _Lsh(
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
        indexes=indexed.address,
        panels=directions.panels.data_ptr(),
        read=read.data_ptr(),
        index_count=len(indexed.indexed),
        bits=hashing.bits,
        tables=hashing.tables,
    )
    native.ls_lsh(ctypes.byref(call))
    return Met(out, lse, read)
