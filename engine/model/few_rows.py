"""The decoder's layers for 1 to 16 rows, in native code: what decoding, verifying drafts and short questions run.

Two native calls a layer around attention. Activations stay float32, weights are read once for all rows and unpacked in registers, and what
a row gives doesn't depend on the rows beside it in any bit: a token is the same whether it is decoded alone, verified with
others, or decoded beside other questions.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from engine.attention.sequence import Attention, Rows
from engine.model.config import ModelConfig
from engine.model.weights import Layer, Weights
from kernels import cpu
from kernels.cpu import FEW

_DTYPES = {torch.bfloat16: 0, torch.float32: 1}


class FewRows:
    """The layers of one model with their buffers, for one thread at a time."""

    def __init__(self, config: ModelConfig, weights: Weights) -> None:
        c = config
        self._config = config
        self._x = torch.zeros(FEW, c.hidden)
        self._q = torch.empty(FEW, c.heads, c.head_dim)
        self._k = torch.empty(FEW, c.kv_heads, c.head_dim, dtype=weights.dtype)
        self._v = torch.empty_like(self._k)
        self._calls = [(self._before(layer), self._after(layer)) for layer in weights.layers]

    def run(
        self,
        embedded: torch.Tensor,
        rotations: list[tuple[torch.Tensor, torch.Tensor] | None],
        rows: Rows,
        attention: Attention,
        between_layers: Callable[[], None] | None = None,
    ) -> torch.Tensor:
        """The last layer's output [n, E] float32 for the embeddings [n, E] of n <= 16 tokens; overwritten by the next call.

        rotations: for each layer (cos, sin) as `Rope.at` gives them, or None where positions don't turn.
        """
        n, threads = len(embedded), torch.get_num_threads()
        x, q, k, v = self._x[:n], self._q[:n], self._k[:n], self._v[:n]
        x.copy_(embedded)
        for index, ((before, after), rotation) in enumerate(zip(self._calls, rotations, strict=True)):
            if between_layers is not None:
                between_layers()
            before.n = after.n = n
            before.threads = after.threads = threads
            before.cos, before.sin = (None, None) if rotation is None else (rotation[0].data_ptr(), rotation[1].data_ptr())
            cpu.before(before)
            out = attention.attend(index, q, k, v, rows)
            after.attention = out.data_ptr()
            cpu.after(after)
        return x

    def _before(self, layer: Layer) -> cpu.Before:
        c = self._config
        return cpu.Before(
            qkv=layer.qkv.matrix.struct,
            x=self._x.data_ptr(),
            norm=layer.attention_norm.data_ptr(),
            q_norm=_address(layer.q_norm),
            k_norm=_address(layer.k_norm),
            q=self._q.data_ptr(),
            k=self._k.data_ptr(),
            v=self._v.data_ptr(),
            heads=c.heads,
            kv_heads=c.kv_heads,
            dim=c.head_dim,
            rotary=c.rotary_dim or c.head_dim,
            kv_dtype=_DTYPES[self._k.dtype],
            eps=c.rms_eps,
        )

    def _after(self, layer: Layer) -> cpu.After:
        return cpu.After(
            out=layer.out.matrix.struct,
            gate=layer.gate.matrix.struct,
            up=layer.up.matrix.struct,
            down=layer.down.matrix.struct,
            x=self._x.data_ptr(),
            post_attention_norm=_address(layer.post_attention_norm),
            mlp_norm=layer.mlp_norm.data_ptr(),
            post_mlp_norm=_address(layer.post_mlp_norm),
            activation=cpu.ACTIVATIONS[self._config.activation],
            eps=self._config.rms_eps,
        )


def _address(tensor: torch.Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()
