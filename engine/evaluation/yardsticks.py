"""What our attention of one row is measured against: reading as many bytes and nothing else, and torch's attention of the same row.

Torch takes keys and values in one run, which it is given packed in each way that it can read a KV head once for all its query heads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa

from kernels import cpu
from kernels.cpu import reading


def readings(buffer: torch.Tensor) -> dict[str, Callable[[], object]]:
    """Ways of reading every byte of a contiguous buffer with all threads. The fastest of them is what memory gives."""
    flat = buffer.view(-1)
    ways: dict[str, Callable[[], object]] = {
        "torch_sum_float32": flat.view(torch.float32).sum,
        "torch_sum_int64": flat.view(torch.int64).sum,
    }
    if cpu.native():
        ways |= {f"native_{places}_places": partial(reading.read, buffer, places) for places in reading.PLACES}
    return ways


class Torch:
    """Torch's attention over keys and values kv [2, Hkv, T, D] in bf16, contiguous; each way gives [Hq, D] for q [Hq, D] float32.

    Keys and values that are repeated for every query head of a group are not among them: they take as many times the bytes.
    """

    def __init__(self, kv: torch.Tensor) -> None:
        self._kv, self._wide = kv, kv.float()

    def ways(self, q: torch.Tensor) -> dict[str, Callable[[], torch.Tensor]]:
        near = q.to(self._kv.dtype)
        return {
            "sdpa_gqa_bf16": partial(_gqa, near, self._kv),
            "sdpa_gqa_float32": partial(_gqa, q, self._wide),
            "sdpa_rows_of_heads_bf16": partial(_rows_of_heads, near, self._kv),
            "sdpa_rows_of_heads_float32": partial(_rows_of_heads, q, self._wide),
            "sdpa_batch_of_heads_bf16": partial(_batch_of_heads, near, self._kv),
            "matmul_bf16": partial(_matmul, near, self._kv),
            "matmul_float32": partial(_matmul, q, self._wide),
        }


def _gqa(q: torch.Tensor, kv: torch.Tensor) -> torch.Tensor:
    """Query heads as heads."""
    return sdpa(q[None, :, None], kv[0][None], kv[1][None], enable_gqa=True).view_as(q)


def _rows_of_heads(q: torch.Tensor, kv: torch.Tensor) -> torch.Tensor:
    """The query heads of a KV head as its rows."""
    return sdpa(q.view(1, kv.shape[1], -1, q.shape[1]), kv[0][None], kv[1][None]).view_as(q)


def _batch_of_heads(q: torch.Tensor, kv: torch.Tensor) -> torch.Tensor:
    """KV heads as a batch, their query heads as rows."""
    return sdpa(q.view(kv.shape[1], 1, -1, q.shape[1]), kv[0][:, None], kv[1][:, None]).view_as(q)


def _matmul(q: torch.Tensor, kv: torch.Tensor) -> torch.Tensor:
    logits = q.view(kv.shape[1], -1, q.shape[1]) @ kv[0].mT * q.shape[1] ** -0.5
    found: torch.Tensor = logits.softmax(-1) @ kv[1]
    return found.view_as(q)
