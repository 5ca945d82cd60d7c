"""Parts of attention put together are attention over all of their keys."""

from __future__ import annotations

import pytest

pytest.importorskip("triton")

import torch

from kernels import gpu
from tests.kernels.attention_case import off
from tests.kernels.gpu.device import NEAR, there


def merge(outs: torch.Tensor, lses: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    out, lse = gpu.merge(there(outs), there(lses))
    return out.cpu(), lse.cpu()


@pytest.mark.parametrize("parts", [1, 2, 16, 35])
def test_parts_weigh_as_much_as_the_mass_they_saw(parts: int) -> None:
    outs, lses = torch.randn(parts, 3, 4, 20), torch.randn(parts, 3, 4) * 4
    out, lse = merge(outs, lses)
    assert off(out, (lses.double().softmax(0)[..., None] * outs).sum(0)) < NEAR
    assert off(lse, lses.double().logsumexp(0)) < NEAR


def test_a_part_without_mass_is_not_looked_at() -> None:
    outs, lses = torch.randn(3, 1, 2, 16), torch.randn(3, 1, 2)
    expected = merge(outs[[0, 2]].contiguous(), lses[[0, 2]].contiguous())
    outs[1], lses[1] = torch.nan, -torch.inf
    for ours, true in zip(merge(outs, lses), expected, strict=True):
        assert off(ours, true) < NEAR


def test_without_any_mass_there_is_nothing() -> None:
    out, lse = merge(torch.full((2, 1, 2, 16), torch.nan), torch.full((2, 1, 2), -torch.inf))
    assert not out.any()
    assert torch.isneginf(lse).all()


def test_parts_without_mass_behind_the_others_change_no_bit() -> None:
    outs, lses = torch.randn(40, 2, 3, 16), torch.randn(40, 2, 3)
    lses[21:] = -torch.inf
    for ours, true in zip(merge(outs, lses), merge(outs[:21], lses[:21]), strict=True):
        assert torch.equal(ours, true)


def test_masses_far_from_one_another_neither_overflow_nor_vanish() -> None:
    outs = torch.tensor([1.0, 2.0]).view(2, 1, 1, 1).expand(2, 1, 1, 16).contiguous()
    out, lse = merge(outs, torch.tensor([-1000.0, 1000.0]).view(2, 1, 1))
    assert (out == 2.0).all()
    assert lse.item() == 1000.0
