"""The native hash tables are those of the reference, and what is read by them is what the reference reads, in float64."""

from __future__ import annotations

import pytest
import torch

from kernels import cpu, lsh
from kernels.cpu import lsh as native
from kernels.lsh import Index, IndexedBlock
from kernels.reference import Block
from tests.kernels.attention_case import needs_library, off
from tests.kernels.lsh_case import KV_HEADS, LshCase

DTYPES = pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=["bf16", "fp32"])


def same(case: LshCase, near: float = 1e-5) -> None:
    """The native answer is the reference's, key for key."""
    got, expected = case.native(), case.reference()
    assert torch.equal(got.read, expected.read)
    assert off(got.out, expected.out) < near
    assert off(got.lse, expected.lse) < near


@DTYPES
@pytest.mark.parametrize("dim", [16, 64, 80, 96, 128, 256])
def test_every_head_size_equals_the_reference(isa: str, dim: int, dtype: torch.dtype) -> None:
    same(LshCase(dim=dim, dtype=dtype))


@pytest.mark.parametrize("group", range(1, 9))
def test_every_group_of_query_heads_equals_the_reference(isa: str, group: int) -> None:
    same(LshCase(group=group, certain=0.05))


@pytest.mark.parametrize(("bits", "tables"), [(1, 2), (2, 3), (3, 40), (8, 75), (9, 120), (10, 150), (11, 300)])
def test_every_kind_of_tables_equals_the_reference(isa: str, bits: int, tables: int) -> None:
    same(LshCase(bits=bits, tables=tables))


@pytest.mark.parametrize("lengths", [((1,),), ((15, 16, 17),), ((1024, 5), (3,), (700,)), ((1, 1, 1),)], ids=str)
def test_ragged_blocks_equal_the_reference(isa: str, lengths: tuple[tuple[int, ...], ...]) -> None:
    same(LshCase(lengths, certain=0.1))


def test_capped_logits_equal_the_reference(isa: str) -> None:
    case = LshCase()
    case.softcap = 1.5
    same(case)


def test_keys_and_queries_without_length_equal_the_reference(isa: str) -> None:
    case = LshCase(((64,),), dtype=torch.float32)
    block = case.indexed[0].blocks[0]
    block.k[:, :9] = 0
    block.k[:] -= block.k.sum(1, keepdim=True) / 55
    block.k[:, :9] = 0  # where the centre is, but for rounding
    case.q[0, 1] = 0
    index = native.build([block], case.directions)
    index.norms[:, :9] = 0
    index.centres[:] = 0
    case.indexed = [IndexedBlock([block], index)]
    same(case)


def test_keys_along_the_query_have_no_weight_on_top(isa: str) -> None:
    """Cosines beyond 1 by rounding are 1."""
    case = LshCase(((40,),), dtype=torch.float32, group=1, rows=1, bits=10, tables=50, whole=False)
    keys = case.q.view(KV_HEADS, 1, case.dim) * torch.linspace(0.1, 3, 40)[:, None]
    block = case.indexed[0].blocks[0]
    block.k[:] = keys - keys.mean(1, keepdim=True)
    case.indexed = [IndexedBlock([block], native.build([block], case.directions))]
    got, logits = case.native(), torch.einsum("hd,htd->ht", case.q[0], block.k) * case.scale
    assert torch.isfinite(got.out).all()
    ahead = (logits > 1e-4).sum(1)
    assert (got.read[0, :, 0] == ahead).all()
    assert off(got.lse[0], logits.masked_fill(logits < 1e-4, -torch.inf).logsumexp(1)) < 1e-5


