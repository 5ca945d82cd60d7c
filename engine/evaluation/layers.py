"""One layer's keys, values and queries behind a context of any length: made of pinned numbers, or those of a real model's layer.

Pinned: keys are a mean and a cone around it, as large as one another, queries point away from the mean and give logits a standard
deviation of 2. Every direction of the cone is as good as another, which is the hardest that a sketch can meet: no few coordinates say
most. Values are a mean and a spread 1.6 times as large: so far, in the middle, lie the values that a head of the default model weighs from
what it gives (median of ten of its layers, of 3,000 tokens of the handbook; .9 to 2.3).

Real: a layer of an installed model has read the handbook; behind its preamble what it read is repeated as often as it takes, keys
turned to where they stand. Its queries are those of the tokens that come next.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch

from engine.attention.exact import Exact
from engine.attention.in_memory import InMemory, moved, turn
from engine.attention.sequence import KV, Attention, Rows, Tail
from engine.attention.sequence import Sequence as Read
from engine.evaluation.contexts import BLOCK, QUESTION, SINK
from engine.evaluation.ours import handbook_ids
from engine.evaluation.shapes import shape
from engine.model.config import ModelConfig
from engine.model.prefill import prefill
from engine.retrieval import projections, sketches
from engine.retrieval.fitting import Moments, fit, layout_for
from kernels.reference import rotate
from kernels.sketch import Projection

if TYPE_CHECKING:
    from engine.model.loaded import LoadedModel

LOGIT_SD = 2.0
VALUE_SPREAD = 1.6
FITTED_ON = 2048
"""Pinned tokens that a projection is fitted on: others than those that are read."""
_PART = 7000
"""Tokens of the handbook that a real layer reads, if its model's window holds them."""


@dataclass(frozen=True)
class OneLayer:
    """config: of one layer. chain: a preamble, then blocks as large as stored segments; known: their sketches by id.

    q [N, Hq, D] float32 and k, v [N, Hkv, D] bf16: rows that stand behind the chain, QUESTION of them a question.
    """

    name: str
    config: ModelConfig
    chain: list[KV]
    projection: Projection
    known: Mapping[int, sketches.Sketch]
    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor

    def packed(self) -> torch.Tensor:
        """[2, Hkv, T, D]: the chain in one run."""
        return torch.cat([torch.stack([kv.key(0), kv.value(0)]) for kv in self.chain], 2)


class Cone:
    """Pinned keys, values and queries of a shape."""

    def __init__(self, config: ModelConfig, seed: int) -> None:
        self.config, self._draw = config, torch.Generator().manual_seed(seed)
        self._key_mean, self._value_mean = (self._mean() for _ in range(2))

    def _mean(self) -> torch.Tensor:
        mean = self._normal(self.config.kv_heads, 1, self.config.head_dim)
        return torch.nn.functional.normalize(mean, dim=-1) * math.sqrt(self.config.head_dim)

    def _normal(self, *size: int) -> torch.Tensor:
        return torch.randn(*size, generator=self._draw)

    def kv(self, tokens: int) -> torch.Tensor:
        """[2, Hkv, T, D] bf16."""
        c = self.config
        made = self._normal(2, c.kv_heads, tokens, c.head_dim)
        made[0] += self._key_mean
        made[1] = made[1] * VALUE_SPREAD + self._value_mean
        return made.to(torch.bfloat16)

    def queries(self, rows: int) -> torch.Tensor:
        """[N, Hq, D]: at an angle of 45 degrees or more to the mean of the keys, on the other side of it."""
        c = self.config
        away = self._normal(rows, c.kv_heads, c.group, c.head_dim) - self._key_mean
        return (torch.nn.functional.normalize(away, dim=-1) * (LOGIT_SD / c.scale)).view(rows, c.heads, c.head_dim)


