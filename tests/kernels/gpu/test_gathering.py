"""Attention over chosen keys equals plain softmax over them, with their log weights on top."""

from __future__ import annotations

import pytest

pytest.importorskip("triton")

import torch

from kernels import gpu
from tests.kernels.attention_case import KV_HEADS, off
from tests.kernels.gpu.device import NEAR, there


class Chosen:
    """Rows that each read `chosen` keys of T; own: whether each row has ids of its own."""

    def __init__(
        self, rows: int = 2, group: int = 3, chosen: int = 70, dim: int = 16, own: bool = False, dtype: torch.dtype = torch.bfloat16
    ):
        self.random = torch.Generator().manual_seed(0)
        self.k, self.v = (torch.randn(KV_HEADS, 400, dim, generator=self.random).to(dtype) for _ in range(2))
        self.q = 2 * torch.randn(rows, KV_HEADS * group, dim, generator=self.random)
        shape = (rows, KV_HEADS, chosen) if own else (KV_HEADS, chosen)
        self.ids = torch.rand(*shape[:-1], 400, generator=self.random).argsort(-1)[..., :chosen].int().contiguous()
        self.log_weights = torch.randn((*shape[:-2], KV_HEADS * group, chosen), generator=self.random)
        self.log_weights[torch.rand(self.log_weights.shape, generator=self.random) < 0.3] = -torch.inf
        self.scale, self.softcap = dim**-0.5, 0.0

    def attend(self) -> tuple[torch.Tensor, torch.Tensor]:
        tensors = (there(each) for each in (self.q, self.k, self.v, self.ids, self.log_weights))
        out, lse = gpu.attend_gathered(*tensors, self.scale, self.softcap)
        return out.cpu(), lse.cpu()

    def truth(self) -> tuple[torch.Tensor, torch.Tensor]:
        rows, heads, _ = self.q.shape
        group = heads // KV_HEADS
        out, lse = torch.zeros(self.q.shape, dtype=torch.float64), torch.zeros(rows, heads, dtype=torch.float64)
        for row in range(rows):
            for head in range(heads):
                ids = (self.ids[row] if self.ids.dim() == 3 else self.ids)[head // group].long()
                weights = (self.log_weights[row] if self.log_weights.dim() == 3 else self.log_weights)[head].double()
                logits = self.k[head // group, ids].double() @ self.q[row, head].double() * self.scale
                if self.softcap:
                    logits = self.softcap * torch.tanh(logits / self.softcap)
                logits = logits + weights
                lse[row, head] = logits.logsumexp(-1)
                out[row, head] = logits.softmax(-1) @ self.v[head // group, ids].double()
        return out, lse

    def same(self) -> None:
        for ours, true in zip(self.attend(), self.truth(), strict=True):
            assert off(ours, true) < NEAR


@pytest.mark.parametrize("own", [False, True], ids=["shared", "own"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=["bf16", "fp32"])
def test_chosen_keys_weigh_what_their_log_weights_say(own: bool, dtype: torch.dtype) -> None:
    Chosen(own=own, dtype=dtype).same()


@pytest.mark.parametrize(("group", "dim"), [(1, 80), (8, 64), (20, 16)])
def test_every_number_of_query_heads_and_head_size(group: int, dim: int) -> None:
    Chosen(1, group, 40, dim).same()


def test_more_keys_than_a_chunk_are_read() -> None:
    Chosen(1, 2, 300).same()


def test_capped_logits_get_their_weights_uncapped() -> None:
    case = Chosen()
    case.softcap = 1.5
    case.same()


def test_a_head_that_uses_no_key_has_no_mass() -> None:
    case = Chosen(1, 2)
    case.log_weights[1] = -torch.inf
    out, lse = case.attend()
    assert not out[0, 1].any()
    assert lse[0, 1] == -torch.inf
    assert torch.isfinite(lse[0, [0, 2, 3]]).all()


def test_an_id_that_no_head_uses_may_be_anything() -> None:
    case = Chosen()
    case.log_weights[:, 5:9] = -torch.inf
    expected = case.attend()
    case.ids[:, 5:9] = 2**30
    assert torch.equal(case.attend()[0], expected[0])


def test_without_chosen_keys_there_is_no_mass() -> None:
    out, lse = Chosen(chosen=0).attend()
    assert not out.any()
    assert torch.isneginf(lse).all()


def test_neighbours_change_no_bit_of_a_row() -> None:
    case = Chosen(rows=4)
    together = case.attend()
    case.q = case.q[2:3].contiguous()
    assert torch.equal(case.attend()[0], together[0][2:3])
