"""`bench decode --stages`: where the time of one of our decode steps goes.

Three things are timed in turn on the same sequence: a whole step; its products alone (every matrix of the model and the head, in order);
its attention alone (every layer). What is left of the step is the rest: norms, rotation, activation, writing KV, Python.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from engine.attention.exact import Exact
from engine.attention.sequence import Rows, Sequence
from engine.evaluation.ours import decoding, handbook_ids, read_ids
from engine.evaluation.report import Report, timed
from engine.model.loaded import LoadedModel
from kernels import cpu

STEPS = 8


def add_stages(report: Report, model: LoadedModel, context: int, repeats: int) -> None:
    """Figures step_ms_N, products_ms_N, attention_ms_N and rest_share_N (of the step) behind N tokens."""
    sequence = read_ids(model, handbook_ids(model, context))
    work: dict[str, Callable[[], None]] = {
        "step": decoding(model, sequence, STEPS),
        "products": _Products(model),
        "attention": _Attention(model, sequence),
    }
    for side in work.values():
        side()
    for repeat in range(repeats):
        for stage, side in work.items():
            report.add(context=context, stage=stage, repeat=repeat, seconds=timed(side) / STEPS)
    seconds = {stage: report.median("seconds", context=context, stage=stage) for stage in work}
    for stage, value in seconds.items():
        report.figures[f"{stage}_ms_{context}"] = 1e3 * value
    report.figures[f"rest_share_{context}"] = 1 - (seconds["products"] + seconds["attention"]) / seconds["step"]


class _Products:
    """Every product of a step."""

    def __init__(self, model: LoadedModel) -> None:
        weights = model.decoder.weights
        linears = [linear for layer in weights.layers for linear in (layer.qkv, layer.out, layer.gate, layer.up, layer.down)]
        self._calls = [(torch.randn(1, linear.columns), linear.matrix) for linear in (*linears, weights.head)]

    def __call__(self) -> None:
        for _ in range(STEPS):
            for x, matrix in self._calls:
                cpu.linear(x, matrix)


class _Attention:
    """The attention of a step, its KV written as a step does."""

    def __init__(self, model: LoadedModel, sequence: Sequence) -> None:
        c = model.config
        self._layers, self._sequence, self._attention = c.layers, sequence, Exact(c)
        self._q = torch.randn(1, c.heads, c.head_dim)
        self._kv = torch.randn(1, c.kv_heads, c.head_dim).to(model.decoder.dtype)

    def __call__(self) -> None:
        for _ in range(STEPS):
            rows = Rows([(self._sequence, 1)])
            for layer in range(self._layers):
                self._attention.attend(layer, self._q, self._kv, self._kv, rows)
