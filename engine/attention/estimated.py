"""Attention that is estimated from a part of what exact reading takes: what all ways of choosing that part share.

Calls of several sequences are read exactly, and so are layers whose window is short and those that are kept dense. Every so
many tokens a token is read exactly, and beside it once more as it would have been estimated: that tells the error.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection

import torch

from engine.attention.exact import Exact
from engine.attention.sequence import Rows

AUDIT_EVERY = 32
"""Tokens from one that is read exactly to the next; the first is one."""


class Estimated(ABC):
    """exact: reads what is not estimated. dense: layers that are read whole. audit_every: see AUDIT_EVERY; 0 for never.
    epsilon: the error that is promised, if one is.

    Counts `bytes_read` (keys, values, and what choosing them reads); `keys_read_fraction` and `rows_read_fraction` are shares of what
    exact reading takes (keys of query heads; rows of KV heads); `error_measured` is the mean over audits, layers and heads of
    |estimated - exact| / |exact|, and `violation_rate` the share of those above epsilon; None before the first.
    """

    def __init__(self, exact: Exact, dense: Collection[int] = (), audit_every: int = AUDIT_EVERY, epsilon: float | None = None) -> None:
        self.config = config = exact.config
        self.exact = exact
        self._dense = {*dense, *(layer for layer in range(config.layers) if config.window_of(layer))}
        self._audit_every, self._steps, self._errors = audit_every, 0, [0.0, 0]
        self._epsilon, self._violations = epsilon, 0
        self._seen = self._whole = 0  # positions that rows saw, and those of them that were read whole, summed over layers
        self._bytes = 0
        self._row_bytes = 0  # of a key and its value, once something was estimated
        self._read: list[torch.Tensor] = []  # of calls that are not counted yet
        self._chosen: list[torch.Tensor] = []  # likewise, bytes
        self._counted = [0, 0]  # rows read of those that could be drawn, keys used summed over query heads

    @abstractmethod
    def _applies(self, rows: Rows) -> bool:
        """Whether anything that these rows of one sequence read can be estimated."""

    @abstractmethod
    def _estimate(self, layer: int, q: torch.Tensor, rows: Rows) -> tuple[torch.Tensor, torch.Tensor, int | torch.Tensor]:
        """(out [N, Hq, D], read [N, Hkv, 2] int, choosing): rows read of those that can be drawn, and keys used of them summed over
        query heads; bytes read to choose them, all elements together, or one number for each row and KV head. What the rows
        themselves bring is written."""

    @abstractmethod
    def _drawn_from(self, layer: int) -> int:
        """Keys of each KV head that could be drawn, or are read among them, by the rows of the last call."""

    @property
    def error_measured(self) -> float | None:
        return self._errors[0] / self._errors[1] if self._errors[1] else None

    @property
    def violation_rate(self) -> float | None:
        return None if self._epsilon is None or not self._errors[1] else self._violations / self._errors[1]

    @property
    def keys_read_fraction(self) -> float:
        return self._fraction(self._count_read()[1] / self.config.heads)

    @property
    def rows_read_fraction(self) -> float:
        return self._fraction(self._count_read()[0] / self.config.kv_heads)

    def _fraction(self, drawn: float) -> float:
        return (self._whole + drawn) / self._seen if self._seen else 1.0

    @property
    def bytes_read(self) -> int:
        return self._count_read()[0] * self._row_bytes + self._bytes + self.exact.bytes_read

    def _count_read(self) -> list[int]:
        if self._read:
            new = torch.cat([read.reshape(-1, 2) for read in self._read]).sum(0).tolist()
            self._counted = [a + b for a, b in zip(self._counted, new, strict=True)]
            self._bytes += sum(int(each.sum()) for each in self._chosen)
            self._read.clear()
            self._chosen.clear()
        return self._counted

    def attend(self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rows: Rows) -> torch.Tensor:
        """See `engine.attention.sequence.Attention`."""
        self._steps += layer == 0
        if layer in self._dense or len(rows.takes) > 1 or not self._applies(rows):
            self._count_whole(rows)
            return self.exact.attend(layer, q, k, v, rows)
        if self._audit_every and self._steps % self._audit_every == 1 % self._audit_every:
            self._count_whole(rows)
            exact = self.exact.attend(layer, q, k, v, rows)
            off = (self._estimate(layer, q, rows)[0] - exact).norm(dim=-1) / exact.norm(dim=-1).clamp_min(1e-30)
            self._errors = [self._errors[0] + float(off.sum()), self._errors[1] + off.numel()]
            self._violations += 0 if self._epsilon is None else int((off > self._epsilon).sum())
            return exact
        self.exact.write(layer, k, v, rows)
        out, read, choosing = self._estimate(layer, q, rows)
        self._count(layer, k, read, choosing, rows)
        return out

    def _count(self, layer: int, k: torch.Tensor, read: torch.Tensor, choosing: int | torch.Tensor, rows: Rows) -> None:
        sequence, count = rows.takes[0]
        seen = sequence.length + count
        whole = seen - self._drawn_from(layer)
        self._row_bytes = 2 * k.shape[2] * k.element_size()
        self._read.append(read)
        if isinstance(choosing, torch.Tensor):
            self._chosen.append(choosing)
        else:
            self._bytes += count * self.config.kv_heads * choosing
        self._bytes += count * self.config.kv_heads * whole * self._row_bytes
        self._seen += count * seen
        self._whole += count * whole

    def _count_whole(self, rows: Rows) -> None:
        seen = sum(count * (sequence.length + count) for sequence, count in rows.takes)
        self._seen += seen
        self._whole += seen
