"""Keys are met as often as the formula says, weighed so that sums are right on the average, whatever their angle and length."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
import torch

from kernels import lsh
from kernels.lsh import Hashing, Index
from kernels.reference import Block
from tests.kernels.attention_case import off
from tests.kernels.lsh_case import KV_HEADS, LshCase

DIM = 24


def at_angles(q: torch.Tensor, cosines: torch.Tensor, seed: int = 0) -> torch.Tensor:
    """[T, D]: vectors with these cosines to q [D], of different lengths."""
    draw = torch.Generator().manual_seed(seed)
    across = torch.randn(len(cosines), len(q), generator=draw)
    along = q / q.norm()
    across -= (across @ along)[:, None] * along
    across /= across.norm(dim=-1, keepdim=True)
    turned = cosines[:, None] * along + (1 - cosines.square()).clamp_min(0).sqrt()[:, None] * across
    return turned * (0.5 + 2 * torch.rand(len(cosines), 1, generator=draw))


def uncentred(keys: torch.Tensor, hashing: Hashing) -> Index:
    """The index of keys [Hkv, T, D] as they are."""
    return lsh.index_of(keys, torch.zeros(len(keys), keys.shape[2]), hashing)


# ---- the formula ----


@pytest.mark.parametrize(
    ("bits", "tables", "published"),
    [
        (8, 75, (0.035, 0.084, 0.18, 0.34, 0.57, 0.80, 0.95)),
        (10, 150, (0.0097, 0.031, 0.087, 0.21, 0.44, 0.74, 0.94)),
        (11, 300, (0.0097, 0.035, 0.11, 0.28, 0.57, 0.86, 0.99)),
    ],
)
def test_the_probability_of_being_drawn_is_the_known_one(bits: int, tables: int, published: tuple[float, ...]) -> None:
    u = lsh.log_inclusion(torch.arange(7) / 10, bits, tables).exp()
    assert [float(f"{x:.2g}") for x in u.tolist()] == pytest.approx(list(published), rel=0.051)


@pytest.mark.parametrize(("bits", "tables"), [(1, 2), (3, 5), (10, 150), (11, 300)])
def test_it_is_right_where_it_is_tiny_and_where_it_is_almost_one(bits: int, tables: int) -> None:
    for cos in (-0.9, -0.5, -0.3, -0.2, -0.1, 0.0, 0.2, 0.5, 0.9, 0.99):
        meeting = Fraction(1 - math.acos(cos) / math.pi) ** bits
        u = 1 - (1 - meeting) ** tables - tables * meeting * (1 - meeting) ** (tables - 1)
        exact = math.log(u.numerator) - math.log(u.denominator)
        got = float(lsh.log_inclusion(torch.tensor(cos, dtype=torch.float64), bits, tables))
        assert got == pytest.approx(exact, abs=1e-3 if (tables - 1) * meeting < 1e-3 else 1e-9)


@pytest.mark.parametrize(("bits", "tables"), [(1, 2), (4, 20), (10, 150)])
def test_it_stays_finite_at_the_ends(bits: int, tables: int) -> None:
    ends = lsh.log_inclusion(torch.tensor([1.0, 1.0 + 1e-6, -1.0, -1.0 - 1e-6]), bits, tables)
    assert ends[:2].abs().max() == 0
    assert torch.isfinite(ends).all()
    assert (ends[2:] < -12).all()


# ---- drawing ----


def test_keys_are_met_as_often_as_the_formula_says() -> None:
    """By bins of the cosine, over seeds of the directions."""
    q = torch.randn(DIM, generator=torch.Generator().manual_seed(5))
    cosines = torch.linspace(-0.6, 0.98, 240)
    keys, seeds = at_angles(q, cosines)[None], 120
    for bits, tables in ((2, 6), (5, 30)):
        met = torch.zeros(len(cosines))
        for seed in range(seeds):
            hashing = lsh.hashing(DIM, bits, tables, seed)
            counts, _ = lsh.collisions(q[None, None], uncentred(keys, hashing), hashing)
            met += counts[0, 0] >= 2
        u = lsh.log_inclusion(cosines, bits, tables).exp()
        for of_bin in torch.arange(len(cosines)).chunk(12):
            expected = u[of_bin].mean()
            # Keys of a bin are met together more often than apart: a bin counts as a few keys, not as twenty.
            allowed = 4.5 * float((expected * (1 - expected)).clamp_min(1e-4) / (seeds * 4)) ** 0.5
            assert abs(float(met[of_bin].mean() / seeds - expected)) < allowed


def test_weighed_counts_and_sums_are_right_on_the_average() -> None:
    case = LshCase(((120,),), dim=32, group=2, rows=1, dtype=torch.float32)
    q, (block,) = case.q[0].view(KV_HEADS, 2, 32), case.indexed[0].blocks
    true = torch.bmm(q.double(), block.k.double().mT).mul(case.scale).exp()
    counts, mass, values = [], [], []
    for seed in range(150):
        hashing = lsh.hashing(32, 3, 14, seed)
        weights = lsh.choose(q, block.k, lsh.build(block.k, hashing), hashing)[0].exp()
        counts.append(weights.sum(-1))
        mass.append((true * weights).sum(-1))
        values.append(torch.bmm(true * weights, block.v.double()))
    for drawn, expected in ((counts, torch.full((KV_HEADS, 2), 120.0)), (mass, true.sum(-1)), (values, torch.bmm(true, block.v.double()))):
        together = torch.stack(drawn)
        assert ((together.mean(0) - expected).abs() < 4.5 * together.std(0) / len(drawn) ** 0.5).all()


def test_with_many_tables_of_one_bit_it_is_dense_whatever_the_centres() -> None:
    """Indexes with different centres, and what is read whole, are parts of one softmax."""
    case = LshCase(((100, 30), (70,)), bits=1, tables=80, dtype=torch.float32)
    got = case.reference()
    blocks = [case.whole[0], *(block for each in case.indexed for block in each.blocks), case.whole[1]]
    expected = _dense(case, blocks)
    assert off(got.out, expected) < 1e-6
    assert got.read[..., 0].tolist() == [[200, 200]] * 2


def _dense(case: LshCase, blocks: list[Block]) -> torch.Tensor:
    k, v = (torch.cat([getattr(block, name) for block in blocks], 1).double() for name in ("k", "v"))
    grouped = case.q.double().view(len(case.q), KV_HEADS, -1, case.dim)
    logits = torch.einsum("nhgd,htd->nhgt", grouped, k) * case.scale
    hidden = torch.arange(k.shape[1]) > case.positions[:, None] - blocks[0].position
    weights = logits.masked_fill(hidden[:, None, None], -torch.inf).softmax(-1)
    return torch.einsum("nhgt,htd->nhgd", weights, v).reshape(case.q.shape)


def test_a_key_without_length_is_met_as_a_right_angle_is() -> None:
    q = torch.randn(1, 1, DIM, generator=torch.Generator().manual_seed(1))
    keys, met, seeds = torch.zeros(1, 3, DIM), 0, 300
    for seed in range(seeds):
        hashing = lsh.hashing(DIM, 3, 10, seed)
        index = uncentred(keys, hashing)
        met += int(lsh.collisions(q, index, hashing)[0][0, 0, 0] >= 2)
        assert (lsh.cosines(q, keys, index) == 0).all()
    u = float(lsh.log_inclusion(torch.tensor(0.0), 3, 10).exp())
    assert abs(met / seeds - u) < 4 * (u * (1 - u) / seeds) ** 0.5


def test_nothing_meets_nothing_in_every_table() -> None:
    hashing = lsh.hashing(DIM, 3, 10, 1)
    q, keys = torch.zeros(1, 1, DIM), torch.zeros(1, 3, DIM)
    weights, _ = lsh.choose(q, keys, uncentred(keys, hashing), hashing)
    assert (weights == 0).all()


def test_a_key_that_is_a_multiple_of_the_query_is_certain() -> None:
    q = torch.randn(1, 1, DIM, generator=torch.Generator().manual_seed(1))
    keys, hashing = torch.cat([q * 3, q * 0.01, -q], 1), lsh.hashing(DIM, 11, 20, 1)
    index = uncentred(keys, hashing)
    weights, _ = lsh.choose(q, keys, index, hashing)
    assert weights[0, 0, :2].tolist() == [0, 0]
    assert weights[0, 0, 2] == -torch.inf


# ---- building ----


def test_each_table_has_every_key_once_in_the_order_of_its_codes() -> None:
    case = LshCase(((300, 57),), bits=5, tables=9)
    keys = torch.cat([block.k for block in case.indexed[0].blocks], 1)
    index = lsh.build(keys, case.hashing)
    centred = keys.float() - keys.float().mean(1, keepdim=True)
    codes = lsh.codes(centred, case.hashing)
    for head in range(KV_HEADS):
        for table in range(9):
            ids, starts = index.ids[head, table].long(), index.starts[head, table].long()
            assert sorted(ids.tolist()) == list(range(357))
            of_table = codes[head, :, table]
            assert starts.diff().tolist() == torch.bincount(of_table, minlength=32).tolist()
            assert (of_table[ids].diff() >= 0).all()
    assert off(index.norms, centred.double().norm(dim=-1)) < 1e-5


def test_a_code_has_the_signs_of_its_own_directions() -> None:
    hashing = Hashing(3, 2, torch.eye(6))
    assert lsh.codes(torch.tensor([[-1.0, 1, -1, 1, -1, 1], [1, 1, 1, -1, -1, -1]]), hashing).tolist() == [[5, 2], [0, 7]]


@pytest.mark.parametrize(("bits", "tables"), [(0, 10), (12, 10), (4, 1), (4, 1025)])
def test_codes_that_cannot_be_are_refused(bits: int, tables: int) -> None:
    with pytest.raises(ValueError, match="bits|tables"):
        lsh.hashing(8, bits, tables, 1)
