"""Shapes of models whose speed is measured without their weights: random numbers take as long to multiply and to read."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Callable
from typing import Any

import torch

from engine.errors import LongshelfError
from engine.model.config import ModelConfig

_LLAMA_3: dict[str, Any] = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}


def _llama(layers: int, hidden: int, heads: int, kv_heads: int, head_dim: int, wide: int, vocab: int, **more: Any) -> ModelConfig:
    usual = {"rope_theta": 500000.0, "rms_eps": 1e-5, "tied": False, "window": 131072, "bos": None, "eos": (0,), "rope": _LLAMA_3}
    return ModelConfig("llama", layers, hidden, heads, kv_heads, head_dim, wide, vocab, **{**usual, **more})


SHAPES = {
    "tiny": _llama(2, 64, 4, 2, 16, 96, 300, rope_theta=10000.0, rope={"rope_type": "default"}, window=8192),
    "smollm2-135m": _llama(30, 576, 9, 3, 64, 1536, 49152, rope_theta=100000.0, rope={"rope_type": "default"}, window=8192, tied=True),
    "llama-3.2-1b": _llama(16, 2048, 32, 8, 64, 8192, 128256, tied=True),
    "llama-3.2-3b": _llama(28, 3072, 24, 8, 128, 8192, 128256, tied=True),
    "llama-3.1-8b": _llama(32, 4096, 32, 8, 128, 14336, 128256),
}
"""Layers, hidden, query heads, KV heads, dims of a head, width of the MLP, vocabulary."""


def shape(name: str) -> ModelConfig:
    """Raises LongshelfError("usage") for a name that isn't known."""
    if name not in SHAPES:
        raise LongshelfError("usage", f"There is no shape {name!r}.", f"There are {', '.join(SHAPES)}.")
    return SHAPES[name]


def weights_bytes(config: ModelConfig) -> int:
    """Of all matrices, in bf16."""
    c = config
    of_layer = c.hidden * (2 * c.heads + 2 * c.kv_heads) * c.head_dim + 3 * c.hidden * c.intermediate
    return 2 * (c.layers * of_layer + (1 if c.tied else 2) * c.vocab * c.hidden)


_POOL = 1 << 24


def random_tensors(config: ModelConfig, device: torch.device | None = None) -> Callable[[str], torch.Tensor | None]:
    """A lookup as `weights.build` takes it: matrices in bf16 such that numbers stay about as large as they were, norms of ones.

    The numbers of a matrix are those of one pool, from a place that its name says: drawing each anew would take minutes. device: where
    matrices are made, all but the embedding.
    """
    c = config
    here = torch.randn(_POOL, generator=torch.Generator().manual_seed(0)).to(torch.bfloat16)
    pools = {None: here, device: here if device is None else here.to(device)}
    attended, kv = c.heads * c.head_dim, c.kv_heads * c.head_dim
    shapes = {
        "q_proj": (attended, c.hidden),
        "k_proj": (kv, c.hidden),
        "v_proj": (kv, c.hidden),
        "o_proj": (c.hidden, attended),
        "gate_proj": (c.intermediate, c.hidden),
        "up_proj": (c.intermediate, c.hidden),
        "down_proj": (c.hidden, c.intermediate),
        "embed_tokens": (c.vocab, c.hidden),
        "lm_head": (c.vocab, c.hidden),
    }

    def drawn(name: str) -> torch.Tensor | None:
        *_, module, kind = name.split(".")
        if kind != "weight" or (module == "lm_head" and c.tied):
            return None
        if "norm" in module:
            return torch.ones(c.head_dim if module in ("q_norm", "k_norm") else c.hidden)
        rows, columns = shapes[module]
        pool = pools[None if module == "embed_tokens" else device]
        first = zlib.crc32(name.encode()) % (_POOL // 2)
        wanted = rows * columns
        numbers = pool[first:].repeat(math.ceil(wanted / (_POOL - first)))[:wanted]
        matrix: torch.Tensor = (numbers * float(columns) ** -0.5).view(rows, columns)
        return matrix

    return drawn


def words_as_ids(text: str, vocab: int) -> list[int]:
    """Ids for a model without a vocabulary: words and marks, each by its own number, so that they recur as in the text."""
    return [zlib.crc32(word.encode()) % vocab for word in re.findall(r"\w+|[^\w\s]+", text)]
