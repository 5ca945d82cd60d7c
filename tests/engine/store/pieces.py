"""Small segments for tests."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.store.format import SegmentHeader

NAMESPACE = "ab" * 32


def header(tokens: int = 5, parent: str = "", start: int = 0, dtype: str = "bfloat16", **changes: object) -> SegmentHeader:
    """2 layers, 2 KV heads, head dim 8: an extent of 160 bytes, so that most of each 4 KiB is filling."""
    fields: dict[str, object] = {
        "namespace": NAMESPACE,
        "parent": parent,
        "start": start,
        "tokens": tokens,
        "layers": 2,
        "kv_heads": 2,
        "head_dim": 8,
        "dtype": dtype,
        "provenance": {"device": "cpu", "threads": "2"},
    }
    return SegmentHeader(**(fields | changes))  # type: ignore[arg-type]


def ids(tokens: int = 5, first: int = 100) -> list[int]:
    return list(range(first, first + tokens))


def kv(of: SegmentHeader, seed: int = 0) -> npt.NDArray[np.generic]:
    """Random bits in the header's shape: any bits are to survive, those of NaN too."""
    bits = np.random.default_rng(seed)
    if of.dtype == "float32":
        return bits.standard_normal(of.shape).astype(np.float32)
    return bits.integers(0, 2**16, of.shape, dtype=np.uint16)
