"""Attention on the GPU equals the reference, and a row is the same in every bit whatever rows stand beside it."""

from __future__ import annotations

import pytest

pytest.importorskip("triton")

import torch

from kernels import gpu
from kernels.gpu import merging
from kernels.reference import Block
from tests.kernels.attention_case import KV_HEADS, Case, off, two_sequences
from tests.kernels.gpu.device import NEAR, blocks_there, there


def attend(case: Case, rows: slice = slice(None)) -> tuple[torch.Tensor, torch.Tensor]:
    """What the kernel gives for these rows alone, whose blocks all rows must share."""
    blocks = blocks_there(case.blocks)
    if rows != slice(None):
        blocks = [Block(block.k, block.v, block.position, 0, 1 << 30) for block in blocks]
    q, positions = there(case.q[rows].contiguous()), there(case.positions[rows].contiguous())
    out, lse = gpu.attend(q, positions, blocks, case.scale, case.softcap, case.window)
    return out.cpu(), lse.cpu()


def same(case: Case) -> None:
    got, expected = attend(case), case.truth()
    for ours, true in zip(got, expected[:2], strict=True):
        assert torch.equal(torch.isneginf(ours), torch.isneginf(true))
        assert off(ours.nan_to_num(neginf=0), true.nan_to_num(neginf=0)) < NEAR


def chain(dim: int, group: int, rows: int, dtype: torch.dtype = torch.bfloat16) -> Case:
    """The last tokens of two ragged segments and a tail that is half full."""
    return Case(dim, group, range(110, 110 + rows), dtype).block(75, 0).block(30, 75).block(40, 105)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=["bf16", "fp32"])
@pytest.mark.parametrize("dim", [16, 64, 80, 128])
def test_every_head_size_equals_the_reference(dim: int, dtype: torch.dtype) -> None:
    same(chain(dim, 2, 2, dtype))


@pytest.mark.parametrize(("group", "rows"), [(1, 1), (3, 6), (8, 2), (20, 1)])
def test_every_number_of_rows_and_query_heads_equals_the_reference(group: int, rows: int) -> None:
    same(chain(16, group, rows))


def test_blocks_longer_than_a_chunk_equal_the_reference() -> None:
    same(Case(16, 2, [590, 600]).block(580, 0).block(30, 580))


def test_capped_logits_equal_the_reference() -> None:
    case = chain(16, 3, 2)
    case.softcap = 1.5
    same(case)


@pytest.mark.parametrize("window", [1, 20, 64, 1000])
def test_a_window_hides_what_lies_before_it(window: int) -> None:
    case = chain(16, 3, 3)
    case.window = window
    same(case)


def test_rows_read_only_their_own_blocks() -> None:
    same(two_sequences(2))


def test_a_row_that_sees_nothing_gives_zero_with_no_mass() -> None:
    case = Case(16, 2, [3, 40]).block(20, 10)
    same(case)
    out, lse = attend(case)
    assert not out[0].any()
    assert torch.isneginf(lse[0]).all()
    assert torch.isfinite(lse[1]).all()


def test_without_blocks_there_is_no_mass() -> None:
    out, lse = gpu.attend(there(torch.randn(2, 4, 16)), there(torch.zeros(2, dtype=torch.int32)), [], 1.0)
    assert not out.any()
    assert torch.isneginf(lse).all()


def test_what_no_row_sees_may_be_anything() -> None:
    case = chain(16, 2, 2)
    expected = attend(case)
    for part in (case.blocks[-1].k, case.blocks[-1].v):
        part[:, case.positions[-1] + 1 - 105 :] = torch.nan
    assert torch.equal(attend(case)[0], expected[0])


# ---- what doesn't change a bit ----


def test_neighbours_change_no_bit_of_a_row() -> None:
    case = chain(16, 3, 6)
    together = attend(case)
    for rows in (slice(0, 1), slice(4, 6)):
        alone = attend(case, rows)
        assert torch.equal(alone[0], together[0][rows])
        assert torch.equal(alone[1], together[1][rows])


def test_another_sequence_in_the_call_changes_no_bit_of_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """However their blocks stand between one another: with more chunks than are merged at a time."""
    monkeypatch.setattr(merging, "TOGETHER", 4)
    case = Case(16, 1, [90, 90])
    alone = Case(16, 1, [90])
    alone.q = case.q[1:].contiguous()
    for at in range(0, 90, 15):
        case.block(15, at, (0, 1)).block(15, at, (1, 2))
        alone.blocks.append(Block(case.blocks[-1].k, case.blocks[-1].v, at, 0, 1))
    assert torch.equal(attend(case)[0][1:], attend(alone)[0])


def test_room_behind_the_last_row_changes_no_bit() -> None:
    case, longer = Case(16, 2, [40]).block(41, 0), Case(16, 2, [40]).block(41, 0)
    for at in range(41, 400, 256):
        longer.block(256, at)
    assert torch.equal(attend(case)[0], attend(longer)[0])


# ---- what is refused ----


def test_keys_that_are_not_aligned_are_refused() -> None:
    k = torch.zeros(KV_HEADS, 8, 20, dtype=torch.bfloat16)[..., 2:18]
    with pytest.raises(ValueError, match="multiples of 16 bytes"):
        gpu.BlockList([Block(k, k, 0, 0, 1)])


def test_blocks_of_two_types_are_refused() -> None:
    blocks = [Block(*torch.zeros(2, KV_HEADS, 8, 16, dtype=dtype), 0, 0, 1) for dtype in (torch.bfloat16, torch.float32)]
    with pytest.raises(ValueError, match="one dtype"):
        gpu.BlockList(blocks)
