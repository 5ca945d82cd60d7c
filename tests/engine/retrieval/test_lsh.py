"""LSH through the interface: what it draws is weighed right, parts are indexed apart, what is read anyway is never drawn."""

from __future__ import annotations

import pytest
import torch

from engine.attention.in_memory import InMemory
from engine.retrieval import lsh
from engine.retrieval.lsh import Lsh
from kernels.lsh import MOST_KEYS
from tests.engine.retrieval.selecting import CLOSED, DIM, GROUP, KV_HEADS, TOKENS, candidates, estimate, everything, is_dense, near, queries

LENGTHS = [TOKENS - CLOSED]


def test_over_seeds_sums_are_right_on_the_average() -> None:
    among, q = candidates(), queries()
    made = [Lsh(among, [100, TOKENS - CLOSED - 100], 3, 14, seed).select(0, q, 0) for seed in range(100)]
    sums = [estimate(among, 0, q, chosen) for chosen in made]
    counts = torch.stack([torch.cat([weights.double().exp().sum(1) for weights in chosen.log_weights]) for chosen in made])
    values, mass = everything(among, 0, q)
    near(torch.stack([value for value, _ in sums]), values)
    near(torch.stack([each for _, each in sums]), mass)
    near(counts, among.open[0].sum(-1).repeat_interleave(GROUP).double())


def test_with_many_tables_of_one_bit_it_is_dense() -> None:
    is_dense(Lsh(candidates(), LENGTHS, 1, 200), candidates())
    is_dense(Lsh(candidates(), [50, 130, TOKENS - CLOSED - 180], 1, 200), candidates())


def test_closed_keys_are_never_drawn_though_tables_have_them() -> None:
    among = candidates()
    chosen = Lsh(among, LENGTHS, 1, 60).select(0, queries(), 0)
    for head, ids in enumerate(chosen.ids):
        assert among.open[0, head, ids.long()].all()


def test_what_is_read_to_choose_is_counted() -> None:
    among = candidates()
    chosen = Lsh(among, LENGTHS, 1, 200).select(0, queries(), 0)
    entries = KV_HEADS * GROUP * 200 * (TOKENS - CLOSED) / 2
    assert chosen.index_bytes == pytest.approx(2 * entries + KV_HEADS * GROUP * 200 * 4 + 4 * chosen.rows, rel=0.05)


def test_tables_take_two_bytes_a_key_and_one_more_for_each_code() -> None:
    keys = TOKENS - CLOSED
    of_head = 20 * (2 * keys + 2 * (2**5 + 1)) + 4 * keys + 4 * DIM
    assert Lsh(candidates(), LENGTHS, 5, 20).bytes == 2 * KV_HEADS * of_head


def test_open_keys_before_the_first_part_are_refused() -> None:
    with pytest.raises(ValueError, match="first part"):
        Lsh(candidates(), [100], 3, 14)


def test_a_part_ends_with_a_segment_that_is_not_full() -> None:
    def segments(*lengths: int) -> list[InMemory]:
        return [InMemory(torch.empty(1, 2, 1, length, 0)) for length in lengths]

    def split(*lengths: int) -> list[list[int]]:
        return [[kv.tokens for kv in run] for run in lsh.runs(segments(*lengths))]

    assert split(1024, 1024, 300, 1024, 5, 7) == [[1024, 1024, 300], [1024, 5], [7]]
    assert split() == []
    assert [sum(run) for run in split(*[1024] * 70)] == [63 * 1024, 7 * 1024]
    assert MOST_KEYS >= 63 * 1024
