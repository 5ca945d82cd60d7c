"""Attention over chosen keys is the softmax over them; it merges with the rest of a sequence; choosing nothing weighs nothing."""

from __future__ import annotations

import pytest
import torch

from kernels import cpu, gathering, reference
from kernels.cpu import gather
from kernels.reference import Block
from tests.kernels.attention_case import needs_library, off

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


def test_what_is_read_whole_joins_what_was_chosen() -> None:
    (first, chosen_from, tail), q = blocks(3, 6, 4), queries(2)
    positions = torch.tensor([9, 10])
    ids, weights = [torch.tensor([4, 3, 8])] * 4, [torch.zeros(GROUP, 3)] * 4
    out, lse = gathering.attend(q, [chosen_from], ids, weights, 0.25, 0.0, [first, tail], positions)
    for row in range(2):
        seen = [0, 1, 2, 3, 4, 8, *range(9, 10 + row)]
        k, v = (torch.cat([getattr(block, name) for block in (first, chosen_from, tail)], 1)[:, seen] for name in ("k", "v"))
        expected = reference.attend(q[row : row + 1], torch.tensor([99]), [Block(k, v, 0, 0, 1)], 0.25)
        assert torch.allclose(out[row], expected[0][0])
        assert torch.allclose(lse[row], expected[1][0])


# ---- the native kernel ----


class Case:
    """Rows that choose some keys of ragged blocks beside two that are read whole."""

    def __init__(self, dim: int = 64, group: int = 3, rows: int = 2, dtype: torch.dtype = torch.bfloat16, share: float = 0.3) -> None:
        draw, position, made = torch.Generator().manual_seed(4), 0, []
        for length in (4, 700, 1, 333, rows + 7):
            k, v = torch.randn(2, KV_HEADS, length, dim, generator=draw).to(dtype)
            made.append(Block(k, v, position, 0, 1 << 20))
            position += length
        self.whole, self.blocks = [made[0], made[-1]], made[1:-1]
        self.q = torch.randn(rows, KV_HEADS * group, dim, generator=draw)
        self.positions = torch.arange(rows, dtype=torch.int32) + made[-1].position
        self.ids, self.weights, self.softcap = [], [], 0.0
        for _ in range(rows * KV_HEADS):
            self.ids.append(4 + (torch.rand(1034, generator=draw) < share).nonzero().flatten().int())
            on_top = 3 * torch.rand(group, len(self.ids[-1]), generator=draw)
            self.weights.append(on_top.masked_fill(torch.rand(on_top.shape, generator=draw) < 0.5, -torch.inf))

    def native(self) -> tuple[torch.Tensor, torch.Tensor]:
        whole, blocks = cpu.BlockList(self.whole), cpu.BlockList(self.blocks)
        return gather.attend(self.q, self.positions, whole, blocks, self.ids, self.weights, self.q.shape[-1] ** -0.5, self.softcap)

    def is_right(self) -> None:
        by = self.ids, self.weights, self.q.shape[-1] ** -0.5, self.softcap
        out, lse = gathering.attend(self.q.double(), self.blocks, *by, self.whole, self.positions)
        got = self.native()
        assert off(got[0], out) < 3e-6
        assert off(got[1], lse) < 3e-6


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=["bf16", "fp32"])
@pytest.mark.parametrize("dim", [16, 64, 80, 96, 128, 256])
def test_every_head_size_equals_the_reference(isa: str, dim: int, dtype: torch.dtype) -> None:
    Case(dim, dtype=dtype).is_right()


@pytest.mark.parametrize("group", range(1, 9))
def test_every_group_of_query_heads_equals_the_reference(isa: str, group: int) -> None:
    Case(group=group).is_right()


@pytest.mark.parametrize("share", [0.0, 0.001, 1.0])
def test_choosing_nothing_little_and_everything_equal_the_reference(isa: str, share: float) -> None:
    Case(share=share).is_right()


def test_capped_logits_equal_the_reference(isa: str) -> None:
    case = Case()
    case.softcap = 1.5
    case.is_right()


def test_choosing_nothing_beside_nothing_has_no_mass(isa: str) -> None:
    case = Case(share=0.0)
    case.whole = []
    out, lse = case.native()
    assert (out == 0).all()
    assert (lse == -torch.inf).all()


@needs_library
def test_a_rows_bits_depend_on_no_other_row_and_no_number_of_threads(isa: str) -> None:
    case = Case(rows=4)
    together = case.native()
    torch.set_num_threads(3)
    assert all(torch.equal(a, b) for a, b in zip(case.native(), together, strict=True))
    whole = case.q, case.positions, case.ids, case.weights
    for row in range(4):
        of_row = slice(row * KV_HEADS, (row + 1) * KV_HEADS)
        case.q, case.positions, case.ids, case.weights = (
            whole[0][row : row + 1],
            whole[1][row : row + 1],
            whole[2][of_row],
            whole[3][of_row],
        )
        assert torch.equal(case.native()[0][0], together[0][row])
