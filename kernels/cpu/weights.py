"""Products of few rows with plain and packed matrices, and the parts of a layer around attention, on the CPU.

Row-invariant: what a row gives doesn't depend, in any bit, on the rows beside it or on the number of threads, only on the instruction
set. The meaning of a product is `kernels.reference.linear`; of a layer's parts, the many-row path of `engine.model.decoder`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import torch

from kernels import packings, reference
from kernels.cpu.library import library
from kernels.packings import Band, Packing

_DTYPES = {torch.bfloat16: 0, torch.float32: 1}


class _Band(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("row_bytes", ctypes.c_int64),
        ("rows", ctypes.c_int32),
        ("packing", ctypes.c_int32),
    ]


class _Matrix(ctypes.Structure):
    _fields_ = [
        ("bands", ctypes.c_void_p),
        ("bias", ctypes.c_void_p),
        ("band_count", ctypes.c_int32),
        ("rows", ctypes.c_int32),
        ("columns", ctypes.c_int32),
    ]


class _Linear(ctypes.Structure):
    _fields_ = [
        ("matrix", _Matrix),
        ("x", ctypes.c_void_p),
        ("norm", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("n", ctypes.c_int32),
        ("threads", ctypes.c_int32),
        ("eps", ctypes.c_float),
    ]


class _Many(ctypes.Structure):
    _fields_ = [
        ("matrix", _Matrix),
        ("x", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("n", ctypes.c_int32),
        ("dtype", ctypes.c_int32),
        ("threads", ctypes.c_int32),
    ]


class _Unpack(ctypes.Structure):
    _fields_ = [("band", _Band), ("out", ctypes.c_void_p), ("columns", ctypes.c_int32), ("threads", ctypes.c_int32)]


class Before(ctypes.Structure):
    """Arguments of `before`: LsBefore in weights.h. Whoever fills it keeps the tensors alive."""

    _fields_ = [
        ("qkv", _Matrix),
        *((name, ctypes.c_void_p) for name in ("x", "norm", "q_norm", "k_norm", "cos", "sin", "q", "k", "v")),
        *((name, ctypes.c_int32) for name in ("n", "heads", "kv_heads", "dim", "rotary", "kv_dtype", "threads")),
        ("eps", ctypes.c_float),
    ]


class After(ctypes.Structure):
    """Arguments of `after`: LsAfter in weights.h. Whoever fills it keeps the tensors alive."""

    _fields_ = [
        *((name, _Matrix) for name in ("out", "gate", "up", "down")),
        *((name, ctypes.c_void_p) for name in ("attention", "x", "post_attention_norm", "mlp_norm", "post_mlp_norm")),
        *((name, ctypes.c_int32) for name in ("n", "activation", "threads")),
        ("eps", ctypes.c_float),
    ]


def _band(band: Band) -> _Band:
    return _Band(band.data.data_ptr(), band.row_bytes, band.rows, band.packing.code)


class Matrix:
    """W [rows, columns] as bands from top to bottom, and a bias [rows] float32 or None, ready for native calls; keeps them alive."""

    def __init__(self, bands: Sequence[Band], columns: int, bias: torch.Tensor | None = None) -> None:
        self.bands, self.columns, self.bias = tuple(bands), columns, bias
        self.rows = sum(band.rows for band in bands)
        self._structs = (_Band * len(bands))(*map(_band, bands))
        address = None if bias is None else bias.data_ptr()
        self.struct = _Matrix(ctypes.addressof(self._structs), address, len(bands), self.rows, columns)


def linear(x: torch.Tensor, matrix: Matrix, norm: torch.Tensor | None = None, eps: float = 0.0) -> torch.Tensor:
    """x [n, columns] float32 contiguous, RMS-normalised by norm [columns] float32 where given; gives [n, rows] float32."""
    native = library()
    if native is None:
        return reference.linear(x, matrix.bands, matrix.bias, norm, eps)
    out = torch.empty(x.shape[0], matrix.rows)
    weight = None if norm is None else norm.data_ptr()
    call = _Linear(matrix.struct, x.data_ptr(), weight, out.data_ptr(), x.shape[0], torch.get_num_threads(), eps)
    native.ls_linear(ctypes.byref(call))
    return out


def multiplies_many() -> bool:
    """Whether many rows should take `linear_many`: on AVX2, where bf16 products are slow and torch's float32 ones no faster."""
    loaded = library()
    return loaded is not None and loaded.ls_isa() == b"avx2"


def linear_many(x: torch.Tensor, matrix: Matrix) -> torch.Tensor:
    """x Wᵀ + bias for many rows x [n, columns] bf16 or float32, summed in float32; gives [n, rows] of x's dtype. Needs the native library.

    Each sum goes over the columns in order, whatever rows stand beside a row and however many threads run.
    """
    x = x.contiguous()
    out = torch.empty(x.shape[0], matrix.rows, dtype=x.dtype)
    call = _Many(matrix.struct, x.data_ptr(), out.data_ptr(), x.shape[0], _DTYPES[x.dtype], torch.get_num_threads())
    library().ls_many(ctypes.byref(call))  # type: ignore[union-attr]
    return out


def before(call: Before) -> None:
    """Norm, q|k|v, norms of heads, rotation. Needs the native library."""
    library().ls_before(ctypes.byref(call))  # type: ignore[union-attr]


def after(call: After) -> None:
    """Output projection, residual, norm, gated MLP, residual. Needs the native library."""
    library().ls_after(ctypes.byref(call))  # type: ignore[union-attr]


def unpack(packing: Packing, packed: torch.Tensor, out: torch.Tensor) -> None:
    """Write the numbers of packed rows [n, bytes of a row] uint8 into out [n, columns] bf16 contiguous."""
    native = library()
    if native is None:
        out.copy_(packings.unpack(packing, packed))
        return
    call = _Unpack(_band(Band(packing, packed)), out.data_ptr(), out.shape[1], torch.get_num_threads())
    native.ls_unpack(ctypes.byref(call))
