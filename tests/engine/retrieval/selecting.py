"""A chain of random keys to select from, and what a selection's estimate is."""

from __future__ import annotations

import torch

from engine.retrieval.candidates import Candidates
from engine.retrieval.selection import Selection, Selector
from kernels import gathering
from kernels.reference import Block

LAYERS, KV_HEADS, GROUP, DIM, TOKENS = 2, 2, 3, 32, 300
CLOSED = 20
"""Keys at the start, and at the end, that are read anyway."""
SEED = 11


def candidates(tokens: int = TOKENS, closed: int = CLOSED, dtype: torch.dtype = torch.float32, dim: int = DIM) -> Candidates:
    draw = torch.Generator().manual_seed(1)
    keys = [(torch.randn(KV_HEADS, tokens, dim, generator=draw) + 0.5).to(dtype) for _ in range(LAYERS)]
    open_ = torch.ones(LAYERS, KV_HEADS, tokens, dtype=torch.bool)
    open_[..., :closed] = open_[..., tokens - closed :] = False
    return Candidates(keys, open_, dim**-0.5)


def queries(dim: int = DIM) -> torch.Tensor:
    return 1.5 * torch.randn(KV_HEADS, GROUP, dim, generator=torch.Generator().manual_seed(2))


def values(tokens: int = TOKENS, dim: int = DIM) -> torch.Tensor:
    return torch.randn(KV_HEADS, tokens, dim, generator=torch.Generator().manual_seed(3)) + 1


def estimate(among: Candidates, layer: int, q: torch.Tensor, chosen: Selection) -> tuple[torch.Tensor, torch.Tensor]:
    """(sum of e^logit · value [Hq, D], sum of e^logit [Hq]) over what was chosen, weighed, in float64."""
    block = Block(among.keys[layer], values(among.keys[layer].shape[1]), 0, 0, 1)
    out, lse = gathering.attend(q.double().reshape(1, -1, q.shape[-1]), [block], chosen.ids, chosen.log_weights, among.scale, among.softcap)
    return out[0] * lse[0].exp()[:, None], lse[0].exp()


def everything(among: Candidates, layer: int, q: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """What `estimate` gives for all open keys."""
    weights = among.logits(layer, q.double()).double().exp()
    return torch.bmm(weights, values(among.keys[layer].shape[1]).double()).flatten(0, 1), weights.sum(-1).flatten()


def is_unbiased(selector: Selector, among: Candidates, draws: int = 200) -> None:
    """Over so many positions the sums are right on the average, as near as their own spread allows; only open keys are chosen."""
    q, layer = queries(), 1
    made = [selector.select(layer, q, position) for position in range(draws)]
    for chosen in made[:20]:
        for head, ids in enumerate(chosen.ids):
            assert among.open[layer, head, ids.long()].all()
            assert (ids.diff() > 0).all()
            assert (chosen.log_weights[head] > -torch.inf).any(0).all()
    sums = [estimate(among, layer, q, chosen) for chosen in made]
    counts = torch.stack([torch.cat([weights.double().exp().sum(1) for weights in chosen.log_weights]) for chosen in made])
    values_expected, mass_expected = everything(among, layer, q)
    near(torch.stack([value for value, _ in sums]), values_expected)
    near(torch.stack([mass for _, mass in sums]), mass_expected)
    near(counts, among.open[layer].sum(-1).repeat_interleave(GROUP).double())


def near(drawn: torch.Tensor, expected: torch.Tensor) -> None:
    """The mean of drawn [n, ...] is within 4.5 standard errors of what is expected, or within rounding."""
    error = (drawn.mean(0) - expected).abs()
    allowed = 4.5 * drawn.std(0) / len(drawn) ** 0.5 + 1e-5 * expected.abs()
    assert (error <= allowed).all(), f"off by up to {float((error / allowed).max()):.2f} times what chance allows"


def is_dense(selector: Selector, among: Candidates) -> None:
    """It chooses all open keys, each with the weight 1."""
    q = queries(among.keys[0].shape[2])
    chosen = selector.select(0, q, 7)
    for head, (ids, weights) in enumerate(zip(chosen.ids, chosen.log_weights, strict=True)):
        assert ids.tolist() == among.open[0, head].nonzero().flatten().tolist()
        assert weights.abs().max() < 1e-5
