"""Rotary position embedding (RoPE, Su et al. 2021, arXiv:2104.09864) in the rotate-half order of Hugging Face checkpoints.

Angles are computed in float32 from integer positions, and the rotation is applied in float32 and rounded once, so that a key
depends on its position and its vector alone, never on what is read beside it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch

from engine.errors import LongshelfError
from engine.model.config import ModelConfig


class Rope:
    """Cosines and sines for every position of the model's window; tables are made once and only read."""

    def __init__(self, config: ModelConfig) -> None:
        angles = torch.arange(config.window, dtype=torch.float32)[:, None] * inverse_frequencies(config)
        self._cos = torch.cat([angles.cos(), angles.cos()], -1)  # [window, D]
        self._sin = torch.cat([-angles.sin(), angles.sin()], -1)  # the sign of rotate-half is in the table

    def at(self, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(cos, sin) [N, 1, D] float32 for positions [N]."""
        return self._cos[positions, None], self._sin[positions, None]


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """x [N, H, D] turned by the angles of `Rope.at`; float32."""
    x = x.float()
    swapped = torch.cat([x[..., x.shape[-1] // 2 :], x[..., : x.shape[-1] // 2]], -1)
    return torch.addcmul(x * cos, swapped, sin)


def inverse_frequencies(config: ModelConfig) -> torch.Tensor:
    """[D/2] float32: radians a position for each pair of dims. Raises LongshelfError("model_unsupported") for an unknown rule."""
    steps = torch.arange(0, config.head_dim, 2, dtype=torch.int64).float() / config.head_dim
    plain = 1.0 / (config.rope_theta**steps)
    kind = config.rope.get("rope_type", "default")
    if kind == "default":
        return plain
    if kind == "linear":
        return plain / float(config.rope["factor"])
    if kind == "divisors":
        return plain / torch.tensor(config.rope["divisors"], dtype=torch.float32)
    if kind == "llama3":
        return _llama3(plain, config.rope)
    raise LongshelfError(
        "model_unsupported", f"This version can't turn positions by the rule {kind!r} that the model asks for.", "Choose another model."
    )


def _llama3(plain: torch.Tensor, rule: Mapping[str, Any]) -> torch.Tensor:
    """Llama 3.1: long wavelengths are stretched by `factor`, short ones kept, those between blended."""
    trained = float(rule["original_max_position_embeddings"])
    low, high, factor = float(rule["low_freq_factor"]), float(rule["high_freq_factor"]), float(rule["factor"])
    wavelength = 2 * math.pi / plain
    blend = ((trained / wavelength - low) / (high - low)).clamp(0, 1)  # 0: stretched, 1: kept
    return plain / factor * (1 - blend) + plain * blend
