"""Attention over lists of blocks equals plain softmax attention in float64, whatever the shapes, the instruction set and the neighbours."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from kernels import cpu, reference
from kernels.reference import Block
from tests.kernels.attention_case import FEW, KV_HEADS, MANY, Case, attends, near, off, one_sequence, reference_out, summed, two_sequences


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=["bf16", "fp32"])
@pytest.mark.parametrize("rows", [FEW, MANY])
@pytest.mark.parametrize("dim", [16, 64, 80, 96, 128, 256])
def test_every_head_size_equals_plain_attention(isa: str, dim: int, rows: int, dtype: torch.dtype) -> None:
    case = one_sequence(dim, 3, rows, dtype)
    assert off(case.attend(), case.truth()[0]) < near(case)


@pytest.mark.parametrize("rows", [1, FEW, MANY])
@pytest.mark.parametrize("group", range(1, 9))
def test_every_group_of_query_heads_equals_plain_attention(isa: str, group: int, rows: int) -> None:
    case = one_sequence(64, group, rows)
    assert off(case.attend(), case.truth()[0]) < near(case)


@attends
@pytest.mark.parametrize("dim", [8, 24, 272])
def test_a_head_size_without_a_native_kernel_equals_plain_attention(dim: int, attend: Callable[[Case], torch.Tensor]) -> None:
    case = one_sequence(dim, 3, FEW)
    assert off(attend(case), case.truth()[0]) < near(case)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=["bf16", "fp32"])
@pytest.mark.parametrize("group", [1, 3, 8])
def test_the_reference_equals_plain_attention(group: int, dtype: torch.dtype) -> None:
    case = one_sequence(64, group, FEW, dtype)
    assert off(reference_out(case), case.truth()[0]) < 2e-5


def test_the_reference_gives_the_logarithm_of_the_denominator() -> None:
    case = two_sequences(4)
    assert off(case.reference()[1], case.truth()[1]) < 2e-5


@pytest.mark.parametrize("rows", [FEW, MANY])
@pytest.mark.parametrize("dim", [64, 24], ids=["native", "without a native kernel"])
def test_the_logarithm_of_the_denominator_is_given_where_asked(isa: str, dim: int, rows: int) -> None:
    case = one_sequence(dim, 3, rows)
    lse = torch.empty(rows, case.q.shape[1])
    cpu.attend(case.q, case.positions, cpu.BlockList(case.blocks), case.scale, lse=lse)
    assert off(lse, case.truth()[1]) < near(case)


def test_the_reference_computes_in_float64_where_queries_are() -> None:
    case = one_sequence(64, 3, FEW)
    out = reference.attend(case.q.double(), case.positions, case.blocks, case.scale)[0]
    assert off(out, case.truth()[0]) < 1e-13


@pytest.mark.parametrize("rows", [FEW, MANY])
@pytest.mark.parametrize("lengths", [[1], [1, 1, 1], [255, 256, 257], [3, 512, 2, 1000], [64] * 20], ids=str)
def test_ragged_blocks_equal_plain_attention(isa: str, lengths: list[int], rows: int) -> None:
    total = sum(lengths)
    case = Case(32, 2, [total - 1] * rows)
    position = 0
    for length in lengths:
        case.block(length, position)
        position += length
    assert off(case.attend(), case.truth()[0]) < near(case)


@attends
@pytest.mark.parametrize("rows", [4, 20])
def test_sequences_that_share_a_block_read_only_their_own(isa: str, rows: int, attend: Callable[[Case], torch.Tensor]) -> None:
    case = two_sequences(rows)
    assert off(attend(case), case.truth()[0]) < near(case)


@pytest.mark.parametrize("rows", [4, 20])
def test_a_later_sequence_may_stand_at_earlier_positions(isa: str, rows: int) -> None:
    """Its rows don't see all of a shared block, and those of the first do."""
    case = Case(64, 3, [*range(400, 400 + rows), *range(10, 10 + rows)])
    case.block(300, 0, (0, 2 * rows)).block(200, 300, (0, 2 * rows))
    assert off(case.attend(), case.truth()[0]) < near(case)


@attends
@pytest.mark.parametrize("rows", [FEW, MANY])
def test_what_stands_behind_a_row_changes_nothing(isa: str, rows: int, attend: Callable[[Case], torch.Tensor]) -> None:
    """Causal rows over a tail that is listed with its whole capacity."""
    case = one_sequence(64, 3, rows)
    before = attend(case)
    tail = case.blocks[-1]
    unwritten = int(case.positions[-1]) + 1 - tail.position
    tail.k[:, unwritten:] = 3e4
    tail.v[:, unwritten:] = -3e4
    assert torch.equal(attend(case), before)


