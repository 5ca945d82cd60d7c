"""Where the time of one sampled row goes: what each stage of the native call takes, and how many bytes it reads.

The stages are timed inside the call, beside those that are compared: a clock is looked at some thousand times. What the call takes and
no stage has is the rest: threads that wait for one another, and Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from engine.attention.exact import Exact
from engine.attention.sampled import Sampled
from engine.attention.sequence import Rows
from engine.attention.sequence import Sequence as Read
from engine.evaluation.contexts import QUESTION
from engine.evaluation.layers import OneLayer
from engine.evaluation.report import timed
from kernels import cpu
from kernels.cpu.sampled import STAGES, partial_keys
from kernels.sampling import SAMPLE

REPEATS = 5


def sampled_stages(sampled: Sampled, layer: OneLayer, sequence: Read, dense: Exact) -> list[dict[str, Any]]:
    """Rows {way: stage, seconds, bytes, gbps}, seconds of the median repeat; without the library none.

    Between two of them `dense` reads everything, so that no cache has what is timed.
    """
    if not cpu.native():
        return []
    q, k, v = (each[QUESTION : QUESTION + 1] for each in (layer.q, layer.k, layer.v))
    rows = Rows([(sequence, 1)])
    taken, read = [], 0
    for _ in range(REPEATS):
        dense.attend(0, q, k, v, rows)
        sampled.stages = torch.zeros(len(STAGES), dtype=torch.float64)
        before = sampled.bytes_read
        whole = timed(lambda: sampled.attend(0, q, k, v, rows))
        read = sampled.bytes_read - before
        stages = sampled.stages / torch.get_num_threads()
        taken.append(torch.cat([stages, torch.tensor([whole - float(stages.sum())], dtype=torch.float64)]))
    sampled.stages = None
    median = torch.stack(taken).median(0).values.tolist()
    bytes_of = _bytes(layer, sequence, read)
    return [
        {"way": stage, "seconds": seconds, "bytes": bytes_of.get(stage, 0), "gbps": bytes_of.get(stage, 0) / max(seconds, 1e-9) / 1e9}
        for stage, seconds in zip((*STAGES, "rest"), median, strict=True)
    ]


def _bytes(layer: OneLayer, sequence: Read, read: int) -> Mapping[str, int]:
    """Of each stage; read: what the whole row reads of sketches, keys and values."""
    c, layout = layer.config, layer.projection.layout
    drawn_from = sum(kv.tokens for kv in layer.chain[1:])
    row = 2 * c.kv_heads * c.head_dim * 2
    whole = (sequence.length + 1 - drawn_from) * row
    scanned = drawn_from * c.kv_heads * layout.bytes_per_key
    looked_at = drawn_from // max(1, drawn_from // SAMPLE) * c.kv_heads * layout.bytes_per_key
    partials = 2 + -(-drawn_from // partial_keys(drawn_from))  # of the preamble and the tail, one each
    return {
        "project": layer.projection.queries.numel() * 4,
        "threshold": looked_at,
        "whole": whole,
        "scan": scanned + c.kv_heads * drawn_from // 8,  # a bit for each key beside it: whether it is certain
        "gather": read - whole - scanned - looked_at,
        "merge": partials * c.heads * (c.head_dim + 2) * 4,
    }
