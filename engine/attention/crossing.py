"""What crosses between a device and memory while few rows read on both sides: queries one way, partial results the other."""

from __future__ import annotations

import torch

from kernels import gpu


class Crossing:
    """Buffers for that, in memory that a GPU copies from and to by itself; what was given lies there until the next call."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._pinned: dict[tuple[str, torch.Size], torch.Tensor] = {}

    def down(self, x: torch.Tensor) -> torch.Tensor:
        """x here, once everything that makes it is done."""
        if self.device.type == "cpu":
            return x
        here = self._buffer("down", x)
        here.copy_(x, non_blocking=True)
        torch.cuda.current_stream(self.device).synchronize()
        return here

    def up(self, x: torch.Tensor, name: str = "up") -> torch.Tensor:
        """x on the device. name: of the buffer it goes through, one for each of what is on its way at a time."""
        if self.device.type == "cpu":
            return x
        here = self._buffer(name, x)
        here.copy_(x)
        return here.to(self.device, non_blocking=True)

    def merged(self, here: tuple[torch.Tensor, torch.Tensor], there: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        """out [N, Hq, D] on the device of two partial results (out [N, Hq, D], lse [N, Hq]), the earlier positions first."""
        outs, lses = (torch.stack([self.up(mine, name), its]) for name, mine, its in zip(("out", "lse"), here, there, strict=True))
        return gpu.merge(outs, lses)[0]

    def _buffer(self, name: str, like: torch.Tensor) -> torch.Tensor:
        key = name, like.shape
        if key not in self._pinned:
            self._pinned[key] = torch.empty(like.shape, dtype=like.dtype, pin_memory=True)
        return self._pinned[key]
