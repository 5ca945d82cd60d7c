"""Exact attention reads chains and tails in place: right answers, each block once, every byte counted."""

from __future__ import annotations

from collections.abc import Sequence as Run
from dataclasses import replace

import pytest
import torch

from engine.attention.exact import Exact
from engine.attention.in_memory import InMemory
from engine.attention.sequence import Rows, Sequence, Tail
from engine.model.config import ModelConfig
from kernels import cpu

CONFIG = ModelConfig(
    family="llama",
    layers=3,
    hidden=96,
    heads=6,
    kv_heads=2,
    head_dim=16,
    intermediate=160,
    vocab=320,
    rope_theta=10000.0,
    rms_eps=1e-5,
    tied=True,
    window=4096,
    bos=1,
    eos=(2,),
)
SLIDING = replace(CONFIG, layer_kinds=("full", "sliding", "nope"), sliding_window=5)
LAYERS, HEADS, KV_HEADS, DIM = CONFIG.layers, CONFIG.heads, CONFIG.kv_heads, CONFIG.head_dim
TOKEN_BYTES = 2 * KV_HEADS * DIM * 4  # K and V of one layer in float32


class Step:
    """Random queries, keys and values of one call for `count` rows in all."""

    def __init__(self, count: int, seed: int = 0) -> None:
        draw = torch.Generator().manual_seed(seed)
        self.q = torch.randn(count, HEADS, DIM, generator=draw)
        self.k, self.v = (torch.randn(count, KV_HEADS, DIM, generator=draw) for _ in range(2))

    def read(self, attention: Exact, rows: Rows, layers: Run[int] = (0,)) -> torch.Tensor:
        """The last layer's answer."""
        out = torch.empty(0)
        for layer in layers:
            out = attention.attend(layer, self.q, self.k, self.v, rows)
        rows.advance()
        return out


def segment(tokens: int, seed: int) -> InMemory:
    return InMemory(torch.randn(LAYERS, 2, KV_HEADS, tokens, DIM, generator=torch.Generator().manual_seed(seed)))


def sequence(*chain: InMemory) -> Sequence:
    return Sequence(chain, Tail(CONFIG, torch.float32, 4))