@pytest.mark.parametrize(("bits", "tables"), [(1, 2), (2, 9), (4, 3), (10, 150), (11, 300)])
def test_the_weight_on_top_is_the_formulas_at_every_angle(isa: str, bits: int, tables: int) -> None:
    """Tables that have all keys where the query looks, and values that tell what each key weighed."""
    case = LshCase(((64,),), dim=64, dtype=torch.float32, group=1, rows=1, bits=bits, tables=tables, whole=False)
    cos, along = torch.linspace(-0.97, 0.99, 64), case.q[0] / case.q[0].norm(dim=-1, keepdim=True)
    across = torch.randn(KV_HEADS, 64, 64, generator=case.draw)
    across -= (across @ along[:, :, None]) * along[:, None]
    across /= across.norm(dim=-1, keepdim=True)
    block = case.indexed[0].blocks[0]
    block.k[:] = cos[:, None] * along[:, None] + (1 - cos.square()).sqrt()[:, None] * across
    block.v[:] = torch.eye(64)
    built = native.build([block], case.directions)
    looked_at = lsh.codes(case.q[0].view(KV_HEADS, 1, 64), case.hashing)[:, 0, :, None]
    starts = 64 * (torch.arange((1 << bits) + 1) > looked_at)
    case.indexed = [IndexedBlock([block], Index(torch.zeros_like(built.centres), block.k.norm(dim=-1), starts.to(torch.uint16), built.ids))]
    got = case.native()
    logits = torch.einsum("hd,htd->ht", case.q[0].double(), block.k.double()) * case.scale
    on_top = got.out[0].double().log() + got.lse[0].double()[:, None] - logits
    log_u = lsh.log_inclusion(torch.einsum("hd,htd->ht", along.double(), block.k.double()), bits, tables)
    seen = got.out[0] > 1e-30
    assert ((on_top + log_u).abs() < 2e-5 * (1 + log_u.abs()) + (1e-3 * (log_u < -6)))[seen].all()
    assert seen.sum() > 40


def test_tables_are_those_of_the_reference_but_for_signs_of_next_to_nothing(isa: str) -> None:
    case = LshCase(((200, 57),), bits=7, tables=33)
    got, expected = case.indexed[0].index, lsh.build(torch.cat([block.k for block in case.indexed[0].blocks], 1), case.hashing)
    assert off(got.centres, expected.centres) < 1e-6
    assert off(got.norms, expected.norms) < 1e-6
    assert (got.starts.int() != expected.starts.int()).float().mean() < 1e-3
    assert (got.ids.int() != expected.ids.int()).float().mean() < 1e-2


def test_counting_starts_afresh_at_every_look_up(isa: str) -> None:
    """Far more look-ups than a byte can number."""
    case = LshCase(rows=1)
    first = case.native()
    for _ in range(300):
        assert torch.equal(case.native().read, first.read)


@needs_library
def test_a_rows_bits_depend_on_no_other_row_and_no_number_of_threads(isa: str) -> None:
    case = LshCase(((1024, 300), (40,)), rows=5, certain=0.05)
    together = case.native()
    torch.set_num_threads(3)
    assert all(torch.equal(getattr(case.native(), name), getattr(together, name)) for name in ("out", "lse", "read"))
    q, positions = case.q, case.positions
    for row in range(5):
        case.q, case.positions = q[row : row + 1], positions[row : row + 1]
        alone = case.native()
        assert torch.equal(alone.out[0], together.out[row])
        assert torch.equal(alone.read[0], together.read[row])


def test_meeting_nothing_weighs_nothing(isa: str) -> None:
    case = LshCase(((30,),), bits=11, tables=2, whole=False)
    got = case.native()
    assert got.read[..., :2].abs().max() == 0
    assert (got.out == 0).all()
    assert (got.lse == -torch.inf).all()


def test_with_nothing_met_the_rest_is_plain_attention(isa: str) -> None:
    case = LshCase(((30,),), bits=11, tables=2)
    got, positions = case.native(), case.positions
    blocks = [Block(block.k, block.v, block.position, 0, len(positions)) for block in case.whole]
    plain = cpu.attend(case.q, positions, cpu.BlockList(blocks), case.scale)
    assert off(got.out, plain) < 1e-6


def test_certain_keys_are_read_once_and_never_weighed_up(isa: str) -> None:
    case = LshCase(((512,),), bits=11, tables=2, certain=0.2)
    got, expected = case.native(), case.indexed[0].is_certain().sum(1)
    assert got.read[0, :, 0].tolist() == expected.tolist()
    assert got.read[0, :, 1].tolist() == (3 * expected).tolist()


def test_too_many_keys_for_sixteen_bits_are_refused() -> None:
    case = LshCase(((16,),), dim=16, tables=2)
    block = case.indexed[0].blocks[0]
    with pytest.raises(ValueError, match="65535"):
        native.build([block] * 4096, case.directions)
