"""What a model costs on this machine: memory to run it, disk for what it reads, and whether it can run here."""

from __future__ import annotations

from typing import Any

import psutil

from engine.errors import LongshelfError
from engine.model.config import ModelConfig

TOKENS_A_PAGE = 500
"""Of a printed page of English; other languages take more tokens a page with most models."""
PAGES = 100

PROGRAM_BYTES = 700_000_000
"""The engine's own memory: Python, torch, buffers while parts are chosen and a question is read. Measured with the default model."""
_CONTEXT = 4096
"""Positions whose KV should lie in memory while a question is answered."""


def memory_needed(config: ModelConfig, weights_bytes: int, packed: bool) -> int:
    """Bytes to run a model: its weights, its largest matrix unpacked where they are packed, KV under way, and the program."""
    largest = max(config.vocab * config.hidden, config.intermediate * config.hidden)
    return weights_bytes + (2 * largest if packed else 0) + config.kv_bytes_per_token * min(config.window, _CONTEXT) + PROGRAM_BYTES


def costs(kv_bytes_per_token: int, index_bytes_per_token: int, memory: int) -> dict[str, Any]:
    """The entries of a model's row in `models list` that depend on its size and on this machine."""
    return {
        "gb_per_100_pages": round((kv_bytes_per_token + index_bytes_per_token) * TOKENS_A_PAGE * PAGES / 1e9, 3),
        "kv_gb_per_100_pages": round(kv_bytes_per_token * TOKENS_A_PAGE * PAGES / 1e9, 3),
        "tokens_a_page": TOKENS_A_PAGE,
        "memory_needed": memory,
        "memory_here": psutil.virtual_memory().total,
        "fits": memory <= psutil.virtual_memory().total,
    }


def require_memory(name: str, memory: int) -> None:
    """Raises LongshelfError("not_enough_memory") before a model is loaded that would push everything else out of memory.

    The program itself runs already by then, so only what the model takes beside it must be free.
    """
    needed, available = memory - PROGRAM_BYTES, psutil.virtual_memory().available
    if needed > available:
        raise LongshelfError(
            "not_enough_memory",
            f"The model {name} takes {needed / 1e9:.1f} GB of memory; {available / 1e9:.1f} GB are free on this machine.",
            "Close other programs, choose a smaller model, or add it again with --pack q4_0.",
        )
