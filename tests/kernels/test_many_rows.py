"""Attention of many rows in torch equals plain softmax attention in float64, with its masses and its scores."""

from __future__ import annotations

import pytest
import torch

from kernels import many_rows
from tests.kernels.attention_case import FEW, MANY, Case, off, one_sequence, summed, two_sequences


def attended(case: Case) -> tuple[torch.Tensor, torch.Tensor]:
    return many_rows.attend(case.q, case.positions, iter(case.blocks), case.scale, case.softcap, case.window)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=["bf16", "fp32"])
@pytest.mark.parametrize("rows", [FEW, MANY])
@pytest.mark.parametrize("group", [1, 3])
def test_it_equals_plain_attention(group: int, rows: int, dtype: torch.dtype) -> None:
    case = one_sequence(64, group, rows, dtype)
    out, lse = attended(case)
    truth = case.truth()
    assert off(out, truth[0]) < 2e-5
    assert off(lse, truth[1]) < 2e-5


def test_caps_and_windows_are_those_of_the_layer() -> None:
    case = one_sequence(64, 3, MANY)
    case.softcap, case.window = 3.0, 50
    assert off(attended(case)[0], case.truth()[0]) < 2e-5


def test_rows_read_their_own_blocks_alone() -> None:
    case = two_sequences(20)
    assert off(attended(case)[0], case.truth()[0]) < 2e-5


def test_a_block_longer_than_is_taken_at_once_is_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    case = one_sequence(64, 3, MANY)
    monkeypatch.setattr(many_rows, "AT_ONCE", 100)
    assert off(attended(case)[0], case.truth()[0]) < 2e-5


def test_a_row_that_sees_nothing_has_no_mass() -> None:
    case = Case(16, 1, [3, 40]).block(10, 20)
    out, lse = attended(case)
    assert out[0].count_nonzero() == 0
    assert lse[0].tolist() == [-torch.inf] * 2
    assert lse[1].isfinite().all()


def test_scores_are_probabilities_summed_over_rows_and_heads_of_a_group() -> None:
    case = one_sequence(64, 3, MANY)
    groups = ((0, 10), (25, 40))
    scores, lse = case.no_scores(2), attended(case)[1]
    many_rows.add_scores(scores, case.score_of(*groups), lse, case.q, case.positions, iter(case.blocks), case.scale)
    assert off(scores, summed(case, *groups)) < 1e-4
