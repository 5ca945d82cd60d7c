"""Exact attention where weights, tails and some segments lie on a device and the other segments in memory.

Few rows (decoding) read each segment where it lies: kernels of the device and of the processor each give a partial result, and these are
merged by log-sum-exp; queries and partial results are all that crosses. Many rows (reading) multiply every key so often that bringing
it over costs less: segments in memory pass through the device, a layer at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import torch

from engine.attention.crossing import Crossing
from engine.attention.exact import Exact, Part
from engine.attention.held import Held
from engine.attention.sequence import KV, Rows, Stretch
from engine.attention.tail import Tail
from engine.model.config import ModelConfig
from kernels import cpu, gpu, many_rows
from kernels.cpu import FEW
from kernels.reference import Block


class Placed(Exact):
    """Reads chains and tails where they lie; q, k, v and what it gives lie on the device of `held`."""

    def __init__(self, config: ModelConfig, held: Held, watch_layers: Sequence[int] = ()) -> None:
        self._watched_there: dict[int, torch.Tensor] = {}  # as `_watched`, where rows read on the device
        super().__init__(config, watch_layers)
        self.held = held
        self.device = held.device
        self._arrangement: tuple[object, ...] = ()
        self._here: list[Stretch] = []
        self._there: list[tuple[Stretch, bool]] = []  # all stretches, and whether they lie on the device
        self._lists_here: dict[int, cpu.BlockList] = {}
        self._lists_there: dict[int, gpu.BlockList] = {}
        self.crossing = Crossing(held.device)
        self._positioned: Rows | None = None
        self._positions = torch.empty(0)

    def watch(self, starts: Sequence[int]) -> None:
        self._watched_there.clear()
        super().watch(starts)

    def attend(self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rows: Rows) -> torch.Tensor:
        """See `engine.attention.sequence.Attention`."""
        self.write(layer, k, v, rows)
        watching = self._counts(layer, k, rows)
        self._arrange(rows)
        if len(q) > FEW:
            return self._in_bulk(layer, q, rows, watching)
        if watching and self._here:
            return self._all_here(layer, q, rows)
        out, lse = self.read_there(layer, q, rows)
        if self._here:
            return self.crossing.merged(self._read_here(layer, self.crossing.down(q), rows), (out, lse))
        if watching:
            self._score(layer, q, rows, lse)
        return out

    def lies_here(self, kv: KV) -> bool:
        return self.held.of(kv) is None

    def arranged(self, rows: Rows) -> tuple[object, ...]:
        self._arrange(rows)
        return *super().arranged(rows), self.held.version, len(rows.positions) > FEW

    def here(self, rows: Rows) -> Sequence[Stretch]:
        return self._here if len(rows.positions) <= FEW else []  # many are read in bulk

    def completed(self, layer: int, q: torch.Tensor, rows: Rows, read: Callable[[torch.Tensor], Part]) -> Part:
        there = self.read_there(layer, q, rows)  # goes on while the processor reads
        part = read(self.crossing.down(q))
        return replace(part, out=self.crossing.merged((part.out, part.lse), there))

    def write(self, layer: int, k: torch.Tensor, v: torch.Tensor, rows: Rows) -> None:
        for sequence, _, _ in rows.spans():
            sequence.tail.on(self.device)
        super().write(layer, k, v, rows)

    def _arrange(self, rows: Rows) -> None:
        """Have what the rows read where it is to lie, and know where that is: `_here`, the stretches in memory alone."""
        if self._arrangement and (rows.layout, self.held.version) == self._arrangement:
            return
        self.held.hold(kv for sequence, _ in rows.takes for kv in sequence.chain)
        self._arrangement = (rows.layout, self.held.version)
        self._there = [(stretch, isinstance(stretch.kv, Tail) or self.held.of(stretch.kv) is not None) for stretch in rows.stretches()]
        self._here = [stretch for stretch, there in self._there if not there]
        self._lists_here.clear()
        self._lists_there.clear()

    def read_there(self, layer: int, q: torch.Tensor, rows: Rows) -> tuple[torch.Tensor, torch.Tensor]:
        """(out [N, Hq, D], lse [N, Hq]) of what lies on the device, few rows."""
        if (made := self._lists_there.get(layer)) is None:
            blocks = [self._block_there(layer, stretch) for stretch, there in self._there if there]
            made = self._lists_there[layer] = gpu.BlockList(blocks)
        config = self.config
        return gpu.attend(q, self.positions(rows), made, config.scale, config.attention_softcap, config.window_of(layer))

    def positions(self, rows: Rows) -> torch.Tensor:
        """Those of the rows, on the device."""
        if rows is not self._positioned:
            self._positioned, self._positions = rows, rows.positions.to(self.device)
        return self._positions

    def _given(self, layer: int) -> torch.Tensor | None:
        """What rows gave to positions, read here and there."""
        parts = [part.cpu() for part in (self._watched.get(layer), self._watched_there.get(layer)) if part is not None]
        keys = max((part.shape[2] for part in parts), default=0)
        padded = [torch.nn.functional.pad(part, (0, keys - part.shape[2])) for part in parts]
        return torch.stack(padded).sum(0) if padded else None

    def _read_here(self, layer: int, q: torch.Tensor, rows: Rows) -> tuple[torch.Tensor, torch.Tensor]:
        """As `read_there`, of the stretches in memory, by the processor; q and what it gives lie here."""
        if (made := self._lists_here.get(layer)) is None:
            made = self._lists_here[layer] = cpu.BlockList([stretch.block(layer) for stretch in self._here])
        config, lse = self.config, torch.empty(q.shape[:2])
        return cpu.attend(q, rows.positions, made, config.scale, config.attention_softcap, config.window_of(layer), lse=lse), lse

    def _all_here(self, layer: int, q: torch.Tensor, rows: Rows) -> torch.Tensor:
        """Watched rows read the whole in memory, the tail too: scores want one sum over all keys. A few rows of KV cross for it."""
        rows.takes[0][0].tail.fetch(layer)
        return self.crossing.up(self._read(layer, self.crossing.down(q), rows, True))

    def _in_bulk(self, layer: int, q: torch.Tensor, rows: Rows, watching: bool) -> torch.Tensor:
        config = self.config
        how = config.scale, config.attention_softcap, config.window_of(layer)
        out, lse = many_rows.attend(q, self.positions(rows), self._brought(layer, rows), *how)
        if watching:
            self._score(layer, q, rows, lse)
        return out

    def _score(self, layer: int, q: torch.Tensor, rows: Rows, lse: torch.Tensor) -> None:
        config = self.config
        keys = sum(stretch.tokens for stretch, _ in self._there)
        there = self._watched_there.get(layer)
        if there is None or there.shape[2] != keys:
            there = _grown(there, (len(self._starts), config.kv_heads, keys), self.device)
            self._watched_there[layer] = there
        how = config.scale, config.attention_softcap, config.window_of(layer)
        many_rows.add_scores(there, self._group_of.to(self.device), lse, q, self.positions(rows), self._brought(layer, rows), *how)

    def _brought(self, layer: int, rows: Rows) -> Iterator[Block]:
        """Blocks of all stretches on the device, one after another; of a window's layer an empty one for what no row sees."""
        window, earliest = self.config.window_of(layer), int(rows.positions.min())
        for stretch, there in self._there:
            if there:
                yield self._block_there(layer, stretch)
            elif window and stretch.position + stretch.tokens <= earliest - window + 1:
                unseen = stretch.kv.key(layer).new_empty(1, 1, 1, device=self.device).expand(self.config.kv_heads, stretch.tokens, -1)
                yield Block(unseen, unseen, stretch.position, 0, 0)
            else:
                k, v = (each.to(self.device, non_blocking=True) for each in (stretch.kv.key(layer), stretch.kv.value(layer)))
                yield Block(k, v, stretch.position, stretch.row_begin, stretch.row_end)

    def _block_there(self, layer: int, stretch: Stretch) -> Block:
        if isinstance(stretch.kv, Tail):
            kv = stretch.kv.on(self.device)[layer]
            return Block(kv[0], kv[1], stretch.position, stretch.row_begin, stretch.row_end)
        copy = self.held.of(stretch.kv)
        assert copy is not None, "what is arranged is held until it is arranged anew"
        return Block(copy.key(layer), copy.value(layer), stretch.position, stretch.row_begin, stretch.row_end)


def _grown(there: torch.Tensor | None, shape: tuple[int, int, int], device: torch.device) -> torch.Tensor:
    made = torch.zeros(shape, device=device)
    if there is not None:
        kept = min(shape[2], there.shape[2])
        made[:, :, :kept] = there[:, :, :kept]
    return made
