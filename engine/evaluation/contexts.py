"""`bench decode --mode`: a token in each mode, behind contexts of any length, of an installed model or of a shape with random weights.

Contexts are for timing: the parts of a real text, read once, stand behind one another as often as it takes, their keys turned to
where they stand. What the model would say behind them means nothing past its window; what it reads is as much as there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch

import resources
from engine.answering.modes import sampled_behind
from engine.attention.estimated import AUDIT_EVERY
from engine.attention.in_memory import InMemory, moved
from engine.attention.sequence import KV, Attention, Rows, Tail
from engine.attention.sequence import Sequence as Read
from engine.errors import LongshelfError
from engine.evaluation.ours import handbook_ids
from engine.evaluation.report import Report, timed
from engine.evaluation.shapes import random_tensors, shape, weights_bytes, words_as_ids
from engine.model.config import ModelConfig
from engine.model.decoder import Decoder
from engine.model.prefill import prefill
from engine.model.weights import build
from engine.placement import Placement, memory_here
from engine.retrieval import sketches
from engine.retrieval.fitting import Moments, fit, layout_for
from kernels.sketch import Projection

if TYPE_CHECKING:
    from engine.model.loaded import LoadedModel

REPEATS = 5
BLOCK = 1024
"""Tokens of a block of the chain, as a stored segment has."""
QUESTION = 16
"""Tokens of the question that is read behind each context."""
SINK = 4
"""Tokens that stand before the text of a shape as a preamble does: what a text starts with is read whole."""
_BESIDE = 2_000_000_000
"""Bytes that a measurement takes beside weights and KV: the program, sketches, buffers."""


@dataclass(frozen=True)
class Subject:
    """What is timed. ids: of the text, behind those of the preamble; projections: those of an installed model, None: fitted on the text;
    dense: layers that are read whole."""

    name: str
    decoder: Decoder
    placement: Placement
    preamble: list[int]
    ids: list[int]
    projections: Sequence[Projection] | None = None
    dense: Collection[int] = ()

    @property
    def config(self) -> ModelConfig:
        return self.decoder.config


def of_model(model: LoadedModel, contexts: Sequence[int], part_tokens: int, modes: Sequence[str], kv: str = "auto") -> Subject:
    """An installed model where it lies. Raises LongshelfError("usage") for a part that its window doesn't hold."""
    from engine.model import calibration
    from engine.retrieval import projections

    config, preamble = model.config, list(model.card.preamble.ids)
    if not 0 < part_tokens <= config.window - len(preamble):
        raise LongshelfError("usage", f"--part-tokens is {part_tokens}; the model's window holds {config.window}.")
    decoder = Decoder(_wide(config, contexts), model.decoder.weights)
    held = Placement(model.placement.device.kind, config, 0, kv=kv)  # the weights are there already
    made = projections.of(model, lambda: None).layers if "sampled" in modes else None
    dense = calibration.load(model.installed).dense_layers
    return Subject(model.name, decoder, held, preamble, handbook_ids(model, part_tokens), made, dense)


