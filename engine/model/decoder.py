"""The decoder: token ids and positions in, float32 logits out. It knows nothing of documents, files or conversations.

RMSNorm before attention and MLP, rotary positions, grouped-query attention, a gated MLP, and what only some families have, as `ModelConfig`
says. Rows of several sequences may be packed into one call; what a row reads is the business of the attention object that is called
once a layer (DESIGN: `attend`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import torch

from engine.attention.sequence import Attention, Rows
from engine.errors import LongshelfError
from engine.model.config import ModelConfig
from engine.model.families import FAMILIES, unsupported
from engine.model.few_rows import FewRows
from engine.model.rope import Rope
from engine.model.weights import Layer, Weights
from kernels import cpu, reference
from kernels.cpu import FEW

if TYPE_CHECKING:
    from engine.model.few_rows_on_device import FewRowsOnDevice

CHUNK = 512
"""Tokens of one prefill call. Stored KV depends on it in the last bits, so every reading keeps to this grid."""


Angles = tuple[torch.Tensor, torch.Tensor]


class Parts(Protocol):
    """What stands between the products of many rows: see `kernels.reference`."""

    def add_norm(self, x: torch.Tensor, delta: torch.Tensor | None, weight: torch.Tensor, eps: float) -> torch.Tensor: ...

    def gated(self, gate: torch.Tensor, up: torch.Tensor, activation: str) -> torch.Tensor: ...

    def split_heads(
        self, qkv: torch.Tensor, heads: int, kv_heads: int, norms: Angles | None, angles: Angles | None, eps: float
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]: ...


class Decoder:
    """One model in memory. Not for several threads at once: native threads belong to the thread that calls."""

    def __init__(self, config: ModelConfig, weights: Weights) -> None:
        if config.family not in FAMILIES:
            raise unsupported(f"This model is of the family {config.family!r}.")
        self.config = config
        self.weights = weights
        self.dtype, self.device = weights.dtype, weights.device
        self._ropes = {kind: Rope(config, kind == "sliding") for kind in {*config.layer_kinds, "full"} - {"nope"}}
        self._few: FewRows | FewRowsOnDevice | None = FewRows(config, weights) if cpu.native() and not weights.apart else None
        self._parts: Parts = cpu
        if weights.apart:
            from engine.model.few_rows_on_device import FewRowsOnDevice

            self._few, self._parts = FewRowsOnDevice(config, weights), reference

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
        Ids and logits lie here, wherever the weights do; what attention gets and gives lies where they do.
        Raises LongshelfError("too_long") if a position lies beyond the model's window.
        """
        if rows.last_position >= self.config.window:
            raise LongshelfError(
                "too_long",
                f"This needs {rows.last_position + 1} tokens at once; the model's window holds {self.config.window}.",
                "Ask a shorter question, or start a new chat.",
            )
        angles = {kind: self._there(rope.at(rows.positions)) for kind, rope in self._ropes.items()}
        of_layers = [angles.get(self.config.kind(layer)) for layer in range(self.config.layers)]
        x = self.embed(ids).to(self.device)
        if self._few is not None and len(ids) <= FEW:
            x = self._few.run(x, of_layers, rows, attention, between_layers)
            return torch.empty(0, self.config.vocab) if logits_of is None else self.logits(x[logits_of])
        delta: torch.Tensor | None = None
        for index, layer in enumerate(self.weights.layers):
            if between_layers is not None:
                between_layers()
            delta = self._attention(index, layer, self._norm(x, layer.attention_norm, delta), of_layers[index], rows, attention)
            delta = self._mlp(layer, self._norm(x, layer.mlp_norm, delta))
        if delta is not None:
            x += delta
        if logits_of is None:
            return torch.empty(0, self.config.vocab)
        return self.logits(x[logits_of])

    def embed(self, ids: torch.Tensor) -> torch.Tensor:
        """[N, E], here, for ids [N], in the model's dtype; a scale is rounded to that dtype first, as the models were trained."""
        x = self.weights.embedding.row(ids).to(self.dtype)
        scale = self.config.embedding_scale
        return x if scale == 1 else x * torch.tensor(scale, dtype=self.dtype)

    def logits(self, x: torch.Tensor) -> torch.Tensor:
        """[n, V] float32, here, from the last layer's output [n, E]."""
        if len(x) <= FEW:
            logits = self.weights.head.few(x.float().contiguous(), self.weights.norm, self.config.rms_eps)
        else:
            logits = self.weights.head.many(self._norm(x, self.weights.norm)).float()
        cap = self.config.logit_softcap
        return (cap * torch.tanh(logits / cap) if cap else logits).cpu()

    def _there(self, angles: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        return angles[0].to(self.device), angles[1].to(self.device)

    def _norm(self, x: torch.Tensor, weight: torch.Tensor, delta: torch.Tensor | None = None) -> torch.Tensor:
        """RMSNorm of x [n, E], to which delta is added first, in place."""
        return self._parts.add_norm(x, delta, weight, self.config.rms_eps)

    def _attention(
        self,
        index: int,
        layer: Layer,
        x: torch.Tensor,
        angles: tuple[torch.Tensor, torch.Tensor] | None,
        rows: Rows,
        attention: Attention,
    ) -> torch.Tensor:
        c = self.config
        norms = None if layer.q_norm is None or layer.k_norm is None else (layer.q_norm, layer.k_norm)
        q, k, v = self._parts.split_heads(layer.qkv.many(x), c.heads, c.kv_heads, norms, angles, c.rms_eps)  # k, v as they are stored
        out = attention.attend(index, q, k, v, rows)
        out = layer.out.many(out.to(self.dtype).view(-1, c.heads * c.head_dim))
        return out if layer.post_attention_norm is None else self._norm(out, layer.post_attention_norm)

    def _mlp(self, layer: Layer, x: torch.Tensor) -> torch.Tensor:
        out = layer.down.many(self._parts.gated(layer.gate.many(x), layer.up.many(x), self.config.activation))
        return out if layer.post_mlp_norm is None else self._norm(out, layer.post_mlp_norm)
