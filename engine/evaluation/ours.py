"""Our side of comparisons with other engines: reading and exact decoding on the bare decoder, without a library or a question."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

import resources
from engine.attention.sequence import Rows, Sequence, Tail
from engine.model.prefill import prefill

if TYPE_CHECKING:
    from engine.model.loaded import LoadedModel


def handbook_text(model: LoadedModel, tokens: int) -> str:
    """About so many tokens of the handbook, repeated."""
    handbook = resources.handbook("en").read_text(encoding="utf-8")
    encoding = model.tokenizer.encode(handbook)
    copies, rest = divmod(tokens, len(encoding))
    return handbook * copies + handbook[: encoding.offsets[rest][0]]


def handbook_ids(model: LoadedModel, count: int) -> list[int]:
    """Exactly so many tokens of the handbook, repeated."""
    ids = model.tokenizer.encode_ids(resources.handbook("en").read_text(encoding="utf-8"))
    return (ids * (count // len(ids) + 1))[:count]


def read_ids(model: LoadedModel, ids: list[int]) -> Sequence:
    """A sequence that has read ids, prefilled on the grid."""
    sequence = Sequence((), Tail(model.config, model.decoder.dtype, len(ids)))
    prefill(model.decoder, sequence, ids, model.exact())
    return sequence


def decoding(model: LoadedModel, sequence: Sequence, steps: int) -> Callable[[], None]:
    """What decodes so many tokens greedily behind the sequence, and forgets them again."""
    attention, length = model.exact(), sequence.tail.length
    sequence.tail.reserve(length + steps)

    def run() -> None:
        token = torch.tensor([1])
        for _ in range(steps):
            rows = Rows([(sequence, 1)])
            logits = model.decoder.forward(token, rows, attention, slice(-1, None))
            rows.advance()
            token = logits.argmax(-1)
        sequence.tail.cut(length)

    return run
