"""Rotation for windows longer than a model was first trained with, worked out at install into divisors of its inverse frequencies.

A rule is what a config says: `original_max_position_embeddings` and, where the model names them, `factor`, `attention_factor` and the
rule's own entries. What comes out is a `rope` of ModelConfig and thereby part of the identity of stored keys.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def longrope(short: list[float], long: list[float], window: int, rule: Mapping[str, Any]) -> dict[str, Any]:
    """LongRoPE (Ding et al. 2024, arXiv:2402.13753) with one set of divisors for every position.

    Which set a text is read with must not depend on how long it becomes: keys that are stored would have to be turned again. So a
    window above the one the model was first trained with always takes the long set.
    """
    trained = int(rule["original_max_position_embeddings"])
    factor = rule.get("factor") or window / trained
    stretched = math.sqrt(1 + math.log(factor) / math.log(trained)) if factor > 1 else 1.0
    return _divisors(long if window > trained else short, rule.get("attention_factor") or stretched)


def yarn(theta: float, rotated: int, window: int, rule: Mapping[str, Any]) -> dict[str, Any]:
    """YaRN (Peng et al. 2023, arXiv:2309.00071) as transformers has it: dims that turn often within the trained window keep their
    frequency, those that turn less than `beta_slow` times are stretched by the factor, those between are blended."""
    trained = int(rule["original_max_position_embeddings"])
    factor = rule.get("factor") or window / trained

    def dim_that_turns(times: float) -> float:
        return rotated * math.log(trained / (times * 2 * math.pi)) / (2 * math.log(theta))

    low, high = dim_that_turns(rule.get("beta_fast") or 32), dim_that_turns(rule.get("beta_slow") or 1)
    if rule.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, rotated - 1)
    width = high - low or 0.001
    kept = [1 - min(max((pair - low) / width, 0), 1) for pair in range(rotated // 2)]
    sharper = 0.1 * math.log(factor) + 1 if factor > 1 else 1.0
    return _divisors([1 / (part + (1 - part) / factor) for part in kept], rule.get("attention_factor") or sharper)


def _divisors(divisors: list[float], attention_factor: float) -> dict[str, Any]:
    return {"rope_type": "divisors", "divisors": [float(value) for value in divisors], "attention_factor": float(attention_factor)}
