"""Exact top-k, oracle sampling and Quest choose what they say, and say what choosing reads."""

from __future__ import annotations

import pytest
import torch

from engine.retrieval.candidates import Candidates
from engine.retrieval.oracle import Oracle
from engine.retrieval.quest import PAGE, Quest
from engine.retrieval.top_k import TopK
from tests.engine.retrieval.selecting import (
    CLOSED,
    DIM,
    GROUP,
    KV_HEADS,
    SEED,
    TOKENS,
    candidates,
    estimate,
    everything,
    is_dense,
    is_unbiased,
    queries,
    values,
)

OPEN = TOKENS - 2 * CLOSED


def test_top_k_uses_the_highest_logits_of_each_query_head() -> None:
    among, q = candidates(), queries()
    chosen, logits = TopK(among, 5).select(0, q, 0), among.logits(0, q)
    for head in range(KV_HEADS):
        for h in range(GROUP):
            used = chosen.ids[head][chosen.log_weights[head][h] == 0]
            assert used.tolist() == sorted(logits[head, h].topk(5).indices.tolist())
    assert chosen.keys == 5 * KV_HEADS * GROUP
    assert 5 * KV_HEADS < chosen.rows <= chosen.keys


def test_top_k_of_everything_is_dense() -> None:
    is_dense(TopK(candidates(), TOKENS), candidates())


def test_choosing_exactly_reads_every_open_key() -> None:
    for dtype, size in ((torch.float32, 4), (torch.bfloat16, 2)):
        among = candidates(dtype=dtype)
        for selector in (TopK(among, 5), Oracle(among, 5, SEED)):
            assert selector.select(0, queries(), 0).index_bytes == KV_HEADS * OPEN * DIM * size


def test_oracle_sampling_is_right_on_the_average() -> None:
    is_unbiased(Oracle(candidates(), 40, SEED), candidates())


def test_what_an_oracle_draws_stands_for_the_exact_mass_every_time() -> None:
    among, q = candidates(), queries()
    _, mass = everything(among, 0, q)
    for position in range(5):
        _, drawn = estimate(among, 0, q, Oracle(among, 12, SEED).select(0, q, position))
        assert (drawn / mass - 1).abs().max() < 1e-5


def test_an_oracles_estimate_is_the_mean_of_the_values_drawn() -> None:
    among, q, budget = candidates(), queries(), 12
    chosen = Oracle(among, budget, SEED).select(0, q, 3)
    total, mass = estimate(among, 0, q, chosen)
    probabilities = torch.softmax(among.logits(0, q), -1)
    for head in range(KV_HEADS):
        ids = chosen.ids[head].long()
        times = budget * probabilities[head, 0, ids] * chosen.log_weights[head][0].exp()
        assert (times - times.round()).abs().max() < 1e-4
        assert int(times.round().sum()) == budget
        mean = (times @ values()[head, ids]) / budget
        assert (total[head * GROUP] / mass[head * GROUP] - mean).abs().max() < 1e-4


def test_an_oracle_draws_anew_at_each_position_layer_and_seed() -> None:
    among, q = candidates(), queries()
    same_keys = Candidates([among.keys[0]] * 2, among.open, among.scale)
    drawn = [
        Oracle(same_keys, 40, seed).select(layer, q, position).ids[0].tolist()
        for seed, layer, position in ((1, 0, 0), (1, 0, 1), (1, 1, 0), (2, 0, 0), (1, 0, 0))
    ]
    assert drawn[0] == drawn[4]
    assert all(drawn[0] != other for other in drawn[1:4])


def test_quest_takes_the_pages_that_could_hold_the_highest_logits() -> None:
    among, q = candidates(), queries()
    chosen = Quest(among, 4 * PAGE).select(0, q, 0)
    pages = among.keys[0][:, : TOKENS // PAGE * PAGE].unflatten(1, (-1, PAGE))
    ends = torch.stack([pages.amin(2), pages.amax(2)])
    bound = (q[None, :, :, None] * ends[:, :, None]).amax(0).sum(-1)  # [Hkv, G, pages]
    whole = slice(2, 17)  # pages all of whose keys are open
    for head in range(KV_HEADS):
        for h in range(GROUP):
            used = chosen.ids[head][chosen.log_weights[head][h] == 0]
            taken = {page for page in (used // PAGE).unique().tolist() if whole.start <= page < whole.stop}
            best = bound[head, h, whole].topk(len(taken)).indices + whole.start
            assert taken == set(best.tolist())
            assert 4 * PAGE <= len(used) < 5 * PAGE


def test_no_key_of_a_page_exceeds_its_bound() -> None:
    among, q = candidates(), queries()
    least, greatest, _ = Quest(among, PAGE)._bounds[0]
    bound = torch.bmm(q.clamp_min(0), greatest.mT) + torch.bmm(q.clamp_max(0), least.mT)
    logits = among.logits(0, q) / among.scale
    assert (logits <= bound.repeat_interleave(PAGE, -1)[..., :TOKENS] + 1e-4).all()


def test_quest_with_pages_for_all_is_dense_and_reads_two_bounds_a_page() -> None:
    is_dense(Quest(candidates(), TOKENS), candidates())
    assert Quest(candidates(dtype=torch.bfloat16), 30).select(1, queries(), 0).index_bytes == 2 * KV_HEADS * 17 * DIM * 2


@pytest.mark.parametrize("made", [lambda a: TopK(a, 9), lambda a: Oracle(a, 9, 1), lambda a: Quest(a, 9)], ids=["top-k", "oracle", "quest"])
def test_with_nothing_open_nothing_is_chosen(made: object) -> None:
    among = candidates(closed=TOKENS // 2)
    chosen = made(among).select(0, queries(), 0)  # type: ignore[operator]
    assert chosen.rows == chosen.keys == chosen.index_bytes == 0