@attends
@pytest.mark.parametrize("rows", [FEW, MANY])
def test_a_row_that_sees_nothing_gets_zeros(isa: str, rows: int, attend: Callable[[Case], torch.Tensor]) -> None:
    case = Case(64, 3, [-1, *range(1, rows)]).block(10, 0).block(300, 10)
    out = attend(case)
    assert torch.equal(out[0], torch.zeros_like(out[0]))
    assert off(out, case.truth()[0]) < near(case)


def test_a_row_that_sees_nothing_has_no_denominator() -> None:
    case = Case(64, 3, [-1, 4]).block(10, 0)
    lse = case.reference()[1]
    assert torch.isneginf(lse[0]).all()
    assert torch.isfinite(lse[1]).all()


def test_without_blocks_every_row_gets_zeros() -> None:
    case = Case(64, 3, [0, 1])
    assert torch.equal(case.attend(), torch.zeros_like(case.q))


def test_blocks_that_are_pieces_of_larger_memory_are_read_in_place(isa: str) -> None:
    case = one_sequence(64, 3, FEW)
    expected = case.attend()
    roomy = []
    for block in case.blocks:
        memory = torch.full((2, KV_HEADS, block.k.shape[1] + 13, 64), 7.0, dtype=block.k.dtype)
        memory[0, :, 5:-8], memory[1, :, 5:-8] = block.k, block.v
        roomy.append(Block(memory[0, :, 5:-8], memory[1, :, 5:-8], block.position, block.row_begin, block.row_end))
    case.blocks = roomy
    assert torch.equal(case.attend(), expected)


def test_very_large_logits_stay_finite(isa: str) -> None:
    case = one_sequence(64, 3, FEW, torch.float32)
    case.q *= 1e4
    assert off(case.attend(), case.truth()[0]) < 1e-3


# ---- probabilities ----


@pytest.mark.parametrize("rows", [(0, 5), (4, 5), (1, 3)], ids=str)
@pytest.mark.parametrize("dim", [16, 80, 24])
def test_scores_are_the_probabilities_of_the_chosen_rows(isa: str, dim: int, rows: tuple[int, int]) -> None:
    case = one_sequence(dim, 3, FEW)
    assert off(case.scored(rows), summed(case, rows)) < 1e-5


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=["bf16", "fp32"])
@pytest.mark.parametrize("rows", [(0, MANY), (MANY - 1, MANY), (2, MANY - 3)], ids=str)
def test_scores_of_many_rows_are_the_probabilities_of_the_chosen_rows(isa: str, rows: tuple[int, int], dtype: torch.dtype) -> None:
    case = one_sequence(64, 2, MANY, dtype)
    assert off(case.scored(rows), summed(case, rows)) < 2.5 * near(case)


@pytest.mark.parametrize(("rows", "groups"), [(FEW, ((0, 1), (2, 5))), (MANY, ((1, 8), (8, MANY)))], ids=str)
def test_each_group_of_rows_is_scored_apart(isa: str, rows: int, groups: tuple[tuple[int, int], ...]) -> None:
    case = one_sequence(64, 3, rows)
    assert off(case.scored(*groups), summed(case, *groups)) < 2.5 * near(case)


@pytest.mark.parametrize("softcap", [0.0, 2.0])
def test_scores_of_many_rows_know_window_and_softcap(isa: str, softcap: float) -> None:
    case = one_sequence(64, 3, MANY)
    case.softcap, case.window = softcap, 37
    assert off(case.scored((3, MANY)), summed(case, (3, MANY))) < 2.5 * near(case)


@pytest.mark.parametrize("rows", [(0, 8), (2, 6)], ids=str)
def test_scores_of_several_sequences_stand_at_the_keys_they_read(isa: str, rows: tuple[int, int]) -> None:
    case = two_sequences(4)
    assert off(case.scored(rows), summed(case, rows)) < 1e-5


def test_the_reference_gives_the_same_scores() -> None:
    case, groups = two_sequences(4), ((0, 2), (3, 6))
    scores = case.no_scores(2)
    case.reference(scores, case.score_of(*groups))
    assert off(scores, summed(case, *groups)) < 1e-5


def test_scores_are_added_to_what_was_there(isa: str) -> None:
    case = one_sequence(64, 3, FEW)
    scores = torch.ones_like(case.no_scores(1))
    for _ in range(2):
        case.scored((0, FEW), into=scores)
    assert off(scores, 1 + 2 * summed(case, (0, FEW))) < 2e-5


def test_asking_for_scores_changes_no_bit_of_the_answer(isa: str) -> None:
    case = one_sequence(64, 3, FEW)
    scores, of = case.no_scores(1), case.score_of((0, 1))
    assert torch.equal(
        cpu.attend(case.q, case.positions, cpu.BlockList(case.blocks), case.scale, scores=scores, score_of=of), case.attend()
    )


def test_a_row_that_sees_nothing_scores_nothing(isa: str) -> None:
    case = Case(64, 3, [-1, 4]).block(10, 0)
    scores = case.scored((0, 1))
    assert torch.equal(scores, torch.zeros_like(scores))
