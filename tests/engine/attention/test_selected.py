"""Attention to what selectors choose, and to what hash tables find: dense where all is chosen, near where some is, counted and audited."""

from __future__ import annotations

import pytest
import torch

from engine.attention.estimated import Estimated
from engine.attention.exact import Exact
from engine.attention.hashed import Hashed
from engine.attention.sampled import certain_bits
from engine.attention.selected import Selected
from engine.attention.sequence import Rows
from engine.retrieval.candidates import Candidates
from engine.retrieval.guesses import Logits
from engine.retrieval.lsh import Lsh, directions, make
from engine.retrieval.priority import Priority
from engine.retrieval.top_k import TopK
from tests.engine.attention.test_exact import CONFIG, DIM, HEADS, KV_HEADS, LAYERS, SLIDING, TOKEN_BYTES, Step, segment, sequence

CHAIN = [segment(4, 1), segment(208, 2), segment(90, 3)]
for each in CHAIN:
    each.kv[:, 1] += 2  # values that don't cancel out, as a model's don't
LENGTH = 302


def candidates() -> Candidates:
    open_ = torch.ones(LAYERS, KV_HEADS, LENGTH, dtype=torch.bool)
    open_[..., :4] = open_[..., 50:60] = False
    return Candidates([torch.cat([kv.key(layer) for kv in CHAIN], 1) for layer in range(LAYERS)], open_, CONFIG.scale)


def selected(budget: int, audit_every: int = 0) -> Selected:
    among = candidates()
    return Selected(Exact(CONFIG), Priority(Logits(among), budget, 3), among.open, audit_every=audit_every)


def hashed(bits: int, tables: int, audit_every: int = 0, certain: bool = False, exact: Exact | None = None) -> Hashed:
    made_with = directions(DIM, bits, tables)
    indexes = [make(CHAIN[1:], made_with, layer) for layer in range(LAYERS)]
    chosen = torch.zeros(LAYERS, KV_HEADS, 208, dtype=torch.bool)
    chosen[..., [3, 50, 207]] = True
    known = {id(CHAIN[1]): certain_bits(chosen)} if certain else {}
    return Hashed(exact or Exact(CONFIG), made_with, [(CHAIN[1:], indexes)], known, audit_every=audit_every)


def both(attention: Estimated, steps: int = 1, count: int = 1) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """What it gives and what exact reading does, for so many calls."""
    ours, theirs, exact = sequence(*CHAIN), sequence(*CHAIN), Exact(CONFIG)
    made = []
    for seed in range(steps):
        step = Step(count, seed)
        got = step.read(attention, Rows([(ours, count)]), range(LAYERS))  # type: ignore[arg-type]
        made.append((got, step.read(exact, Rows([(theirs, count)]), range(LAYERS))))
    return made


def error(attention: Estimated, steps: int = 20) -> float:
    return sum(float((got - expected).norm() / expected.norm()) for got, expected in both(attention, steps)) / steps


@pytest.mark.parametrize("attention", [selected(LENGTH), hashed(1, 200)], ids=["selected", "hashed"])
def test_with_all_keys_chosen_it_is_exact(attention: Estimated) -> None:
    for got, expected in both(attention, 3, 2):
        assert (got - expected).abs().max() < 1e-5
    assert attention.rows_read_fraction == attention.keys_read_fraction == 1


@pytest.mark.parametrize("attention", [selected(40), hashed(3, 12)], ids=["selected", "hashed"])
def test_with_some_chosen_it_is_near_and_reads_less(attention: Estimated) -> None:
    assert 0 < error(attention) < 0.3
    assert 0.05 < attention.keys_read_fraction < attention.rows_read_fraction < 0.9


@pytest.mark.parametrize("attention", [selected(40, 4), hashed(3, 12, 4)], ids=["selected", "hashed"])
def test_every_so_many_tokens_one_is_exact_and_tells_the_error(attention: Estimated) -> None:
    off = [not torch.equal(got, expected) for got, expected in both(attention, 9)]
    assert off == [False, True, True, True, False, True, True, True, False]
    assert attention.error_measured is not None
    assert 0 < attention.error_measured < 0.4


