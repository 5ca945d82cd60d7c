"""`bench decode --mode`: a token in each mode, behind contexts of any length.

Contexts are for timing: the parts of a real text, read once, stand behind one another as often as it takes, their keys turned to
where they stand. What the model would say behind them means nothing past its window; what it reads is as much as there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import torch

from engine.answering.modes import sampled_behind
from engine.attention.estimated import AUDIT_EVERY
from engine.attention.exact import Exact
from engine.attention.in_memory import InMemory, moved
from engine.attention.sequence import KV, Attention, Rows, Tail
from engine.attention.sequence import Sequence as Read
from engine.errors import LongshelfError
from engine.evaluation.ours import handbook_ids, read_ids
from engine.evaluation.report import Report, timed
from engine.model.decoder import Decoder
from engine.retrieval import sketches
from kernels.sketch import Projection

if TYPE_CHECKING:
    from engine.model.loaded import LoadedModel

REPEATS = 5
BLOCK = 1024
"""Tokens of a block of the chain, as a stored segment has."""
QUESTION = 16
"""Tokens of the question that is read behind each context."""


def bench_modes(model: LoadedModel, contexts: Sequence[int], part_tokens: int, modes: Sequence[str], say: Callable[[str], None]) -> Report:
    """Figures sampled_vs_exact_8k, … (above 1: sampled is faster, its audits included), and ms and error for each context.

    contexts: tokens; part_tokens: of each part. Raises LongshelfError("usage") for what can't be timed.
    """
    from engine.retrieval import projections

    config = model.config
    if not 0 < part_tokens <= config.window - len(model.card.preamble.ids):
        raise LongshelfError("usage", f"--part-tokens is {part_tokens}; the model's window holds {config.window}.")
    settings = {"model": model.name, "contexts": list(contexts), "part_tokens": part_tokens, "modes": list(modes), "steps": AUDIT_EVERY}
    settings |= {"repeats": REPEATS, "text": "the handbook's parts, repeated, keys turned to where they stand"}
    report = Report("decode", settings)
    decoder = Decoder(replace(config, window=max(contexts) + AUDIT_EVERY + QUESTION + 2), model.decoder.weights)
    say(f"reading {part_tokens} tokens")
    preamble, part = _read(model, part_tokens)
    made = projections.of(model, lambda: None).layers
    for context in contexts:
        say(f"decoding behind {context} tokens")
        chain = _repeated(model, preamble, part, context)
        known = {id(kv): sketches.Sketch(list(sketches.make(kv, made))) for kv in chain[1:]} if "sampled" in modes else {}
        _time(report, decoder, chain, known, made, modes, context)
        name = f"{round(context / 1024)}k"
        for mode in modes:
            report.figures[f"{mode}_ms_{name}"] = 1e3 * report.median("seconds", mode=mode, context=context)
        if {"exact", "sampled"} <= {*modes}:
            report.figures[f"sampled_vs_exact_{name}"] = report.figures[f"exact_ms_{name}"] / report.figures[f"sampled_ms_{name}"]
            report.figures[f"sampled_error_{name}"] = report.median("error", mode="sampled", context=context)
            report.figures[f"bytes_read_{name}"] = report.median("bytes_fraction", mode="sampled", context=context)
    return report


def _read(model: LoadedModel, part_tokens: int) -> tuple[InMemory, list[InMemory]]:
    """(preamble, the segments of one part behind it)."""
    before = len(model.card.preamble.ids)
    kv = read_ids(model, [*model.card.preamble.ids, *handbook_ids(model, part_tokens)]).tail.kv
    ends = [*range(before, before + part_tokens, BLOCK), before + part_tokens]
    return InMemory(kv[:, :, :, :before]), [InMemory(kv[:, :, :, low:high]) for low, high in pairwise(ends)]


def _repeated(model: LoadedModel, preamble: InMemory, part: Sequence[InMemory], context: int) -> list[KV]:
    """The part behind the preamble as often as it takes to fill the context; the last time cut off."""
    chain: list[KV] = [preamble]
    length, by = preamble.tokens, 0
    while length < context:
        for segment in part:
            if take := min(segment.tokens, context - length):
                chain.append(moved(model.config, InMemory(segment.kv[:, :, :, :take]), by))
                length += take
        by += sum(segment.tokens for segment in part)
    return chain


def _time(
    report: Report,
    decoder: Decoder,
    chain: Sequence[KV],
    known: dict[int, sketches.Sketch],
    made: Sequence[Projection],
    modes: Sequence[str],
    context: int,
) -> None:
    sequence = Read(chain, Tail(decoder.config, decoder.dtype, QUESTION + 1 + AUDIT_EVERY))
    for repeat in range(REPEATS):
        for mode in modes:
            sequence.tail.cut(0)
            exact = Exact(decoder.config, range(decoder.config.layers) if mode == "sampled" else ())
            exact.watch((context, context))  # its only group is that of the question
            _step(decoder, sequence, exact, torch.arange(100, 100 + QUESTION))
            sampled = sampled_behind(exact, chain, made, known, 1.0, repeat) if mode == "sampled" else None
            attention = sampled or exact
            _step(decoder, sequence, attention, torch.tensor([1]))  # its lists of blocks are made once an answer
            before = attention.bytes_read
            seconds = timed(lambda: _decode(decoder, sequence, attention)) / AUDIT_EVERY  # noqa: B023
            everything = sum(context + QUESTION + 1 + n for n in range(1, AUDIT_EVERY + 1)) * decoder.config.kv_bytes_per_token
            report.add(
                mode=mode,
                context=context,
                repeat=repeat,
                seconds=seconds,
                bytes_fraction=(attention.bytes_read - before) / everything,
                error=sampled.error_measured if sampled else 0.0,
            )


def _decode(decoder: Decoder, sequence: Read, attention: Attention) -> None:
    token = torch.tensor([1])
    for _ in range(AUDIT_EVERY):
        token = _step(decoder, sequence, attention, token).argmax(-1)


def _step(decoder: Decoder, sequence: Read, attention: Attention, ids: torch.Tensor) -> torch.Tensor:
    rows = Rows([(sequence, len(ids))])
    logits = decoder.forward(ids, rows, attention, slice(-1, None))
    rows.advance()
    return logits
