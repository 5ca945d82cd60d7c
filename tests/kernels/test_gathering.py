"""Attention over chosen keys is the softmax over them; it merges with the rest of a sequence; choosing nothing weighs nothing."""

from __future__ import annotations

import torch

from kernels import gathering, reference
from kernels.reference import Block

KV_HEADS, GROUP, DIM = 2, 3, 16


def blocks(*lengths: int) -> list[Block]:
    draw, position, made = torch.Generator().manual_seed(1), 0, []
    for length in lengths:
        k, v = torch.randn(2, KV_HEADS, length, DIM, generator=draw, dtype=torch.float64)
        made.append(Block(k, v, position, 0, 1))
        position += length
    return made


def queries(rows: int = 1) -> torch.Tensor:
    return torch.randn(rows, KV_HEADS * GROUP, DIM, generator=torch.Generator().manual_seed(2), dtype=torch.float64)


def test_all_keys_with_no_weights_are_plain_attention() -> None:
    read, q = blocks(5, 7), queries()
    ids, weights = [torch.arange(12)] * KV_HEADS, [torch.zeros(GROUP, 12)] * KV_HEADS
    for softcap in (0.0, 1.5):
        got = gathering.attend(q, read, ids, weights, 0.25, softcap)
        expected = reference.attend(q, torch.tensor([11]), read, 0.25, softcap)
        assert all(torch.allclose(a, b) for a, b in zip(got, expected, strict=True))


def test_a_log_weight_is_as_good_as_so_many_equal_keys() -> None:
    (block,), q = blocks(4), queries()
    twice = Block(torch.cat([block.k, block.k[:, 2:3]], 1), torch.cat([block.v, block.v[:, 2:3]], 1), 0, 0, 1)
    weights = torch.zeros(GROUP, 4, dtype=torch.float64)
    weights[:, 2] = torch.tensor(2.0).double().log()
    got = gathering.attend(q, [block], [torch.arange(4)] * KV_HEADS, [weights] * KV_HEADS, 0.25)
    expected = reference.attend(q, torch.tensor([4]), [twice], 0.25)
    assert all(torch.allclose(a, b) for a, b in zip(got, expected, strict=True))


def test_each_row_and_head_uses_its_own_keys() -> None:
    read, q = blocks(6), queries(2)
    ids = [torch.tensor(of) for of in ([1, 2], [0, 5], [3], [2, 4])]
    weights = [torch.zeros(GROUP, len(of)) for of in ids]
    weights[1][0, 1] = -torch.inf
    out, _ = gathering.attend(q, read, ids, weights, 0.25)
    assert torch.allclose(out[0, GROUP], read[0].v[1, 0])
    assert torch.allclose(out[1, 0], read[0].v[0, 3])
    logits = q[0, GROUP + 1] @ read[0].k[1, [0, 5]].mT * 0.25
    assert torch.allclose(out[0, GROUP + 1], logits.softmax(-1) @ read[0].v[1, [0, 5]])


def test_a_head_without_keys_has_no_mass() -> None:
    ids, weights = [torch.tensor([], dtype=torch.int32), torch.tensor([1])], [torch.zeros(GROUP, 0), torch.full((GROUP, 1), -torch.inf)]
    out, lse = gathering.attend(queries(), blocks(3), ids, weights, 0.25)
    assert (out == 0).all()
    assert (lse == -torch.inf).all()