def pinned(shape_name: str, context: int, rows: int, seed: int = 0) -> OneLayer:
    """A layer of a shape. rows: those that are decoded. Raises LongshelfError("usage") for an unknown shape."""
    config = replace(shape(shape_name), layers=1, window=context + QUESTION + rows)
    cone = Cone(config, seed)
    projection = _fitted(cone)
    sizes = [SINK] + [min(BLOCK, context - at) for at in range(SINK, context, BLOCK)]
    chain: list[KV] = [InMemory(cone.kv(size)[None]) for size in sizes]
    k, v = cone.kv(QUESTION + rows).transpose(1, 2)
    return OneLayer(shape_name, config, chain, projection, _sketched(chain, projection), cone.queries(QUESTION + rows), k, v)


def _fitted(cone: Cone) -> Projection:
    """As the product fits one: on queries and keys of some text."""
    config = replace(cone.config, window=FITTED_ON)
    moments = Moments(config, Exact(config), 0)
    k, v = cone.kv(FITTED_ON).transpose(1, 2)
    moments.attend(0, cone.queries(FITTED_ON), k, v, Rows([(Read((), Tail(config, k.dtype, FITTED_ON)), FITTED_ON)]))
    return fit(moments, layout_for(config.head_dim))[0]


def _sketched(chain: list[KV], projection: Projection) -> dict[int, sketches.Sketch]:
    return {id(kv): sketches.Sketch(list(sketches.make(kv, [projection]))) for kv in chain[1:]}


class RealLayer:
    """The middle layer of a model, or the next one that sees everything, once it has read. behind(context): it behind a context, none
    shorter than `shortest`."""

    def __init__(self, model: LoadedModel, rows: int, shortest: int) -> None:
        c, self._before = model.config, len(model.card.preamble.ids)
        self.index = next(layer for layer in [*range(c.layers // 2, c.layers), *range(c.layers)] if not c.window_of(layer))
        self.name = f"{model.name}, layer {self.index}"
        kinds = (c.kind(self.index),) if c.layer_kinds else ()
        self._config = replace(c, layers=1, layer_kinds=kinds)
        self._rows, self._projection = QUESTION + rows, projections.of(model, lambda: None).layers[self.index]
        part = min(_PART, c.window - self._before - self._rows, shortest - self._before)
        ids = [*model.card.preamble.ids, *handbook_ids(model, part + self._rows)]
        seen = _Seen(model.exact(), self.index, self._rows)
        sequence = Read((), Tail(c, model.decoder.dtype, len(ids)))
        prefill(model.decoder, sequence, ids, seen)
        self._kv = sequence.tail.kv[self.index : self.index + 1, :, :, : len(ids)].clone()
        self._q, self._part = seen.q, part

    def behind(self, context: int) -> OneLayer:
        config = replace(self._config, window=context + self._rows)
        first, end = self._before, self._before + self._part
        chain: list[KV] = [InMemory(self._kv[:, :, :, :first])]
        length = first
        while length < context:
            at = first + (length - first) % self._part
            take = min(BLOCK, end - at, context - length)
            chain.append(moved(config, InMemory(self._kv[:, :, :, at : at + take].contiguous()), length - at))
            length += take
        last = moved(config, InMemory(self._kv[:, :, :, end:]), context - end)
        q = self._q if config.kind(0) == "nope" else rotate(self._q, *turn(config, config.kind(0), context - end))
        k, v = last.key(0).transpose(0, 1), last.value(0).transpose(0, 1)
        return OneLayer(self.name, config, chain, self._projection, _sketched(chain, self._projection), q, k, v)


class _Seen:
    """Reads as `inner` does and keeps the queries [rows, Hq, D] of one layer's last rows."""

    def __init__(self, inner: Attention, layer: int, rows: int) -> None:
        self._inner, self._layer, self._rows = inner, layer, rows
        self.q = torch.empty(0)

    def attend(self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rows: Rows) -> torch.Tensor:
        if layer == self._layer:
            self.q = torch.cat([self.q, q.cpu()])[-self._rows :] if self.q.numel() else q.cpu()[-self._rows :].clone()
        return self._inner.attend(layer, q, k, v, rows)
