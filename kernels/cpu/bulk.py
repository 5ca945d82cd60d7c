"""What stands between the products of many rows, on the CPU: one pass over the numbers each; meanings as in `kernels.reference`."""

from __future__ import annotations

import ctypes

import torch

from kernels import reference
from kernels.cpu.library import library

_DTYPES = {torch.bfloat16: 0, torch.float32: 1}
ACTIVATIONS = {"silu": 0, "gelu_tanh": 1}
_DIM_MAX = 256


class _Norm(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("x", "delta", "weight", "out")),
        *((name, ctypes.c_int32) for name in ("n", "columns", "dtype", "threads")),
        ("eps", ctypes.c_float),
    ]


class _Gate(ctypes.Structure):
    _fields_ = [
        ("gate", ctypes.c_void_p),
        ("up", ctypes.c_void_p),
        ("count", ctypes.c_int64),
        *((name, ctypes.c_int32) for name in ("activation", "dtype", "threads")),
    ]


class _Heads(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("qkv", "q_norm", "k_norm", "cos", "sin", "q", "k", "v")),
        *((name, ctypes.c_int32) for name in ("n", "heads", "kv_heads", "dim", "rotary", "dtype", "threads")),
        ("eps", ctypes.c_float),
    ]


def add_norm(x: torch.Tensor, delta: torch.Tensor | None, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """x += delta in place, then RMSNorm(x) * weight; x, delta [n, E] contiguous, weight [E] float32; gives [n, E] in x's dtype."""
    native = library()
    if native is None:
        return reference.add_norm(x, delta, weight, eps)
    out = torch.empty_like(x)
    call = _Norm(
        x=x.data_ptr(),
        delta=None if delta is None else delta.data_ptr(),
        weight=weight.data_ptr(),
        out=out.data_ptr(),
        n=x.shape[0],
        columns=x.shape[1],
        dtype=_DTYPES[x.dtype],
        threads=torch.get_num_threads(),
        eps=eps,
    )
    native.ls_norm(ctypes.byref(call))
    return out


def gated(gate: torch.Tensor, up: torch.Tensor, activation: str) -> torch.Tensor:
    """activation(gate) * up, in gate's place; both [n, F] contiguous."""
    native = library()
    if native is None:
        return reference.gated(gate, up, activation)
    threads = torch.get_num_threads()
    native.ls_gate(ctypes.byref(_Gate(gate.data_ptr(), up.data_ptr(), gate.numel(), ACTIVATIONS[activation], _DTYPES[gate.dtype], threads)))
    return gate


def split_heads(
    qkv: torch.Tensor,
    heads: int,
    kv_heads: int,
    norms: tuple[torch.Tensor, torch.Tensor] | None,
    angles: tuple[torch.Tensor, torch.Tensor] | None,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """q [n, Hq, D] float32, k and v [n, Hkv, D] in qkv's dtype, from qkv [n, (Hq + 2 Hkv) D] contiguous.

    norms: RMSNorm weights [D] float32 of q's and k's heads; angles: (cos, sin) [n, 1, R] float32 that turn the leading R dims of
    q and k, the first half of the sines negated.
    """
    native, dim = library(), qkv.shape[1] // (heads + 2 * kv_heads)
    if native is None or dim > _DIM_MAX:
        return reference.split_heads(qkv, heads, kv_heads, norms, angles, eps)
    n = qkv.shape[0]
    q = torch.empty(n, heads, dim)
    k = torch.empty(n, kv_heads, dim, dtype=qkv.dtype)
    v = torch.empty_like(k)
    q_norm, k_norm = (None, None) if norms is None else (norms[0].data_ptr(), norms[1].data_ptr())
    cos, sin = (None, None) if angles is None else (angles[0].data_ptr(), angles[1].data_ptr())
    call = _Heads(
        qkv=qkv.data_ptr(),
        q_norm=q_norm,
        k_norm=k_norm,
        cos=cos,
        sin=sin,
        q=q.data_ptr(),
        k=k.data_ptr(),
        v=v.data_ptr(),
        n=n,
        heads=heads,
        kv_heads=kv_heads,
        dim=dim,
        rotary=0 if angles is None else angles[0].shape[-1],
        dtype=_DTYPES[qkv.dtype],
        threads=torch.get_num_threads(),
        eps=eps,
    )
    native.ls_heads(ctypes.byref(call))
    return q, k, v
