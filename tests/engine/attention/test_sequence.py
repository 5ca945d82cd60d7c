"""Which row is where, and that a tail keeps what was written into it."""

from __future__ import annotations

import pytest
import torch

from engine.attention.in_memory import InMemory
from engine.attention.sequence import Rows, Sequence, Tail
from engine.model.config import ModelConfig

CONFIG = ModelConfig(
    family="llama",
    layers=2,
    hidden=96,
    heads=6,
    kv_heads=2,
    head_dim=4,
    intermediate=160,
    vocab=320,
    rope_theta=10000.0,
    rms_eps=1e-5,
    tied=True,
    window=4096,
    bos=1,
    eos=(2,),
)


def segment(tokens: int) -> InMemory:
    return InMemory(torch.zeros(2, 2, 2, tokens, 4))


def tail(length: int = 0, capacity: int = 8) -> Tail:
    """A tail of `length` tokens whose content tells layer, K or V, head and position."""
    made = Tail(CONFIG, torch.float32, capacity)
    made.kv[:, :, :, :length] = torch.arange(2 * 2 * 2 * length * 4, dtype=torch.float32).view(2, 2, 2, length, 4)
    made.length = length
    return made


# ---- Tail ----


def test_a_tail_has_the_order_of_a_segment_file() -> None:
    assert tail(capacity=8).kv.shape == (2, 2, 2, 8, 4)  # layer, K or V, KV head, token, dim
    assert tail(capacity=8).kv.is_contiguous()


def test_what_is_written_stands_at_its_layer_and_positions() -> None:
    made = tail(capacity=8)
    k, v = torch.randn(3, 2, 4), torch.randn(3, 2, 4)
    made.write(1, 2, k, v)
    assert torch.equal(made.kv[1, 0, :, 2:5], k.transpose(0, 1))
    assert torch.equal(made.kv[1, 1, :, 2:5], v.transpose(0, 1))
    assert made.kv.count_nonzero() == 2 * k.numel()


def test_writing_rounds_to_the_dtype_of_the_tail() -> None:
    made = Tail(CONFIG, torch.bfloat16, 4)
    made.write(0, 0, torch.full((1, 2, 4), 1.001), torch.full((1, 2, 4), 1.003))
    assert made.kv[0, :, :, 0].tolist() == [[[1.0] * 4] * 2] * 2  # bf16 has 8 bits: 1.0078 comes after 1


def test_growing_keeps_the_content() -> None:
    made = tail(5, capacity=6)
    before = made.kv[:, :, :, :5].clone()
    made.reserve(100)
    assert made.capacity >= 100
    assert torch.equal(made.kv[:, :, :, :5], before)
    assert made.length == 5


def test_growing_leaves_zeros_where_nothing_is_written() -> None:
    made = tail(5, capacity=6)
    made.reserve(100)
    assert made.kv[:, :, :, 5:].count_nonzero() == 0


def test_growing_by_one_at_least_doubles_the_room() -> None:
    made = tail(6, capacity=6)
    made.reserve(7)
    assert made.capacity == 12


def test_room_that_is_there_is_not_made_anew() -> None:
    made = tail(5, capacity=8)
    memory = made.kv.data_ptr()
    made.reserve(8)
    assert made.kv.data_ptr() == memory


@pytest.mark.parametrize(("cut", "left"), [(3, 3), (0, 0), (5, 5), (9, 5)])
def test_a_cut_tail_has_at_most_that_many_tokens(cut: int, left: int) -> None:
    made = tail(5)
    made.cut(cut)
    assert made.length == left


def test_a_cut_tail_keeps_the_content_of_the_rest() -> None:
    made = tail(5)
    before = made.kv[:, :, :, :3].clone()
    made.cut(3)
    assert torch.equal(made.kv[:, :, :, :3], before)


# ---- Sequence ----


def test_a_sequence_is_as_long_as_its_chain_and_tail() -> None:
    sequence = Sequence([segment(7), segment(2)], tail(5))
    assert sequence.chain_length == 9
    assert sequence.length == 14


# ---- Rows ----


def test_rows_stand_behind_what_their_sequences_have_read() -> None:
    first, second = Sequence([segment(7)], tail(2)), Sequence([], tail(1))
    rows = Rows([(first, 3), (second, 2)])
    assert rows.positions.tolist() == [9, 10, 11, 1, 2]
    assert rows.positions.dtype is torch.int32
    assert rows.last_position == 11


def test_spans_name_the_rows_of_each_sequence() -> None:
    first, second = Sequence([], tail()), Sequence([], tail())
    assert Rows([(first, 3), (second, 2)]).spans() == [(first, 0, 3), (second, 3, 5)]


def test_rows_make_room_in_their_tails() -> None:
    sequence = Sequence([], tail(5, capacity=6))
    Rows([(sequence, 30)])
    assert sequence.tail.capacity >= 35


def test_rows_are_not_part_of_their_sequences_before_they_are_read() -> None:
    sequence = Sequence([segment(7)], tail(2))
    rows = Rows([(sequence, 3)])
    assert sequence.length == 9
    rows.advance()
    assert sequence.length == 12


def test_the_layout_changes_with_the_memory_of_a_tail() -> None:
    sequence = Sequence([], tail(5, capacity=6))
    before = Rows([(sequence, 1)]).layout
    assert Rows([(sequence, 1)]).layout == before
    sequence.tail.reserve(50)
    assert Rows([(sequence, 1)]).layout != before


def test_two_sequences_never_have_one_layout() -> None:
    shared = tail()
    assert Rows([(Sequence([], shared), 1)]).layout != Rows([(Sequence([], shared), 1)]).layout
