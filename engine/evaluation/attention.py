"""`bench attention`: attention of one decoded row in one layer, exact and sampled, all cores, keys and values in bf16.

Exact reading is held against the speed of memory and against torch; sampled reading, as answers use it (`sampled_behind` with its default
numbers), against exact reading. A sampled row's time has all stages in it and Python's too; what audits add is not: one token in 32 is
read exactly beside it. Its error is |sampled - exact| / |exact| of each query head's output, the mean over heads of the rows timed.
Everything is measured in turn, once a repeat, each repeat with a row of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from engine.answering.modes import sampled_behind
from engine.attention.exact import Exact
from engine.attention.sequence import Attention, Rows, Tail
from engine.attention.sequence import Sequence as Read
from engine.errors import LongshelfError
from engine.evaluation.contexts import QUESTION
from engine.evaluation.layers import LOGIT_SD, VALUE_SPREAD, OneLayer, RealLayer, pinned
from engine.evaluation.report import Report, timed
from engine.evaluation.shapes import shape
from engine.evaluation.stages_sampled import sampled_stages
from engine.evaluation.yardsticks import Torch, readings
from engine.model.loaded import LoadedModel
from engine.placement import memory_here

CONTEXTS = (32768, 131072)
SHAPE = "llama-3.1-8b"
REPEATS, QUICK_REPEATS = 11, 3
SEED = 0
_BESIDE = 1_500_000_000
"""Bytes that a measurement takes beside keys and values."""


def bench_attention(
    shape_name: str, contexts: Sequence[int], model: LoadedModel | None, say: Callable[[str], None], quick: bool = False
) -> Report:
    """Figures of each context, of pinned keys of the shape: read_gbps_32k, dense_ms_32k, dense_gbps_32k, dense_bandwidth_fraction_32k,
    dense_vs_torch_32k (above 1: ours is faster than torch's best), sampled_ms_32k, sampled_speedup_32k, sampled_output_error_32k, …; of
    all contexts the worst: dense_bandwidth_fraction, dense_vs_torch, sampled_output_error. With a model the same of one of its layers, as
    layer_dense_ms_32k, … . Raises LongshelfError("usage") and ("not_enough_memory")."""
    repeats = QUICK_REPEATS if quick else REPEATS
    _check(shape_name, contexts)
    settings: dict[str, Any] = {"shape": shape_name, "contexts": list(contexts), "dtype": "bfloat16", "repeats": repeats, "quick": quick}
    settings["keys"] = f"mean + cone, logit sd {LOGIT_SD:g}"
    settings["values"] = f"mean + {VALUE_SPREAD:g} times as large a spread"
    report = Report("attention", settings, [SEED])
    layer = RealLayer(model, repeats, min(contexts)) if model else None
    settings["layer"] = layer.name if layer else None
    for context in contexts:
        say(f"{shape_name} behind {context} tokens")
        _measure(report, "pinned", pinned(shape_name, context, repeats, SEED), context, repeats, say)
        if layer:
            say(f"{layer.name} behind {context} tokens")
            _measure(report, "layer", layer.behind(context), context, repeats, say)
    for keys, prefix in (("pinned", ""), ("layer", "layer_")) if layer else (("pinned", ""),):
        for context in contexts:
            _figures(report, keys, prefix, context)
        names = [f"{round(context / 1024)}k" for context in contexts]
        for worst, figure in ((min, "dense_bandwidth_fraction"), (min, "dense_vs_torch"), (max, "sampled_output_error")):
            report.figures[prefix + figure] = worst(report.figures[f"{prefix}{figure}_{name}"] for name in names)
    return report


def _check(shape_name: str, contexts: Sequence[int]) -> None:
    config = shape(shape_name)
    if least := [context for context in contexts if context < 1024]:
        raise LongshelfError("usage", f"--context is {least[0]}; attention is measured behind 1024 tokens or more.")
    of_layer = max(contexts) * config.kv_bytes_per_token // config.layers
    needed, available = 4 * of_layer + _BESIDE, memory_here()[0]  # in blocks, packed, and packed as float32
    if needed > available:
        message = f"A layer of {shape_name} behind {max(contexts)} tokens takes {needed / 1e9:.1f} GB; {available / 1e9:.1f} GB are free."
        raise LongshelfError("not_enough_memory", message, "Take a smaller shape or a shorter context.")


@torch.inference_mode()
def _measure(report: Report, keys: str, layer: OneLayer, context: int, repeats: int, say: Callable[[str], None]) -> None:
    """Rows {keys, context, what, way, repeat, seconds, bytes}, those of sampled reading with an error and a share of the bytes; and
    one row a stage of it."""
    sequence = Read(layer.chain, Tail(layer.config, layer.k.dtype, len(layer.q)))
    asking, dense = Exact(layer.config, (0,)), Exact(layer.config)
    asking.watch((sequence.length, sequence.length))
    question = Rows([(sequence, QUESTION)])
    asking.attend(0, layer.q[:QUESTION], layer.k[:QUESTION], layer.v[:QUESTION], question)
    question.advance()
    sampled = sampled_behind(asking, layer.chain, [layer.projection], layer.known, 1.0, SEED, audit_every=0)
    kv = layer.packed()
    reading, theirs = readings(kv), Torch(kv)
    whole = kv.numel() * kv.element_size()
    where = {"keys": keys, "context": context}
    for repeat in range(-1, repeats):  # one to warm up
        row = slice(QUESTION + max(0, repeat), QUESTION + max(0, repeat) + 1)
        rows, outs = Rows([(sequence, 1)]), dict[str, torch.Tensor]()
        work: list[tuple[str, str, Callable[[], object]]] = [("read", way, read) for way, read in reading.items()]
        work += [("torch", way, attend) for way, attend in theirs.ways(layer.q[row][0]).items()]
        work += [(what, "longshelf", _ours(what, by, layer, row, rows, outs)) for what, by in (("dense", dense), ("sampled", sampled))]
        for what, way, do in work:
            before = sampled.bytes_read
            seconds, more = timed(do), {"bytes": float(whole)}
            if what == "sampled":
                off = (outs["sampled"] - outs["dense"]).norm(dim=-1) / outs["dense"].norm(dim=-1)
                more = {"bytes": sampled.bytes_read - before, "error": float(off.mean())}
            if repeat >= 0:
                report.add(**where, what=what, way=way, repeat=repeat, seconds=seconds, **more)
        if repeat >= 0:
            rows.advance()
    for stage in sampled_stages(sampled, layer, sequence, dense):
        report.add(**where, what="stage", **stage)
        say(f"  {stage['way']:<10} {1e3 * stage['seconds']:8.3f} ms {stage['bytes'] / 1e6:9.2f} MB {stage['gbps']:7.1f} GB/s")


def _ours(what: str, by: Attention, layer: OneLayer, row: slice, rows: Rows, outs: dict[str, torch.Tensor]) -> Callable[[], object]:
    """What has the row read, and keeps what it gives."""
    q, k, v = layer.q[row], layer.k[row], layer.v[row]

    def read() -> None:
        outs[what] = by.attend(0, q, k, v, rows)

    return read


def _figures(report: Report, keys: str, prefix: str, context: int) -> None:
    where, name, figures = {"keys": keys, "context": context}, f"{round(context / 1024)}k", report.figures

    def best(what: str) -> float:
        ways = {row["way"] for row in report.rows if row["what"] == what}
        return min(report.median("seconds", **where, what=what, way=way) for way in ways)

    whole = report.median("bytes", **where, what="dense")
    dense, sampled = best("dense"), best("sampled")
    figures[f"{prefix}read_gbps_{name}"] = whole / best("read") / 1e9
    figures[f"{prefix}dense_ms_{name}"] = 1e3 * dense
    figures[f"{prefix}dense_gbps_{name}"] = whole / dense / 1e9
    figures[f"{prefix}dense_bandwidth_fraction_{name}"] = best("read") / dense
    figures[f"{prefix}dense_vs_torch_{name}"] = best("torch") / dense
    figures[f"{prefix}sampled_ms_{name}"] = 1e3 * sampled
    figures[f"{prefix}sampled_speedup_{name}"] = dense / sampled
    figures[f"{prefix}sampled_bytes_{name}"] = report.median("bytes", **where, what="sampled") / whole
    errors = [row["error"] for row in report.rows if row["what"] == "sampled" and row["keys"] == keys and row["context"] == context]
    figures[f"{prefix}sampled_output_error_{name}"] = sum(errors) / len(errors)
