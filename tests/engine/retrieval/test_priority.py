"""Priority samples and threshold samples are right on the average, whatever their guesses are worth."""

from __future__ import annotations

import pytest
import torch

from engine.attention.exact import Exact
from engine.attention.sampled import Sampled, certain_bits
from engine.attention.sequence import Rows
from engine.retrieval.candidates import Candidates
from engine.retrieval.guesses import Guesses, Logits, Rotated
from engine.retrieval.priority import Priority
from engine.retrieval.sketched import ByThreshold
from kernels import gathering
from kernels.reference import Block
from kernels.sketch import Layout, Projection
from tests.engine.attention.test_exact import CONFIG, Step, sequence
from tests.engine.attention.test_sampled import CHAIN, PROJECTION, sketches
from tests.engine.retrieval.selecting import (
    CLOSED,
    DIM,
    GROUP,
    KV_HEADS,
    LAYERS,
    SEED,
    TOKENS,
    candidates,
    is_dense,
    is_unbiased,
    queries,
)

OPEN = TOKENS - 2 * CLOSED
KV_HEADS_OF_MODEL = CONFIG.kv_heads
LAYOUT = Layout(1, 0, 0)
FIRST = torch.eye(DIM)[:, :8].repeat(KV_HEADS, 1, 1)
PROJECTIONS = [Projection(LAYOUT, torch.full((KV_HEADS, DIM), 0.5), 2 * FIRST, FIRST / 2)] * LAYERS
LENGTHS = (4, 200, 96)


def guesses(name: str, among: Candidates) -> Guesses:
    kinds = {"logits": Logits, "sign": lambda a: Rotated(a, 128, 1, 5), "four": lambda a: Rotated(a, DIM, 4, 5)}
    return kinds[name](among)  # type: ignore[no-any-return, operator]


@pytest.mark.parametrize("name", ["logits", "sign", "four"])
def test_a_priority_sample_is_right_on_the_average(name: str) -> None:
    is_unbiased(Priority(guesses(name, candidates()), 30, SEED), candidates())


def test_a_threshold_sample_is_right_on_the_average() -> None:
    is_unbiased(ByThreshold(candidates(), PROJECTIONS, LENGTHS, 30, SEED), candidates())


@pytest.mark.parametrize("name", ["logits", "sign", "four"])
def test_a_priority_sample_has_as_many_keys_as_it_may(name: str) -> None:
    among, q = candidates(), queries()
    for budget in (1, 30, OPEN, OPEN + 1):
        chosen = Priority(guesses(name, among), budget, SEED).select(0, q, 0)
        counts = [int((row > -torch.inf).sum()) for weights in chosen.log_weights for row in weights]
        assert counts == [min(budget, OPEN)] * KV_HEADS * GROUP


def test_the_heads_of_a_group_want_partly_the_same_keys() -> None:
    among, q = candidates(), queries()
    chosen = Priority(Logits(among), 40, SEED).select(0, q / 8, 0)
    assert chosen.rows < chosen.keys / 2


def test_with_a_budget_for_all_keys_it_is_dense() -> None:
    for budget in (OPEN, TOKENS):
        is_dense(Priority(Logits(candidates()), budget, SEED), candidates())
        is_dense(ByThreshold(candidates(), PROJECTIONS, LENGTHS, budget, SEED), candidates())


@pytest.mark.parametrize(
    ("coordinates", "bits", "dim"), [(128, 1, 64), (256, 1, 64), (64, 4, 64), (128, 1, 128), (128, 4, 128), (128, 1, 80)]
)
def test_more_bits_guess_better(coordinates: int, bits: int, dim: int) -> None:
    among, q = candidates(dim=dim), queries(dim)
    shown = slice(CLOSED, TOKENS - CLOSED)
    exact = among.logits(0, q)[..., shown]
    guessed = Rotated(among, coordinates, bits, 5).of(0, q)[..., shown]
    off = guessed - exact
    unexplained = (off - off.mean(-1, keepdim=True)).var() / (exact - exact.mean(-1, keepdim=True)).var()
    worst = 0.02 if bits == 4 else 0.72 * dim / coordinates  # about π/2 - 1 of what one coordinate says, spread over so many
    assert unexplained < worst


@pytest.mark.parametrize(("coordinates", "bits", "each"), [(128, 1, 20), (256, 1, 36), (64, 4, 36)])
def test_codes_are_counted_with_the_number_beside_them(coordinates: int, bits: int, each: int) -> None:
    made = Priority(Rotated(candidates(dim=64), coordinates, bits, 5), 10, SEED)
    assert made.select(0, queries(64), 0).index_bytes == KV_HEADS * OPEN * each


def test_codes_of_a_key_at_the_centre_guess_nothing() -> None:
    flat = Candidates([torch.ones(KV_HEADS, 40, DIM)], torch.ones(1, KV_HEADS, 40, dtype=torch.bool), 1.0)
    for bits in (1, 4):
        assert Rotated(flat, DIM, bits, 5).of(0, queries()).abs().max() < 1e-5


def test_the_products_choice_is_drawn_for_draw_what_it_reads() -> None:
    """Through this interface and the exact rest, the answer is that of `Sampled`, to rounding."""
    length = sum(kv.tokens for kv in CHAIN)
    closed = torch.zeros(CONFIG.layers, KV_HEADS_OF_MODEL, length, dtype=torch.bool)
    closed[..., 60:70] = True
    bits = {id(CHAIN[1]): certain_bits(closed[..., 4:204]).contiguous(), id(CHAIN[2]): certain_bits(closed[..., 204:]).contiguous()}
    product = Sampled(Exact(CONFIG), [PROJECTION] * CONFIG.layers, sketches(*CHAIN[1:]), 30, 5, bits, audit_every=0)
    step, layer, read = Step(1, 3), 0, sequence(*CHAIN)
    rows = Rows([(read, 1)])
    expected = step.read(product, rows, [layer])
    among_open = ~closed
    among_open[..., :4] = False
    keys = [torch.cat([kv.key(each) for kv in CHAIN], 1) for each in range(CONFIG.layers)]
    among = Candidates(keys, among_open, CONFIG.scale)
    made = ByThreshold(among, [PROJECTION] * CONFIG.layers, [kv.tokens for kv in CHAIN], 30, 5)
    q = step.q.view(KV_HEADS_OF_MODEL, -1, CONFIG.head_dim)
    chosen = made.select(layer, q, length)
    whole = torch.nn.functional.pad(torch.where(among_open[layer, :, None], -torch.inf, 0.0), (0, 1)).expand(-1, q.shape[1], -1).clone()
    for head, (ids, weights) in enumerate(zip(chosen.ids, chosen.log_weights, strict=True)):
        whole[head][:, ids.long()] = weights
    all_ids = [torch.arange(length + 1)] * KV_HEADS_OF_MODEL
    blocks = [
        Block(keys[layer], torch.cat([kv.value(layer) for kv in CHAIN], 1), 0, 0, 1),
        Block(*read.tail.kv[layer, :, :, :1], length, 0, 1),
    ]
    out, _ = gathering.attend(step.q, blocks, all_ids, list(whole), CONFIG.scale)
    assert (out - expected).abs().max() < 1e-5
    assert 20 < chosen.keys / CONFIG.heads < 40