def plain(q: torch.Tensor, sequence: Sequence, layer: int = 0) -> torch.Tensor:
    """[N, Hq, D] float64: what the last N positions of a sequence read, by softmax over all before and at each."""
    blocks = [*sequence.chain, InMemory(sequence.tail.kv[:, :, :, : sequence.tail.length])]
    k = torch.cat([kv.key(layer) for kv in blocks], 1).double().repeat_interleave(HEADS // KV_HEADS, 0)  # [Hq, T, D]
    v = torch.cat([kv.value(layer) for kv in blocks], 1).double().repeat_interleave(HEADS // KV_HEADS, 0)
    logits = torch.einsum("nhd,htd->nht", q.double(), k) * DIM**-0.5
    rows, keys = len(q), k.shape[1]
    hidden = torch.ones(rows, keys, dtype=torch.bool).triu(keys - rows + 1)
    return torch.einsum("nht,htd->nhd", logits.masked_fill(hidden[:, None], -torch.inf).softmax(-1), v)


# ---- what is read ----


def test_rows_read_their_chain_their_tail_and_themselves() -> None:
    read, attention = sequence(segment(9, 1), segment(4, 2)), Exact(CONFIG)
    for seed, count in enumerate((3, 1, 5)):
        step = Step(count, seed)
        out = step.read(attention, Rows([(read, count)]))
        assert (out - plain(step.q, read)).abs().max() < 1e-5


def test_every_layer_reads_its_own_keys() -> None:
    read, attention, step = sequence(segment(9, 1)), Exact(CONFIG), Step(2)
    out = step.read(attention, Rows([(read, 2)]), layers=(0, 2))
    assert (out - plain(step.q, read, layer=2)).abs().max() < 1e-5


def test_a_tail_that_had_to_move_is_read_where_it_is_now() -> None:
    read, attention = sequence(segment(9, 1)), Exact(CONFIG)
    for seed in range(12):  # the tail grows from 4 to 8 to 16
        step = Step(1, seed)
        out = step.read(attention, Rows([(read, 1)]))
        assert (out - plain(step.q, read)).abs().max() < 1e-5


def test_another_sequence_of_the_same_shape_is_not_mistaken_for_the_last() -> None:
    attention, step = Exact(CONFIG), Step(2)
    for seed in (1, 2):
        read = sequence(segment(9, seed))
        assert (step.read(attention, Rows([(read, 2)])) - plain(step.q, read)).abs().max() < 1e-5


@pytest.mark.parametrize("counts", [(2, 3), (1, 1), (20, 30)], ids=str)
def test_sequences_of_one_call_read_their_own_tails_behind_a_shared_chain(counts: tuple[int, int]) -> None:
    shared = segment(300, 1)
    first, second = sequence(shared), sequence(shared, segment(7, 2))
    step = Step(sum(counts))
    out = step.read(Exact(CONFIG), Rows([(first, counts[0]), (second, counts[1])]))
    assert (out[: counts[0]] - plain(step.q[: counts[0]], first)).abs().max() < 1e-5
    assert (out[counts[0] :] - plain(step.q[counts[0] :], second)).abs().max() < 1e-5


def test_scale_cap_and_window_are_those_of_the_model() -> None:
    config = replace(SLIDING, attention_scale=0.5, attention_softcap=2.0)
    read, step = sequence(segment(9, 1)), Step(2)
    out = step.read(Exact(config), Rows([(read, 2)]), layers=(1,))
    k, v = (torch.cat([part(1), read.tail.kv[1, at, :, :2]], 1) for at, part in enumerate((read.chain[0].key, read.chain[0].value)))
    logits = torch.einsum("nhd,htd->nht", step.q, k.repeat_interleave(HEADS // KV_HEADS, 0)) * 0.5
    keys, own = torch.arange(11), torch.tensor([[9], [10]])
    weights = (2 * torch.tanh(logits / 2)).masked_fill(((keys > own) | (keys <= own - 5))[:, None], -torch.inf).softmax(-1)
    assert (out - torch.einsum("nht,htd->nhd", weights, v.repeat_interleave(HEADS // KV_HEADS, 0))).abs().max() < 1e-5


# ---- lists of blocks ----


def listed(rows: Rows) -> list[tuple[int, int, int, int]]:
    """(tokens, position, first row, end row) of all that is read."""
    return [(each.tokens, each.position, each.row_begin, each.row_end) for each in rows.stretches()]


def test_a_chain_shared_by_neighbours_is_listed_once_for_all_their_rows() -> None:
    shared = [segment(9, 1), segment(5, 2)]
    rows = Rows([(sequence(*shared), 2), (sequence(*shared), 3), (sequence(*shared), 1)])
    assert listed(rows) == [(9, 0, 0, 6), (5, 9, 0, 6), (4, 14, 0, 2), (4, 14, 2, 5), (4, 14, 5, 6)]


def test_only_the_common_beginning_is_shared() -> None:
    common = segment(9, 1)
    rows = Rows([(sequence(common, segment(5, 2)), 2), (sequence(common, segment(6, 3)), 3)])
    assert listed(rows) == [(9, 0, 0, 5), (5, 9, 0, 2), (6, 9, 2, 5), (4, 14, 0, 2), (4, 15, 2, 5)]


def test_a_segment_at_another_position_is_not_shared() -> None:
    common = segment(9, 1)
    rows = Rows([(sequence(common), 1), (sequence(segment(5, 2), common), 1)])
    assert listed(rows) == [(9, 0, 0, 1), (5, 0, 1, 2), (9, 5, 1, 2), (4, 9, 0, 1), (4, 14, 1, 2)]


def test_sequences_that_are_no_neighbours_share_nothing() -> None:
    common, other = segment(9, 1), segment(9, 2)
    rows = Rows([(sequence(common), 1), (sequence(other), 1), (sequence(common), 1)])
    assert [block[:4] for block in listed(rows)[:3]] == [(9, 0, 0, 1), (9, 0, 1, 2), (9, 0, 2, 3)]


def test_a_list_is_made_once_while_nothing_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    real = cpu.BlockList
    monkeypatch.setattr(cpu, "BlockList", lambda blocks: made.append(1) or real(blocks))
    read, attention = Sequence([segment(9, 1)], Tail(CONFIG, torch.float32, 64)), Exact(CONFIG)
    for seed in range(5):
        Step(1, seed).read(attention, Rows([(read, 1)]), range(LAYERS))
    assert len(made) == LAYERS


# ---- bytes ----


def test_bytes_read_are_those_of_chain_tail_and_new_rows() -> None:
    read, attention = sequence(segment(9, 1)), Exact(CONFIG)
    Step(3).read(attention, Rows([(read, 3)]))
    assert attention.bytes_read == (9 + 3) * TOKEN_BYTES
    Step(1).read(attention, Rows([(read, 1)]), range(LAYERS))
    assert attention.bytes_read == (9 + 3) * TOKEN_BYTES + LAYERS * (9 + 4) * TOKEN_BYTES


def test_a_chain_read_by_several_sequences_is_counted_once() -> None:
    shared, attention = segment(9, 1), Exact(CONFIG)
    Step(3).read(attention, Rows([(sequence(shared), 1), (sequence(shared), 2)]))
    assert attention.bytes_read == (9 + 1 + 2) * TOKEN_BYTES


def test_of_a_sliding_layer_only_the_window_is_counted() -> None:
    read, attention = sequence(segment(6, 1), segment(7, 2)), Exact(SLIDING)
    Step(2).read(attention, Rows([(read, 2)]), layers=(1,))
    assert attention.bytes_read == (4 + 2) * TOKEN_BYTES  # the first row at 13 sees 9 to 13, the second 10 to 14
    Step(1).read(attention, Rows([(read, 1)]), layers=(1, 2))
    assert attention.bytes_read == (4 + 2) * TOKEN_BYTES + 5 * TOKEN_BYTES + (6 + 7 + 3) * TOKEN_BYTES


def test_of_a_chain_shared_by_sliding_sequences_what_any_sees_is_counted() -> None:
    shared, attention = segment(9, 1), Exact(SLIDING)
    Step(2).read(attention, Rows([(sequence(shared), 1), (sequence(shared, segment(2, 2)), 1)]), layers=(1,))
    assert attention.bytes_read == (4 + 1 + 2 + 1) * TOKEN_BYTES


# ---- watching ----


def test_watched_attention_of_a_row_sums_to_heads_times_layers() -> None:
    read, attention = sequence(segment(300, 1)), Exact(CONFIG, range(1, 3))
    for seed, count in enumerate((4, 1, 1)):
        Step(count, seed).read(attention, Rows([(read, count)]), range(LAYERS))
    assert attention.watched(range(LAYERS)).sum(1).tolist() == pytest.approx([HEADS * 2], rel=1e-5)


@pytest.mark.parametrize("rows", [3, cpu.FEW + 4])
def test_each_position_gets_the_mean_of_what_the_rows_give_it(rows: int) -> None:
    read, attention, step = sequence(segment(6, 1)), Exact(CONFIG, range(1)), Step(rows)
    step.read(attention, Rows([(read, rows)]))
    expected = given(step, read).mean(0)
    assert (attention.watched(range(LAYERS))[0, : 6 + rows] - expected).abs().max() < 1e-5


@pytest.mark.parametrize("rows", [4, cpu.FEW + 4])
def test_groups_of_rows_are_watched_apart(rows: int) -> None:
    read, attention, step = sequence(segment(6, 1)), Exact(CONFIG, range(1)), Step(rows)
    attention.watch((7, 9, 6 + rows))
    step.read(attention, Rows([(read, rows)]))
    first, second, none = attention.watched(range(LAYERS))[:, : 6 + rows]
    each = given(step, read)
    assert (first - each[1:3].mean(0)).abs().max() < 1e-5
    assert (second - each[3:].mean(0)).abs().max() < 1e-5
    assert not none.any()


def given(step: Step, read: Sequence) -> torch.Tensor:
    """[rows, positions]: what plain attention of one step in the first layer gives, summed over heads."""
    rows, before = len(step.q), read.chain_length
    k = torch.cat([*(kv.key(0) for kv in read.chain), read.tail.kv[0, 0, :, :rows]], 1).repeat_interleave(HEADS // KV_HEADS, 0)
    logits = torch.einsum("nhd,htd->nht", step.q, k) * DIM**-0.5
    hidden = torch.arange(before + rows) > torch.arange(before, before + rows)[:, None]
    return logits.masked_fill(hidden[:, None], -torch.inf).softmax(-1).sum(1)


def test_positions_watched_before_a_tail_moved_keep_what_they_got() -> None:
    moved, still = Exact(CONFIG, range(1)), Exact(CONFIG, range(1))
    small, large = (Sequence((segment(6, 1),), Tail(CONFIG, torch.float32, capacity)) for capacity in (1, 64))
    for attention, read in ((moved, small), (still, large)):
        for seed in range(1, 8):
            Step(1, seed).read(attention, Rows([(read, 1)]))
    assert (moved.watched(range(LAYERS))[:, :13] - still.watched(range(LAYERS))[:, :13]).abs().max() < 1e-6


def test_layers_that_are_not_watched_add_nothing() -> None:
    read, attention = sequence(segment(6, 1)), Exact(CONFIG, range(1, 2))
    Step(1).read(attention, Rows([(read, 1)]), layers=(0, 2))
    assert not attention.watched(range(LAYERS)).any()


def test_sliding_layers_are_watched_only_where_no_other_is() -> None:
    read, attention = sequence(segment(6, 1)), Exact(SLIDING, range(1, 3))
    Step(1).read(attention, Rows([(read, 1)]), range(LAYERS))
    assert attention.watched((1, 2)).sum().item() == pytest.approx(HEADS, rel=1e-5)
    read, attention = sequence(segment(6, 1)), Exact(SLIDING, range(1, 2))
    Step(1).read(attention, Rows([(read, 1)]), range(LAYERS))
    watched = attention.watched((1,))[0]
    assert watched.sum().item() == pytest.approx(HEADS, rel=1e-5)
    assert watched[:2].sum() == 0


def test_watching_anew_counts_from_zero() -> None:
    read, attention = sequence(segment(6, 1)), Exact(CONFIG, range(1))
    Step(2).read(attention, Rows([(read, 2)]))
    attention.watch((read.length,))
    assert not attention.watched(range(LAYERS)).any()
    Step(1).read(attention, Rows([(read, 1)]))
    assert attention.watched(range(LAYERS)).sum().item() == pytest.approx(HEADS, rel=1e-5)


def test_calls_with_several_sequences_are_not_watched() -> None:
    attention = Exact(CONFIG, range(LAYERS))
    Step(2).read(attention, Rows([(sequence(segment(6, 1)), 1), (sequence(segment(6, 2)), 1)]))
    assert not attention.watched(range(LAYERS)).any()


def test_watching_changes_no_bit_of_the_answer() -> None:
    chain, step = segment(300, 1), Step(2)
    plain_out, watched_out = (step.read(attention, Rows([(sequence(chain), 2)])) for attention in (Exact(CONFIG), Exact(CONFIG, range(1))))
    assert torch.equal(plain_out, watched_out)
