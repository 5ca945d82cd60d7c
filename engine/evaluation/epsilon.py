"""How often promised errors are broken: tokens of an answer sampled with a promise, each read beside it once more exactly.

Counted is every (layer, query head, token), on the queries that the sampled answer itself leads to. Promises are kept where the rate of
broken ones is no more than delta, but for what chance adds to it: two standard deviations of a share of so many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from engine.answering.modes import DELTA, sampled_behind
from engine.attention.exact import Exact
from engine.evaluation.forced import Beside, Stage
from engine.model import calibration
from engine.retrieval import sketches
from engine.retrieval.projections import Projections


@dataclass(frozen=True)
class Kept:
    """How one promise was kept. errors: [tokens, layers, heads] |sampled - exact| / |exact|; bytes_read: of the bytes that
    exact reading takes, both draws and the sketches included."""

    epsilon: float
    delta: float
    errors: torch.Tensor
    bytes_read: float
    keys_read: float

    @property
    def n(self) -> int:
        return self.errors.numel()

    @property
    def rate(self) -> float:
        return float((self.errors > self.epsilon).double().mean())

    @property
    def sigma(self) -> float:
        """Standard deviation of the rate where promises are broken just as often as they may be."""
        return float((self.delta * (1 - self.delta) / self.n) ** 0.5)

    def as_row(self) -> dict[str, float | int]:
        """For a report."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "eps_violation_rate": self.rate,
            "n": self.n,
            "sigma": self.sigma,
            "error": float(self.errors.mean()),
            "bytes_read": self.bytes_read,
            "keys_read": self.keys_read,
        }


def promises(stage: Stage, prompt: Sequence[int], epsilons: Sequence[float], tokens: int, made: Projections, seed: int = 0) -> list[Kept]:
    """Answer so many tokens behind a text and a prompt, once for each epsilon."""
    config = stage.model.config
    dense = calibration.load(stage.model.installed).dense_layers
    known = {id(kv): sketches.Sketch(list(sketches.make(kv, made.layers))) for kv in stage.chain[1:]}
    sequence = stage.sequence(len(prompt) + tokens)
    exact = stage.watching(sequence)
    first = int(stage.ask(sequence, list(prompt), exact).argmax())
    sampled_layers = [layer for layer in range(config.layers) if layer not in dense and not config.window_of(layer)]
    found = []
    for epsilon in epsilons:
        sequence.tail.cut(len(prompt))
        sampled = sampled_behind(exact, stage.chain, made.layers, known, 1.0, seed, dense, epsilon, audit_every=0)
        beside, token, start, before = Beside(sampled, Exact(config)), first, sequence.length, sampled.bytes_read
        for _ in range(tokens):
            token = int(stage.say(sequence, [token], beside)[-1].argmax())
        errors = torch.stack([torch.cat(beside.errors[layer]) for layer in sampled_layers], 1)
        share = (sampled.bytes_read - before) / stage.everything(start, tokens)
        found.append(Kept(epsilon, DELTA, errors, share, sampled.keys_read_fraction))
    return found
