"""Angles of rotary position embedding (RoPE, Su et al. 2021, arXiv:2104.09864) in the rotate-half order of Hugging Face checkpoints.

Angles are computed in float32 from integer positions, and the rotation is applied in float32 and rounded once, so that a key
depends on its position and its vector alone, never on what is read beside it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from engine.errors import LongshelfError
from engine.model.config import ModelConfig

GROWTH = 1024
"""Positions whose angles are computed at once."""


class Rope:
    """Cosines and sines of positions, computed once and only read: for as many positions as were asked for, so that a model with
    a long window needs no table for all of it."""

    def __init__(self, config: ModelConfig, sliding: bool = False) -> None:
        """sliding: for sliding layers, which some models rotate by a rule of their own."""
        own = sliding and config.sliding_rope_theta
        self._frequencies = inverse_frequencies(replace(config, rope_theta=own, rope={}) if own else config)
        self._factor = 1.0 if own else float(config.rope.get("attention_factor", 1.0))
        self._cos = self._sin = torch.empty(0, len(self._frequencies))  # [positions, R/2]

    def at(self, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(cos, sin) [N, 1, R] float32 for positions [N]; R: the dims that are rotated."""
        self._reach(int(positions.max()))
        cos, sin = self._cos[positions], self._sin[positions]
        return torch.cat([cos, cos], -1)[:, None], torch.cat([-sin, sin], -1)[:, None]  # the sign of rotate-half is in the sines

    def _reach(self, last: int) -> None:
        """Always the same blocks of positions: how far a table has grown changes no bit of it."""
        blocks = [torch.arange(start, start + GROWTH).float() for start in range(len(self._cos), last + 1, GROWTH)]
        if blocks:
            angles = [block[:, None] * self._frequencies for block in blocks]
            self._cos = torch.cat([self._cos, *(block.cos() * self._factor for block in angles)])
            self._sin = torch.cat([self._sin, *(block.sin() * self._factor for block in angles)])


def inverse_frequencies(config: ModelConfig) -> torch.Tensor:
    """[R/2] float32: radians a position for each pair of dims. Raises LongshelfError("model_unsupported") for an unknown rule."""
    rotated = config.rotary_dim or config.head_dim
    steps = torch.arange(0, rotated, 2, dtype=torch.int64).float() / rotated
    plain = 1.0 / (config.rope_theta**steps)
    kind = config.rope.get("rope_type", "default")
    if kind == "default":
        return plain
    if kind == "linear":
        return plain / float(config.rope["factor"])
    if kind == "divisors":
        return 1.0 / (torch.tensor(config.rope["divisors"], dtype=torch.float32) * config.rope_theta**steps)
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
