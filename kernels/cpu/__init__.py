"""The native CPU kernels, called through ctypes; each has its meaning in `kernels.reference`.

The library takes its OpenMP symbols from the runtime that torch has loaded: one pool of threads for both. A second runtime would
have workers of its own on the same cores: no difference where two cores are idle, 1.3 times the time a token where they are busy.
A missing library is slower, never broken: `native()` says which it is.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from pathlib import Path

import torch

from kernels import reference
from kernels.reference import Block

_ABI = 1
_SUFFIX = {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")
_DTYPES = {torch.bfloat16: 0, torch.float32: 1}


class _Block(ctypes.Structure):
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


class _Attend(ctypes.Structure):
    _fields_ = [
        ("q", ctypes.c_void_p),
        ("positions", ctypes.c_void_p),
        ("blocks", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("lse", ctypes.c_void_p),
        ("scores", ctypes.c_void_p),
        ("keys", ctypes.c_int64),
        ("rows", ctypes.c_int32),
        ("heads", ctypes.c_int32),
        ("kv_heads", ctypes.c_int32),
        ("dim", ctypes.c_int32),
        ("block_count", ctypes.c_int32),
        ("threads", ctypes.c_int32),
        ("score_begin", ctypes.c_int32),
        ("score_end", ctypes.c_int32),
        ("scale", ctypes.c_float),
    ]


@functools.cache
def _library() -> ctypes.CDLL | None:
    path = Path(__file__).with_name("liblongshelf_cpu" + _SUFFIX)
    if os.environ.get("LONGSHELF_NATIVE") == "0" or not path.exists():
        return None
    try:
        _share_openmp()
        library = ctypes.CDLL(str(path))
        if library.ls_abi() != _ABI:
            return None
    except OSError:
        return None
    for name in ("ls_isa", "ls_isa_name"):
        getattr(library, name).restype = ctypes.c_char_p
    return library


def _share_openmp() -> None:
    """Make the OpenMP runtime inside torch visible to libraries loaded after it."""
    folders = [Path(torch.__file__).parent / "lib", Path(torch.__file__).parent.parent / "torch.libs"]
    patterns = ("libgomp*.so*", "libiomp5*", "libomp*")
    found = [path for folder in folders for pattern in patterns for path in sorted(folder.glob(pattern))]
    if found:
        ctypes.CDLL(str(found[0]), mode=ctypes.RTLD_GLOBAL)
    elif sys.platform.startswith("linux"):
        ctypes.CDLL("libgomp.so.1", mode=ctypes.RTLD_GLOBAL)


def native() -> str | None:
    """Name of the instruction set in use ("baseline", "avx2", "avx512"), or None where the torch fallback runs."""
    library = _library()
    return library.ls_isa().decode() if library else None


def instruction_sets() -> list[str]:
    """Those that this library and this processor both have, plainest first; empty without the library."""
    library = _library()
    names: list[str] = []
    while library and (name := library.ls_isa_name(len(names))) is not None:
        names.append(name.decode())
    return names


def use_instruction_set(name: str) -> None:
    """Use one of `instruction_sets()` from now on, in the whole process."""
    library = _library()
    if library is None or not library.ls_use_isa(name.encode()):
        raise ValueError(f"this processor has no {name}; it has {instruction_sets()}")


class BlockList:
    """The blocks that packed rows read in one layer, ready for many calls: the C structures are made once.

    blocks: in order of position for each row. The tensors are kept alive.
    """

    def __init__(self, blocks: list[Block]) -> None:
        self.blocks = blocks
        self._structs = (_Block * max(1, len(blocks)))()
        offset = 0
        for struct, block in zip(self._structs, blocks, strict=False):
            if block.k.stride() != block.v.stride() or block.k.stride(2) != 1 or block.k.dtype != block.v.dtype:
                raise ValueError("K and V of a block need equal strides and dtype, and contiguous rows")
            struct.k, struct.v = block.k.data_ptr(), block.v.data_ptr()
            struct.head_stride, struct.token_stride = block.k.stride(0), block.k.stride(1)
            struct.length, struct.position = block.k.shape[1], block.position
            struct.row_begin, struct.row_end = block.row_begin, block.row_end
            struct.dtype, struct.key_offset = _DTYPES[block.k.dtype], offset
            offset += block.k.shape[1]
        self.keys = offset
        self.address = ctypes.addressof(self._structs)


def attend(
    q: torch.Tensor,
    positions: torch.Tensor,
    blocks: BlockList,
    scale: float,
    scores: torch.Tensor | None = None,
    score_rows: tuple[int, int] = (0, 0),
) -> torch.Tensor:
    """Dense attention, meaning as `reference.attend`; gives out [N, Hq, D] float32.

    q: [N, Hq, D] float32 contiguous; positions: [N] int32; scores: [Hkv, keys] float32 contiguous or None.
    A row's bits don't depend on the other rows or on the number of threads, only on the instruction set.
    """
    library = _library()
    rows, heads, dim = q.shape
    if library is None or dim % 16 or dim > 256 or not blocks.blocks:
        return reference.attend(q, positions, blocks.blocks, scale, scores, score_rows)[0]
    out = torch.empty_like(q)
    call = _Attend(
        q=q.data_ptr(),
        positions=positions.data_ptr(),
        blocks=blocks.address,
        out=out.data_ptr(),
        lse=None,
        scores=scores.data_ptr() if scores is not None else None,
        keys=scores.shape[1] if scores is not None else 0,
        rows=rows,
        heads=heads,
        kv_heads=blocks.blocks[0].k.shape[0],
        dim=dim,
        block_count=len(blocks.blocks),
        threads=torch.get_num_threads(),
        score_begin=score_rows[0],
        score_end=score_rows[1],
        scale=scale,
    )
    library.ls_attend(ctypes.byref(call))
    return out