def of_shape(name: str, device: str, contexts: Sequence[int], part_tokens: int, kv: str = "auto") -> Subject:
    """A shape with random weights. Raises LongshelfError("usage") for an unknown one, ("not_enough_memory") with the numbers, and what
    `Placement` raises."""
    config = shape(name)
    placement = Placement(device, config, weights_bytes(config), kv=kv)
    chains = (max(contexts) + part_tokens) * config.kv_bytes_per_token
    needed = chains + _BESIDE + (0 if placement.device.kind == "cuda" else weights_bytes(config))
    if needed > (available := memory_here()[0]):
        raise LongshelfError(
            "not_enough_memory",
            f"{name} behind {max(contexts)} tokens takes {needed / 1e9:.1f} GB of memory ({chains / 1e9:.1f} GB of KV); "
            f"{available / 1e9:.1f} GB are free.",
            "Take a smaller shape or a shorter context.",
        )
    config = _wide(config, contexts)
    there = placement.weights_on
    decoder = Decoder(config, build(random_tensors(config, there), config, torch.bfloat16, there))
    text = words_as_ids(resources.handbook("en").read_text(encoding="utf-8"), config.vocab)
    ids = (text * ((SINK + part_tokens) // len(text) + 1))[: SINK + part_tokens]
    return Subject(name, decoder, placement, ids[:SINK], ids[SINK:])


def _wide(config: ModelConfig, contexts: Sequence[int]) -> ModelConfig:
    """With a window that these fit into."""
    return replace(config, window=max(contexts) + AUDIT_EVERY + QUESTION + 2)


def bench_modes(
    subject: Subject,
    contexts: Sequence[int],
    modes: Sequence[str],
    say: Callable[[str], None],
    repeats: int = REPEATS,
    steps: int = AUDIT_EVERY,
) -> Report:
    """Figures sampled_vs_exact_8k, … (above 1: sampled is faster, its audits included), and ms and error for each context.

    contexts: tokens; steps: tokens that are decoded, at most AUDIT_EVERY.
    """
    device = subject.placement.device
    settings: dict[str, Any] = {"model": subject.name, "device": device.kind, "hardware": device.name, "contexts": list(contexts)}
    settings |= {"part_tokens": len(subject.ids), "modes": list(modes), "steps": steps, "repeats": repeats}
    settings["text"] = "the handbook's parts, repeated, keys turned to where they stand"
    report = Report("decode", settings)
    say(f"reading {len(subject.ids)} tokens")
    read, made = _read(subject, report, "sampled" in modes)
    for context in contexts:
        say(f"decoding behind {context} tokens")
        chain, known = _repeated(subject, read, context, made if "sampled" in modes else [])
        _time(report, subject, chain, known, made, modes, context, repeats, steps)
        name = f"{round(context / 1024)}k"
        for mode in modes:
            report.figures[f"{mode}_ms_{name}"] = 1e3 * report.median("seconds", mode=mode, context=context)
        if {"exact", "sampled"} <= {*modes}:
            report.figures[f"sampled_vs_exact_{name}"] = report.figures[f"exact_ms_{name}"] / report.figures[f"sampled_ms_{name}"]
            report.figures[f"sampled_error_{name}"] = report.median("error", mode="sampled", context=context)
            report.figures[f"bytes_read_{name}"] = report.median("bytes_fraction", mode="sampled", context=context)
    return report


def _read(subject: Subject, report: Report, fitted: bool) -> tuple[torch.Tensor, Sequence[Projection]]:
    """KV [layers, 2, Hkv, T, D] of preamble and text, on the device, read once; and projections."""
    exact, ids = subject.placement.exact(), [*subject.preamble, *subject.ids]
    fitting = fitted and subject.projections is None
    moments = Moments(subject.config, exact, len(subject.preamble)) if fitting else None
    sequence = Read((), Tail(subject.config, subject.decoder.dtype, len(ids)))
    seconds = timed(lambda: prefill(subject.decoder, sequence, ids, moments or exact))
    report.figures["prefill_tokens_per_s"] = len(ids) / seconds
    made = fit(moments, layout_for(subject.config.head_dim)) if moments else subject.projections or []
    return sequence.tail.kv.to(subject.placement.device.where), made


def _repeated(
    subject: Subject, read: torch.Tensor, context: int, made: Sequence[Projection]
) -> tuple[list[KV], dict[int, sketches.Sketch]]:
    """(a chain of the part behind the preamble as often as it takes to fill the context, the last time cut off; its sketches by id).

    The chain lies in memory; what it is made with, on the device.
    """
    before, there = len(subject.preamble), read.device
    ends = [*range(before, read.shape[3], BLOCK), read.shape[3]]
    made_there = [each.to(there) for each in made]
    chain: list[KV] = [InMemory(read[:, :, :, :before].cpu())]
    known: dict[int, sketches.Sketch] = {}
    length = before
    while length < context:
        by = length - before
        for low, high in pairwise(ends):
            if take := min(high - low, context - length):
                turned = moved(subject.config, InMemory(read[:, :, :, low : low + take]), by)
                chain.append(InMemory(turned.kv.cpu()))
                if made:
                    known[id(chain[-1])] = sketches.Sketch(list(sketches.make(turned, made_there).cpu()))
                length += take
    return chain, known


def _time(
    report: Report,
    subject: Subject,
    chain: Sequence[KV],
    known: dict[int, sketches.Sketch],
    made: Sequence[Projection],
    modes: Sequence[str],
    context: int,
    repeats: int,
    steps: int,
) -> None:
    decoder = subject.decoder
    sequence = Read(chain, Tail(decoder.config, decoder.dtype, QUESTION + 1 + AUDIT_EVERY))
    for repeat in range(repeats):
        for mode in modes:
            sequence.tail.cut(0)
            exact = subject.placement.exact(range(decoder.config.layers) if mode == "sampled" else ())
            exact.watch((context, context))  # its only group is that of the question
            _step(decoder, sequence, exact, torch.arange(100, 100 + QUESTION))
            sampled = sampled_behind(exact, chain, made, known, 1.0, repeat, subject.dense) if mode == "sampled" else None
            attention = sampled or exact
            _step(decoder, sequence, attention, torch.tensor([1]))  # its lists of blocks are made once an answer
            before = attention.bytes_read
            seconds = timed(lambda: _decode(decoder, sequence, attention, steps)) / steps  # noqa: B023
            everything = sum(context + QUESTION + 1 + n for n in range(1, steps + 1)) * decoder.config.kv_bytes_per_token
            report.add(
                mode=mode,
                context=context,
                repeat=repeat,
                seconds=seconds,
                bytes_fraction=(attention.bytes_read - before) / everything,
                error=(sampled.error_measured or 0.0) if sampled else 0.0,
            )


def sampled_decoding(model: LoadedModel, context: int) -> Callable[[], None]:
    """What decodes AUDIT_EVERY tokens, sampled, one of them audited, behind so many tokens of an installed model that are read here, and
    forgets them again."""
    subject = of_model(model, [context], context - len(model.card.preamble.ids), ["sampled"])
    read, made = _read(subject, Report("decode", {}), True)
    chain, known = _repeated(subject, read, context, made)
    decoder = subject.decoder
    sequence = Read(chain, Tail(decoder.config, decoder.dtype, QUESTION + AUDIT_EVERY))
    exact = subject.placement.exact(range(decoder.config.layers))
    exact.watch((context, context))
    _step(decoder, sequence, exact, torch.arange(100, 100 + QUESTION))
    sampled = sampled_behind(exact, chain, made, known, 1.0, 0, subject.dense)

    def run() -> None:
        _decode(decoder, sequence, sampled, AUDIT_EVERY)
        sequence.tail.cut(QUESTION)

    return run


def _decode(decoder: Decoder, sequence: Read, attention: Attention, steps: int) -> None:
    token = torch.tensor([1])
    for _ in range(steps):
        token = _step(decoder, sequence, attention, token).argmax(-1)


def _step(decoder: Decoder, sequence: Read, attention: Attention, ids: torch.Tensor) -> torch.Tensor:
    rows = Rows([(sequence, len(ids))])
    logits = decoder.forward(ids, rows, attention, slice(-1, None))
    rows.advance()
    return logits
