"""Soft caps and sliding windows: attention equals plain attention with them, and what lies outside a window is not read."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tests.kernels.attention_case import FEW, MANY, Case, attends, near, off, one_sequence, summed


@attends
@pytest.mark.parametrize("rows", [1, FEW, MANY])
@pytest.mark.parametrize("softcap", [0.5, 5.0, 50.0])
def test_a_cap_bends_every_logit(isa: str, softcap: float, rows: int, attend: Callable[[Case], torch.Tensor]) -> None:
    case = one_sequence(64, 3, rows)
    uncapped = attend(case)
    case.softcap = softcap
    assert off(attend(case), case.truth()[0]) < near(case)
    assert (attend(case) - uncapped).abs().max() > 1e-2


@pytest.mark.parametrize("rows", [FEW, MANY])
def test_a_cap_holds_very_large_logits(isa: str, rows: int) -> None:
    case = one_sequence(64, 3, rows, torch.float32)
    case.q *= 1e4
    case.softcap = 2.0
    assert off(case.attend(), case.truth()[0]) < near(case)


@attends
@pytest.mark.parametrize("rows", [1, FEW, MANY])
@pytest.mark.parametrize("window", [1, 2, 16, 71, 256, 257, 300, 5000])
def test_a_window_hides_what_is_further_back(isa: str, window: int, rows: int, attend: Callable[[Case], torch.Tensor]) -> None:
    case = one_sequence(64, 3, rows)
    case.window = window
    assert off(attend(case), case.truth()[0]) < near(case)


@attends
@pytest.mark.parametrize("rows", [4, 20])
def test_sequences_at_different_positions_have_their_own_windows(isa: str, rows: int, attend: Callable[[Case], torch.Tensor]) -> None:
    case = Case(64, 3, [*range(900, 900 + rows), *range(10, 10 + rows)])
    case.block(700, 0, (0, 2 * rows)).block(300, 700, (0, 2 * rows))
    case.window, case.softcap = 37, 4.0
    assert off(attend(case), case.truth()[0]) < near(case)


@pytest.mark.parametrize("rows", [FEW, MANY])
def test_what_no_row_sees_is_not_read(isa: str, rows: int) -> None:
    case = Case(64, 3, range(1500, 1500 + rows)).block(1024, 0).block(600, 1024)
    case.window = 100
    expected = case.attend()
    case.blocks[0].k[:] = case.blocks[0].v[:] = torch.nan
    case.blocks[1].k[:, :256] = case.blocks[1].v[:, :256] = torch.nan
    assert torch.equal(case.attend(), expected)


@pytest.mark.parametrize("rows", [FEW, MANY])
def test_scores_are_those_of_capped_logits_within_the_window(isa: str, rows: int) -> None:
    case = one_sequence(64, 2, rows)
    case.window, case.softcap = 90, 3.0
    scores = case.scored((0, rows))
    assert off(scores, summed(case, (0, rows))) < 2.5 * near(case)
    ours = torch.zeros_like(scores)
    case.reference(ours, case.score_of((0, rows)))
    assert off(scores, ours.double()) < 2.5 * near(case)