def test_top_k_of_one_reads_one_key_a_head_beside_what_is_always_read() -> None:
    among = candidates()
    attention = Selected(Exact(CONFIG), TopK(among, 1), among.open, audit_every=0)
    both(attention)
    always, seen = 4 + 10 + 1, LENGTH + 1
    assert attention.keys_read_fraction == pytest.approx((always + 1) / seen)
    assert (always + 1) / seen <= attention.rows_read_fraction <= (always + HEADS // KV_HEADS) / seen
    rows = attention.rows_read_fraction * seen * LAYERS
    choosing = LAYERS * KV_HEADS * (LENGTH - 14) * DIM * 4
    assert attention.bytes_read == pytest.approx(choosing + rows * TOKEN_BYTES)


def test_a_chain_the_selector_was_not_made_for_is_read_exactly() -> None:
    step = Step(1)
    got = step.read(selected(1), Rows([(sequence(*CHAIN[:2]), 1)]))  # type: ignore[arg-type]
    assert torch.equal(got, step.read(Exact(CONFIG), Rows([(sequence(*CHAIN[:2]), 1)])))


def test_sliding_layers_and_chains_without_tables_are_read_exactly() -> None:
    step = Step(1)
    got = step.read(hashed(11, 2, exact=Exact(SLIDING)), Rows([(sequence(*CHAIN), 1)]), layers=(1,))  # type: ignore[arg-type]
    assert torch.equal(got, step.read(Exact(SLIDING), Rows([(sequence(*CHAIN), 1)]), layers=(1,)))
    got = step.read(hashed(11, 2), Rows([(sequence(CHAIN[0]), 1)]))  # type: ignore[arg-type]
    assert torch.equal(got, step.read(Exact(CONFIG), Rows([(sequence(CHAIN[0]), 1)])))


def test_certain_keys_preamble_and_tail_are_always_read() -> None:
    attention = hashed(11, 2, certain=True)
    both(attention, 2)
    seen, whole = 2 * LENGTH + 3, 4 + 1 + 4 + 2
    assert attention.rows_read_fraction == pytest.approx((whole + 2 * 3) / seen, abs=0.01)  # two bits more than ten rarely meet


def test_the_selector_and_the_kernel_find_the_same_keys() -> None:
    """Through the interface and by the fused kernel the answer is the same, to rounding."""
    among = candidates()
    closed = ~among.open
    certain = {id(CHAIN[1]): certain_bits(closed[..., 4:212]), id(CHAIN[2]): certain_bits(closed[..., 212:])}
    made_with = directions(DIM, 4, 30)
    indexes = [make(CHAIN[1:], made_with, layer) for layer in range(LAYERS)]
    fused = Hashed(Exact(CONFIG), made_with, [(CHAIN[1:], indexes)], certain, audit_every=0)
    through = Selected(Exact(CONFIG), Lsh(among, [298], 4, 30), among.open, audit_every=0)
    for (ours, _), (theirs, _) in zip(both(fused, 4), both(through, 4), strict=True):
        assert (ours - theirs).abs().max() < 1e-5
    assert fused.keys_read_fraction == pytest.approx(through.keys_read_fraction)
    assert fused.rows_read_fraction == pytest.approx(through.rows_read_fraction)
    assert fused.bytes_read == pytest.approx(through.bytes_read, rel=1e-3)  # the kernel counts norms of what it draws alone


def test_bytes_are_those_of_buckets_norms_and_rows() -> None:
    attention = hashed(1, 200)
    both(attention)
    # A bucket of one bit holds about half of the keys; offsets are two numbers of 16 bits, norms are of 32.
    heads, keys = LAYERS * HEADS, 298
    about = heads * 200 * (2 * keys / 2 + 4) + LAYERS * KV_HEADS * keys * 4 + LAYERS * (LENGTH + 1) * TOKEN_BYTES
    assert attention.bytes_read == pytest.approx(about, rel=0.1)
