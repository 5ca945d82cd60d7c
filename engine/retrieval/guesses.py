"""What a priority sample goes by: logits as they are, or as codes guess them."""

from __future__ import annotations

from typing import Protocol

import torch

from engine.retrieval.candidates import Candidates


class Guesses(Protocol):
    """Of the logits of one chain's keys."""

    def of(self, layer: int, q: torch.Tensor) -> torch.Tensor:
        """[Hkv, G, T] float32 for q [Hkv, G, D]: right up to a number that is the same for all keys of a query head; -inf where a key
        isn't open."""
        ...

    def bytes(self, layer: int) -> int:
        """That one guess of all open keys reads."""
        ...


class Logits:
    """The logits themselves."""

    def __init__(self, candidates: Candidates) -> None:
        self._candidates = candidates

    def of(self, layer: int, q: torch.Tensor) -> torch.Tensor:
        """See `Guesses`."""
        return self._candidates.logits(layer, q)

    def bytes(self, layer: int) -> int:
        """See `Guesses`."""
        return self._candidates.key_bytes(layer)


class Rotated:
    """Codes of randomly turned keys, as in RaBitQ (Gao and Long 2024, arXiv:2405.12497; for more bits arXiv:2409.09913).

    A key less the centre of its KV head is turned into `coordinates` numbers, by as many random rotations as that takes, and each
    number becomes a code of `bits` bits: its sign, or one of 16 equal steps. A float32 beside the codes makes the guess of a key's
    product with itself right, and so that with others on the average. Data tell nothing but the centre.
    """

    def __init__(self, candidates: Candidates, coordinates: int, bits: int, seed: int) -> None:
        if bits not in (1, 4):
            raise ValueError(f"codes have 1 or 4 bits, not {bits}")
        self._candidates, self._bits = candidates, bits
        dim = candidates.keys[0].shape[2]
        self._turn = _rotations(dim, coordinates, seed)  # [D, C]
        made = [self._coded(layer) for layer in range(len(candidates.keys))]
        self._codes, self._factors = [codes for codes, _ in made], [factors for _, factors in made]

    def _coded(self, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Codes [Hkv, T, C] int8, twice their value so that they are whole, and factors [Hkv, T] float32."""
        turned = (self._candidates.keys[layer].float() - self._candidates.centre(layer)[:, None]) @ self._turn
        if self._bits == 1:
            codes = torch.where(turned >= 0, 1.0, -1.0)
        else:
            step = _STEP * turned.square().mean(-1, keepdim=True).sqrt().clamp_min(1e-30)
            codes = 2 * (turned / step).floor().clamp(-8, 7) + 1
        # per key |turned|² / <turned, codes> · D / C, so that factor · <codes, turned query> guesses the inner product
        share = turned.shape[-1] / self._turn.shape[0]
        return codes.to(torch.int8), turned.square().sum(-1) / ((turned * codes).sum(-1).clamp_min(1e-30) * share)

    def of(self, layer: int, q: torch.Tensor) -> torch.Tensor:
        """See `Guesses`. A cap on logits is left out: keys' order is the same, and far out they are drawn a little too often."""
        products = torch.bmm(q.float() @ self._turn, self._codes[layer].float().mT)
        guessed = products * self._factors[layer][:, None] * self._candidates.scale
        return guessed.masked_fill(~self._candidates.open[layer, :, None], -torch.inf)

    def bytes(self, layer: int) -> int:
        """See `Guesses`."""
        return self._candidates.count(layer) * (self._turn.shape[1] * self._bits // 8 + 4)


_STEP = 0.3352
"""Of 16 equal steps, in standard deviations: that with the least error for a normal variable (Max 1960)."""


def _rotations(dim: int, coordinates: int, seed: int) -> torch.Tensor:
    """[D, C]: random rotations beside one another, the last one cut."""
    draw = torch.Generator().manual_seed(seed)
    turns = [torch.linalg.qr(torch.randn(dim, dim, generator=draw))[0] for _ in range(-(-coordinates // dim))]
    return torch.cat(turns, 1)[:, :coordinates].contiguous()
