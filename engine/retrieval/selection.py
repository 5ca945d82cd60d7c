"""Which keys of a chain a row reads and what each weighs: the one interface of every way of choosing them.

A selector is made for one chain. What it gives is ids and log weights: a key's logit gets its log weight on top, -ln of the
probability with which it was drawn (MagicPIG, arXiv:2410.16179), and the softmax over what was drawn estimates that over all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch


@dataclass(frozen=True)
class Selection:
    """Of one row in one layer, a list entry for each KV head: ids [n] int32, ascending positions in the chain that a head of the
    group reads; log_weights [G, n] float32, -inf where this query head doesn't use the key.

    index_bytes: of index, sketch or keys that were read in order to choose.
    """

    ids: Sequence[torch.Tensor]
    log_weights: Sequence[torch.Tensor]
    index_bytes: int

    @property
    def rows(self) -> int:
        """Rows of K and V that are read, summed over KV heads: each once, whatever the number of heads that use it."""
        return sum(ids.numel() for ids in self.ids)

    @property
    def keys(self) -> int:
        """Keys that are used, summed over query heads."""
        return sum(int((weights > -torch.inf).sum()) for weights in self.log_weights)


class Selector(Protocol):
    """Chooses among the keys of one chain that are `open`: those that are read anyway are for nobody to draw."""

    def select(self, layer: int, q: torch.Tensor, position: int) -> Selection:
        """q: [Hkv, G, D] float32, after RoPE; position: of the row, for draws that are made anew at each."""
        ...


def from_dense(log_weights: torch.Tensor, index_bytes: int) -> Selection:
    """From log weights [Hkv, G, T] of every key of a chain, -inf where it isn't drawn."""
    ids = [(of_head > -torch.inf).any(0).nonzero().flatten().int() for of_head in log_weights]
    weights = [of_head[:, chosen.long()] for of_head, chosen in zip(log_weights, ids, strict=True)]
    return Selection(ids, weights, index_bytes)
