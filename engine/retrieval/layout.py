"""How large sketches are: told without torch, which lists and estimates of size don't load."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.model.config import ModelConfig

PLANE_BYTES = 4
"""Bytes of a key in a plane: see `kernels.sketch`."""


def planes(dim: int) -> tuple[int, int, int]:
    """How many planes of 4, 2 and 1 bits keys of so many dims get: a quarter of the coordinates in 4 bits, half of them in 2."""
    some = max(1, dim // 32)
    return some if dim >= 24 else 1, some if dim >= 48 else 0, 0


def index_bytes_per_token(config: ModelConfig) -> int:
    """Bytes of a token's sketches: 1/16 of those of bf16 keys and values where dims are a multiple of 32."""
    return config.layers * config.kv_heads * PLANE_BYTES * sum(planes(config.head_dim))
