"""The decoder: token ids and positions in, float32 logits out. It knows nothing of documents, files or conversations.

Llama family: RMSNorm before attention and MLP, rotary positions, grouped-query attention, SwiGLU. Rows of several sequences may
be packed into one call; what a row reads is the business of the attention object that is called once a layer (DESIGN: `attend`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
import torch.nn.functional as F

from engine.attention.sequence import Rows
from engine.errors import LongshelfError
from engine.model.config import ModelConfig
from engine.model.few_rows import FEW, FewRows
from engine.model.rope import Rope, rotate
from engine.model.weights import Layer, Weights
from kernels import cpu

FAMILIES = ("llama",)

CHUNK = 512
"""Tokens of one prefill call. Stored KV depends on it in the last bits, so every reading keeps to this grid."""


class Attention(Protocol):
    """How rows read sequences."""

    def attend(self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rows: Rows) -> torch.Tensor:
        """Write k, v [N, Hkv, D] (after RoPE) at the rows' positions, then read. q [N, Hq, D] float32; gives [N, Hq, D] float32."""
        ...


class Decoder:
    """One model in memory. Not for several threads at once: native threads belong to the thread that calls."""

    def __init__(self, config: ModelConfig, weights: Weights) -> None:
        if config.family not in FAMILIES:
            raise LongshelfError(
                "model_unsupported",
                f"This version runs models of the Llama family; this one is of the family {config.family!r}.",
                "Choose a Llama, SmolLM2 or similar model.",
            )
        self.config = config
        self.weights = weights
        self.dtype = weights.dtype
        self._rope = Rope(config)
        self._few = FewRows(config, weights) if cpu.native() else None

    @torch.inference_mode()
    def forward(
        self,
        ids: torch.Tensor,
        rows: Rows,
        attention: Attention,
        logits_of: torch.Tensor | slice | None = None,
        between_layers: Callable[[], None] | None = None,
    ) -> torch.Tensor:
        """Read tokens ids [N] at `rows`; K and V are written through `attention`.

        logits_of: which rows want logits: indices, a slice, or None for none. Gives [n, V] float32.
        between_layers: called before every layer; may raise to stop (nothing is committed then) or do other work meanwhile.
        Raises LongshelfError("too_long") if a position lies beyond the model's window.
        """
        if rows.last_position >= self.config.window:
            raise LongshelfError(
                "too_long",
                f"This needs {rows.last_position + 1} tokens at once; the model's window holds {self.config.window}.",
                "Ask a shorter question, or start a new chat.",
            )
        cos, sin = self._rope.at(rows.positions)
        if self._few is not None and len(ids) <= FEW:
            x = self._few.run(ids, [(cos, sin)] * self.config.layers, rows, attention, between_layers)
            return torch.empty(0, self.config.vocab) if logits_of is None else self.logits(x[logits_of])
        x = self.weights.embedding.row(ids).to(self.dtype)
        for index, layer in enumerate(self.weights.layers):
            if between_layers is not None:
                between_layers()
            x = x + self._attention(index, layer, x, cos, sin, rows, attention)
            x = x + self._mlp(layer, x)
        if logits_of is None:
            return torch.empty(0, self.config.vocab)
        return self.logits(x[logits_of])

    def logits(self, x: torch.Tensor) -> torch.Tensor:
        """[n, V] float32 from the last layer's output [n, E]."""
        if len(x) <= FEW:
            return cpu.linear(x.float().contiguous(), self.weights.head.matrix, self.weights.norm, self.config.rms_eps)
        return self.weights.head.many(self._norm(x, self.weights.norm)).float()

    def _norm(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """RMSNorm (Zhang and Sennrich 2019, arXiv:1910.07467) in float32, rounded once."""
        return F.rms_norm(x.float(), weight.shape, weight, self.config.rms_eps).to(x.dtype)

    def _attention(
        self, index: int, layer: Layer, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, rows: Rows, attention: Attention
    ) -> torch.Tensor:
        c = self.config
        qkv = layer.qkv.many(self._norm(x, layer.attention_norm)).view(-1, c.heads + 2 * c.kv_heads, c.head_dim)
        turned = rotate(qkv[:, : c.heads + c.kv_heads], cos, sin)
        q, k, v = turned[:, : c.heads].contiguous(), turned[:, c.heads :], qkv[:, c.heads + c.kv_heads :]
        out = attention.attend(index, q, k.to(self.dtype), v, rows)  # K rounded to the stored dtype before its first use
        return layer.out.many(out.to(self.dtype).view(-1, c.heads * c.head_dim))

    def _mlp(self, layer: Layer, x: torch.Tensor) -> torch.Tensor:
        x = self._norm(x, layer.mlp_norm)
        return layer.down.many(F.silu(layer.gate.many(x)) * layer.up.many(x))
