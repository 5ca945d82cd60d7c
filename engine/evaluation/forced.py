"""A text that was read, and what is said behind it token by token, whoever reads: exact attention, or an estimate beside it.

The same tokens are forced on every way of reading, so that their distributions compare position by position. Up to 16 rows stand in
a call: each reads and draws on its own, as if alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch

from engine.attention.exact import Exact
from engine.attention.in_memory import InMemory
from engine.attention.sequence import KV, Attention, Rows
from engine.attention.sequence import Sequence as Read
from engine.attention.tail import Tail
from engine.evaluation.ours import read_ids
from engine.model.loaded import LoadedModel
from engine.model.prefill import prefill
from engine.reading.memory import SEGMENT
from kernels.cpu import FEW


class Stage:
    """A text that was read once. chain: the preamble, then segments as the store has them."""

    def __init__(self, model: LoadedModel, text: list[int]) -> None:
        self.model = model
        preamble = list(model.card.preamble.ids)
        kv = read_ids(model, [*preamble, *text]).tail.kv
        total = len(preamble) + len(text)
        ends = [0, *range(len(preamble), total, SEGMENT), total]
        self.chain: list[KV] = [InMemory(kv[:, :, :, low:high]) for low, high in pairwise(ends)]
        self.tokens = total

    def sequence(self, room: int) -> Read:
        """The text with a tail of its own."""
        return Read(self.chain, Tail(self.model.config, self.model.decoder.dtype, room))

    def watching(self, sequence: Read) -> Exact:
        """Who reads exactly and watches all layers from here on."""
        exact = Exact(self.model.config, range(self.model.config.layers))
        exact.watch((sequence.length, sequence.length))
        return exact

    def ask(self, sequence: Read, ids: list[int], exact: Exact) -> torch.Tensor:
        """Read ids as a question is read; gives the logits [V] behind the last."""
        return prefill(self.model.decoder, sequence, ids, exact)

    def say(self, sequence: Read, ids: Sequence[int], attention: Attention) -> torch.Tensor:
        """Read ids; gives the logits [n, V] behind each."""
        found = [torch.empty(0, self.model.config.vocab)]
        for start in range(0, len(ids), FEW):
            some = ids[start : start + FEW]
            rows = Rows([(sequence, len(some))])
            found.append(self.model.decoder.forward(torch.tensor(some), rows, attention, slice(None)))
            rows.advance()
        return torch.cat(found)

    def everything(self, start: int, rows: int) -> int:
        """Bytes that `rows` rows from position `start` on take, each read alone and exactly."""
        return sum(start + n for n in range(1, rows + 1)) * self.model.config.kv_bytes_per_token


class Beside:
    """Reads as `inner` does, and measures how far from exact each layer's output is, given the same queries.

    errors: of each layer, [rows, heads] a call: |inner - exact| / |exact|.
    """

    def __init__(self, inner: Attention, exact: Exact) -> None:
        self._inner, self._exact = inner, exact
        self.errors: list[list[torch.Tensor]] = [[] for _ in range(exact.config.layers)]

    def attend(self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rows: Rows) -> torch.Tensor:
        """See `engine.attention.sequence.Attention`."""
        wanted = self._exact.attend(layer, q, k, v, rows).clone()
        out = self._inner.attend(layer, q, k, v, rows)
        self.errors[layer].append((out - wanted).norm(dim=-1) / wanted.norm(dim=-1).clamp_min(1e-30))
        return out

    def means(self) -> list[float]:
        return [round(float(torch.cat(errors).mean()), 4) if errors else 0.0 for errors in self.errors]
