"""Fitting a model's projections: which few coordinates of its keys say most about what its queries find.

For each KV head the error of a guessed logit, query · (key - guessed key), is smallest on the average over queries where keys are turned
by the square root of the queries' second moment and then cut along the principal axes of what comes of it. Fitted once on the
handbook, for documents of any kind: what a head looks for is the model's, not the text's. Where in the window it stands is not: RoPE
turns slow dimensions by whole angles between the window's start and its end, so the moments are taken over all of it.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from engine.attention.in_memory import turn
from engine.attention.sequence import Attention, Rows, Sequence, Tail
from engine.model.config import ModelConfig
from engine.model.decoder import Decoder
from engine.model.prefill import prefill
from engine.retrieval.layout import planes
from kernels.reference import rotate
from kernels.sketch import Layout, Projection

_STEPS = {4: 0.40, 2: 0.9957, 1: 1.5958}
"""Steps in standard deviations: those that cut a normal variable with the least error (Max 1960); of 4 bits a little wider, for keys
far out."""
_RIDGE = 1e-3
_PLACES = 24
"""Places of the window that a text's moments are turned to."""


def layout_for(dim: int) -> Layout:
    """The default: about 1/16 of the bytes of a bf16 key and its value."""
    return Layout(*planes(dim))


class Moments:
    """Reads as `inner` does and keeps the moments of what passes: queries and keys of rows at positions >= start.

    queries: [layers, Hkv, D, D] sum of q qᵀ over a KV head's query heads; keys: [layers, Hkv, D, D] and key_sums: [layers, Hkv, D].
    """

    def __init__(self, config: ModelConfig, inner: Attention, start: int) -> None:
        c = config
        self._inner, self._start, self._kv_heads = inner, start, c.kv_heads
        self.queries = torch.zeros(c.layers, c.kv_heads, c.head_dim, c.head_dim)
        self.keys = torch.zeros_like(self.queries)
        self.key_sums = torch.zeros(c.layers, c.kv_heads, c.head_dim)
        self.counts = torch.zeros(c.layers)

    def attend(self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rows: Rows) -> torch.Tensor:
        """See `engine.attention.sequence.Attention`."""
        chosen = rows.positions >= self._start
        queries = (
            q[chosen].view(-1, self._kv_heads, q.shape[1] // self._kv_heads, q.shape[2]).transpose(0, 1).flatten(1, 2)
        )  # [Hkv, n * group, D]
        keys = k[chosen].float().transpose(0, 1)
        self.queries[layer] += (queries.transpose(1, 2) @ queries).cpu()
        self.keys[layer] += (keys.transpose(1, 2) @ keys).cpu()
        self.key_sums[layer] += keys.sum(1).cpu()
        self.counts[layer] += int(chosen.sum())
        return self._inner.attend(layer, q, k, v, rows)

    def read(self, decoder: Decoder, ids: list[int], before_layer: Callable[[], None] | None = None) -> Sequence:
        """Have the decoder read these; gives the sequence that has."""
        sequence = Sequence((), Tail(decoder.config, decoder.dtype, len(ids)))
        prefill(decoder, sequence, ids, self, before_layer)
        return sequence

    def spread(self, config: ModelConfig, furthest: int) -> None:
        """As if the text stood at so many places, from where it was read to `furthest` positions later."""
        moves = torch.linspace(0, max(0, furthest), _PLACES).int().tolist()
        for layer in range(config.layers):
            kind = config.kind(layer)
            if kind == "nope":
                continue
            axes = torch.eye(config.head_dim)[None]
            turns = torch.cat([rotate(axes, *turn(config, kind, by)) for by in moves])  # [places, D, D], for rows from the left
            for moments in (self.queries, self.keys):
                moments[layer] = torch.einsum("pdi,hde,pej->hij", turns, moments[layer], turns) / len(moves)
            self.key_sums[layer] = self.key_sums[layer] @ turns.mean(0)


def fit(moments: Moments, layout: Layout) -> list[Projection]:
    """One projection a layer."""
    return [_fitted(*of_layer, layout) for of_layer in zip(moments.queries, moments.keys, moments.key_sums, moments.counts, strict=True)]


def _fitted(queries: torch.Tensor, keys: torch.Tensor, key_sums: torch.Tensor, count: torch.Tensor, layout: Layout) -> Projection:
    n, dim = count.double(), keys.shape[-1]
    centres = key_sums.double() / n
    spread = keys.double() / n - centres[:, :, None] * centres[:, None, :]
    identity = torch.eye(dim, dtype=torch.float64)
    asked = queries.double()
    asked = asked / asked.diagonal(dim1=1, dim2=2).mean(-1)[:, None, None].clamp_min(1e-30) + _RIDGE * identity
    sizes, axes = torch.linalg.eigh(asked)
    root, inverse = (axes @ torch.diag_embed(sizes.clamp_min(_RIDGE / 2) ** power) @ axes.mT for power in (0.5, -0.5))
    variances, turned = torch.linalg.eigh(root @ spread @ root)  # ascending
    take = min(layout.coordinates, dim)
    deviations = variances.flip(-1)[:, :take].clamp_min(1e-12).sqrt()
    turned = turned.flip(-1)[:, :, :take]
    bits = torch.cat([torch.full((32 // each,), _STEPS[each], dtype=torch.float64) for each in layout.bits()])[:take]
    steps = deviations * bits
    maps = [root @ turned / steps[:, None], inverse @ turned * steps[:, None]]
    padded = [torch.nn.functional.pad(each, (0, layout.coordinates - take)).float().contiguous() for each in maps]
    return Projection(layout, centres.float().contiguous(), *padded)
