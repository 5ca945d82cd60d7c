"""Sampled attention over chains: what is drawn from, what is read whole, what is audited, and what is counted."""

from __future__ import annotations

import pytest
import torch

from engine.attention.exact import Exact
from engine.attention.in_memory import InMemory
from engine.attention.sampled import Sampled, certain_bits
from engine.attention.sequence import Rows
from engine.retrieval.sketches import Sketch
from kernels import sketch
from kernels.budgets import Promise
from kernels.sketch import Layout, Projection
from tests.engine.attention.test_exact import CONFIG, DIM, HEADS, KV_HEADS, LAYERS, SLIDING, TOKEN_BYTES, Step, segment, sequence

LAYOUT = Layout(1, 0, 0)
PROJECTION = Projection(
    LAYOUT, torch.zeros(KV_HEADS, DIM), torch.eye(DIM)[:, :8].repeat(KV_HEADS, 1, 1) * 2, torch.eye(DIM)[:, :8].repeat(KV_HEADS, 1, 1) / 2
)
CHAIN = [segment(4, 1), segment(200, 2), segment(90, 3)]
for each in CHAIN:
    each.kv[:, 1] += 2  # values that don't cancel out, as a model's don't


def sketches(*segments: InMemory) -> dict[int, Sketch]:
    return {id(kv): Sketch([sketch.build(kv.key(layer), PROJECTION) for layer in range(LAYERS)]) for kv in segments}


def sampling(keys: float = 30.0, audit_every: int = 0, exact: Exact | None = None, **more: object) -> Sampled:
    made = sketches(*CHAIN[1:])
    return Sampled(exact or Exact(CONFIG), [PROJECTION] * LAYERS, made, keys, 5, audit_every=audit_every, **more)  # type: ignore[arg-type]


def both(attention: Sampled, steps: int = 1, count: int = 1) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """What it gives and what exact reading does, for so many calls."""
    ours, theirs, exact = sequence(*CHAIN), sequence(*CHAIN), Exact(CONFIG)
    made = []
    for seed in range(steps):
        step = Step(count, seed)
        got = step.read(attention, Rows([(ours, count)]), range(LAYERS))
        made.append((got, step.read(exact, Rows([(theirs, count)]), range(LAYERS))))
    return made


def test_with_keys_for_all_it_is_exact() -> None:
    attention = sampling(1e6)
    for got, expected in both(attention, 3, 2):
        assert (got - expected).abs().max() < 1e-5
    assert attention.keys_read_fraction == attention.rows_read_fraction == 1


def test_a_sample_is_near_and_reads_less() -> None:
    attention = sampling(40)
    errors = [((got - expected).norm() / expected.norm()).item() for got, expected in both(attention, 20)]
    assert 0 < sum(errors) / len(errors) < 0.3
    assert 0 < attention.keys_read_fraction < attention.rows_read_fraction < 0.8


def test_every_so_many_tokens_one_is_exact_and_tells_the_error() -> None:
    attention = sampling(40, audit_every=4)
    off = [not torch.equal(got, expected) for got, expected in both(attention, 9)]
    assert off == [False, True, True, True, False, True, True, True, False]
    assert attention.error_measured is not None
    assert 0 < attention.error_measured < 0.3


def test_without_an_audit_no_error_is_told() -> None:
    attention = sampling(40)
    both(attention, 2)
    assert attention.error_measured is None


def test_a_smaller_error_promised_reads_more_and_errs_less() -> None:
    loose, tight = (sampling(20, audit_every=1, promise=Promise(epsilon, 0.1)) for epsilon in (0.8, 0.05))
    for attention in (loose, tight):
        both(attention, 10)
    assert tight.error_measured < loose.error_measured / 2  # type: ignore[operator]
    loose, tight = (sampling(20, promise=Promise(epsilon, 0.1)) for epsilon in (0.8, 0.05))
    for attention in (loose, tight):
        both(attention, 2)
    assert tight.keys_read_fraction > 1.5 * loose.keys_read_fraction


def test_a_promise_is_broken_no_more_often_than_it_may() -> None:
    attention = sampling(20, audit_every=1, promise=Promise(0.1, 0.1))
    both(attention, 20)
    n = 20 * LAYERS * HEADS
    assert attention.violation_rate is not None
    assert attention.violation_rate <= 0.1 + 2 * (0.09 / n) ** 0.5


def test_without_a_promise_nothing_is_broken() -> None:
    attention = sampling(40, audit_every=1)
    both(attention, 2)
    assert attention.violation_rate is None


def test_layers_kept_dense_and_sliding_ones_are_read_exactly() -> None:
    attention = sampling(1e-6, dense=(0, 1, 2))
    for got, expected in both(attention, 2):
        assert torch.equal(got, expected)
    sliding = sampling(1e-6, exact=Exact(SLIDING))
    read, step = sequence(*CHAIN), Step(1)
    got = step.read(sliding, Rows([(read, 1)]), layers=(1,))
    assert torch.equal(got, step.read(Exact(SLIDING), Rows([(sequence(*CHAIN), 1)]), layers=(1,)))


def test_chains_without_sketches_and_calls_of_several_sequences_are_read_exactly() -> None:
    step, rows = Step(2), [sequence(*CHAIN), sequence(CHAIN[0])]
    got = step.read(sampling(1e-6), Rows([(read, 1) for read in rows]))
    assert torch.equal(got, step.read(Exact(CONFIG), Rows([(sequence(*CHAIN), 1), (sequence(CHAIN[0]), 1)])))
    without = Sampled(Exact(CONFIG), [PROJECTION] * LAYERS, {}, 1e-6, 5, audit_every=0)
    for got, expected in both(without):
        assert torch.equal(got, expected)


def test_certain_keys_preamble_and_tail_are_always_read() -> None:
    chosen = torch.zeros(LAYERS, KV_HEADS, 200, dtype=torch.bool)
    chosen[..., [3, 50, 199]] = True
    attention = sampling(1e-6, certain={id(CHAIN[1]): certain_bits(chosen)})
    both(attention, 2)
    seen, whole = 294 + 1 + 294 + 2, 4 + 1 + 4 + 2
    assert attention.rows_read_fraction == pytest.approx((whole + 2 * 3) / seen, abs=0.01)  # a draw at such a budget is rare


def test_bytes_are_those_of_sketches_and_of_the_rows_that_were_read() -> None:
    attention = sampling(1e6)
    both(attention, 1)
    sketched = LAYERS * KV_HEADS * 2 * 290 * LAYOUT.bytes_per_key  # all of it is looked at for the threshold, too
    assert attention.bytes_read == sketched + LAYERS * 295 * TOKEN_BYTES
    assert HEADS == 3 * KV_HEADS


def test_bits_of_certain_keys_stand_in_their_groups() -> None:
    chosen = torch.zeros(2, 20, dtype=torch.bool)
    chosen[0, [0, 15, 16]] = True
    assert certain_bits(chosen).tolist() == [[1 - 2**15, 1], [0, 0]]
