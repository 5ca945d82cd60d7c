"""The decoder's layers for 1 to 16 rows on a device: what decoding, verifying drafts and short questions run there.

As `few_rows` does, activations stay float32, and what a row gives doesn't depend on the rows beside it: every call is filled up to 16
rows, so that all products and sums are the same ones. Everything between two attentions reads and writes buffers that stay where they are.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from engine.attention.sequence import Attention, Rows
from engine.model.config import ModelConfig
from engine.model.weights import Weights
from kernels import reference
from kernels.cpu import FEW

Rotation = tuple[torch.Tensor, torch.Tensor]


class FewRowsOnDevice:
    """The layers of one model with their buffers, for one thread at a time."""

    def __init__(self, config: ModelConfig, weights: Weights) -> None:
        c, there = config, weights.device
        self._config, self._weights = config, weights
        self._x = torch.zeros(FEW, c.hidden, device=there)
        self._q = torch.zeros(FEW, c.heads, c.head_dim, device=there)
        self._k = torch.zeros(FEW, c.kv_heads, c.head_dim, dtype=weights.dtype, device=there)
        self._v = torch.zeros_like(self._k)
        self._attended = torch.zeros(FEW, c.heads * c.head_dim, device=there)
        self._angles: dict[str, Rotation] = {}

    def run(
        self,
        embedded: torch.Tensor,
        rotations: list[Rotation | None],
        rows: Rows,
        attention: Attention,
        between_layers: Callable[[], None] | None = None,
    ) -> torch.Tensor:
        """As `FewRows.run`; everything lies on the device."""
        n = len(embedded)
        self._x[:n] = embedded
        self._take(rotations, n)
        for index in range(self._config.layers):
            if between_layers is not None:
                between_layers()
            self._before(index)
            out = attention.attend(index, self._q[:n], self._k[:n], self._v[:n], rows)
            self._attended[:n] = out.view(n, -1)
            self._after(index)
        return self._x[:n]

    def _take(self, rotations: list[Rotation | None], n: int) -> None:
        """Angles into buffers that stay, one for each kind of layer."""
        kinds = {self._config.kind(layer): rotation for layer, rotation in enumerate(rotations) if rotation is not None}
        for kind, rotation in kinds.items():
            if kind not in self._angles:
                cos, sin = (torch.zeros(FEW, *each.shape[1:], device=each.device) for each in rotation)
                self._angles[kind] = cos, sin
            for into, angles in zip(self._angles[kind], rotation, strict=True):
                into[:n] = angles

    def _before(self, index: int) -> None:
        """x to q, k and v."""
        c, layer = self._config, self._weights.layers[index]
        qkv = layer.qkv.few(self._x, layer.attention_norm, c.rms_eps)
        norms = None if layer.q_norm is None or layer.k_norm is None else (layer.q_norm, layer.k_norm)
        q, k, v = reference.split_heads(qkv, c.heads, c.kv_heads, norms, self._angles.get(c.kind(index)), c.rms_eps)
        self._q.copy_(q)
        self._k.copy_(k)  # rounded as they are stored
        self._v.copy_(v)

    def _after(self, index: int) -> None:
        """x and what was attended to the next x."""
        c, layer = self._config, self._weights.layers[index]
        self._add(layer.out.few(self._attended), layer.post_attention_norm)
        x = reference.add_norm(self._x, None, layer.mlp_norm, c.rms_eps)
        self._add(layer.down.few(reference.gated(layer.gate.few(x), layer.up.few(x), c.activation)), layer.post_mlp_norm)

    def _add(self, y: torch.Tensor, norm: torch.Tensor | None) -> None:
        self._x += y if norm is None else reference.add_norm(y, None, norm, self._config.rms_eps)
