"""Prefill: a run of tokens read in chunks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from engine.attention.sequence import Attention, Rows
from engine.attention.sequence import Sequence as Read
from engine.model.decoder import CHUNK, Decoder


def prefill(
    decoder: Decoder, sequence: Read, ids: Sequence[int], attention: Attention, between_layers: Callable[[], None] | None = None
) -> torch.Tensor:
    """Read `ids` onto the tail; gives the logits [V] behind the last one."""
    logits = torch.empty(0)
    for start in range(0, len(ids), CHUNK):
        chunk = ids[start : start + CHUNK]
        rows = Rows([(sequence, len(chunk))])
        last = start + len(chunk) == len(ids)
        logits = decoder.forward(torch.tensor(chunk), rows, attention, slice(-1, None) if last else None, between_layers)
        rows.advance()
    return logits[0]
