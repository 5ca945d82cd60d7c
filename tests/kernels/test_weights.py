"""Products with packed and plain rows: right, and the same in every bit whatever rows stand beside a row."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from kernels import cpu, reference
from kernels.packings import PACKINGS, Band, plain, unpack
from tests.kernels.test_packings import random_blocks

pytestmark = pytest.mark.skipif(cpu.native() is None, reason="no native library")
LAYOUTS = (*PACKINGS, "bf16", "f32")
SHAPES = ((960, 576), (576, 576), (576, 1536), (3072, 576))
"""Matrices of the default model, and a head of it."""


@pytest.fixture(params=cpu.instruction_sets())
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    before = cpu.native()
    cpu.use_instruction_set(request.param)
    yield request.param
    cpu.use_instruction_set(before or "baseline")


def band(layout: str, rows: int, columns: int, seed: int = 0) -> Band:
    if layout in PACKINGS:
        return Band(PACKINGS[layout], random_blocks(layout, rows, columns, seed))
    weight = torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))
    return plain(weight.to(torch.bfloat16 if layout == "bf16" else torch.float32))


def x_of(rows: int, columns: int) -> torch.Tensor:
    """Float32 numbers that bf16 holds: where there are dot products of bf16 pairs, rows are rounded to it."""
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(9)).to(torch.bfloat16).float()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_product_is_that_of_the_unpacked_numbers(isa: str, layout: str) -> None:
    matrix, x = cpu.Matrix([band(layout, 77, 512)], 512), x_of(16, 512)
    truth = reference.linear(x.double(), matrix.bands)
    assert (cpu.linear(x, matrix) - truth).abs().max() < 2e-6 * truth.abs().max()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_row_is_the_same_in_every_bit_beside_any_others(isa: str, layout: str) -> None:
    matrix, x = cpu.Matrix([band(layout, 77, 512)], 512), x_of(16, 512)
    together = cpu.linear(x, matrix)
    for count in range(1, 17):
        assert torch.equal(cpu.linear(x[:count], matrix), together[:count]), count
        assert torch.equal(cpu.linear(x[16 - count :], matrix), together[16 - count :]), count


@pytest.mark.parametrize(("rows", "columns"), SHAPES)
@pytest.mark.parametrize("layout", ["q4_1", "q8_0", "bf16"])
def test_the_default_models_shapes_are_row_invariant_for_any_number_of_threads(layout: str, rows: int, columns: int) -> None:
    matrix, x = cpu.Matrix([band(layout, rows, columns)], columns), x_of(16, columns)
    threads = torch.get_num_threads()
    try:
        results = []
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            results.append(cpu.linear(x, matrix))
            for n in (1, 2, 5, 7, 8, 9, 13):
                assert torch.equal(cpu.linear(x[:n], matrix), results[0][:n]), (count, n)
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(results[0], results[1])
    assert torch.equal(results[0], results[2])


@pytest.mark.parametrize("layout", PACKINGS)
def test_packed_and_unpacked_rows_give_the_same_bits(isa: str, layout: str) -> None:
    packed = band(layout, 40, 512)
    same, x = plain(unpack(packed.packing, packed.data)), x_of(3, 512)
    assert torch.equal(cpu.linear(x, cpu.Matrix([packed], 512)), cpu.linear(x, cpu.Matrix([same], 512)))


@pytest.mark.parametrize("layout", PACKINGS)
def test_unpacking_in_bulk_gives_the_very_numbers_of_the_layout(isa: str, layout: str) -> None:
    packed, out = band(layout, 40, 512), torch.empty(40, 512, dtype=torch.bfloat16)
    cpu.unpack(packed.packing, packed.data, out)
    assert torch.equal(out, unpack(packed.packing, packed.data))


@pytest.mark.parametrize("columns", [32, 48, 80, 96, 100, 576])
def test_plain_rows_may_have_any_length(isa: str, columns: int) -> None:
    for layout in ("bf16", "f32"):
        matrix, x = cpu.Matrix([band(layout, 5, columns)], columns), x_of(5, columns)
        truth = reference.linear(x.double(), matrix.bands)
        assert (cpu.linear(x, matrix) - truth).abs().max() < 2e-6 * truth.abs().max()


def test_bands_of_several_layouts_stand_below_one_another_with_their_bias(isa: str) -> None:
    bands = [band("q4_k", 30, 512), band("q6_k", 7, 512, 1), band("bf16", 41, 512, 2)]
    bias, x = torch.arange(78.0), x_of(6, 512)
    got = cpu.linear(x, cpu.Matrix(bands, 512, bias))
    truth = reference.linear(x.double(), bands, bias)
    assert (got - truth).abs().max() < 2e-5 * truth.abs().max()


def test_rows_are_normalised_on_the_way(isa: str) -> None:
    matrix, x, norm = cpu.Matrix([band("bf16", 33, 100)], 100), x_of(4, 100) * 7, torch.rand(100) + 0.5
    truth = reference.linear(x.double(), matrix.bands, None, norm, 1e-5)
    assert (cpu.linear(x, matrix, norm, 1e-5) - truth).norm() < 4e-3 * truth.norm()  # half a bit of bf16


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=["bf16", "fp32"])
def test_products_of_many_rows_are_those_of_the_unpacked_numbers(isa: str, layout: str, dtype: torch.dtype) -> None:
    matrix, x = cpu.Matrix([band(layout, 77, 512)], 512), x_of(37, 512).to(dtype)
    truth = reference.linear(x.double(), matrix.bands)
    got = cpu.linear_many(x, matrix)
    assert got.dtype == dtype
    assert (got - truth).abs().max() < (2**-8 if dtype == torch.bfloat16 else 2e-6) * truth.abs().max()


def test_one_of_many_rows_is_the_same_in_every_bit_beside_any_others_and_for_any_number_of_threads(isa: str) -> None:
    matrix, x = cpu.Matrix([band("q4_k", 100, 768)], 768), x_of(300, 768)
    together = cpu.linear_many(x, matrix)
    for count, threads in ((1, 1), (17, 2), (128, 3), (129, 8), (299, 2)):
        torch.set_num_threads(threads)
        assert torch.equal(cpu.linear_many(x[:count], matrix), together[:count]), count
        assert torch.equal(cpu.linear_many(x[300 - count :], matrix), together[300 - count :]), count


@pytest.mark.parametrize("rows", [511, 512, 513, 1200])
def test_more_rows_than_one_task_takes_are_all_multiplied(isa: str, rows: int) -> None:
    matrix, x = cpu.Matrix([band("q8_0", 30, 64)], 64), x_of(rows, 64)
    truth = reference.linear(x.double(), matrix.bands)
    assert (cpu.linear_many(x, matrix) - truth).abs().max() < 2e-6 * truth.abs().max()


@pytest.mark.parametrize("columns", [32, 48, 100, 576, 800])
def test_many_rows_meet_plain_ones_of_any_length(isa: str, columns: int) -> None:
    for layout in ("bf16", "f32"):
        matrix, x = cpu.Matrix([band(layout, 25, columns)], columns), x_of(18, columns)
        truth = reference.linear(x.double(), matrix.bands)
        assert (cpu.linear_many(x, matrix) - truth).abs().max() < 2e-6 * truth.abs().max()


def test_many_rows_meet_bands_of_several_layouts_and_their_bias(isa: str) -> None:
    bands = [band("q4_k", 30, 512), band("q6_k", 7, 512, 1), band("bf16", 41, 512, 2)]
    bias, x = torch.arange(78.0), x_of(20, 512)
    truth = reference.linear(x.double(), bands, bias)
    assert (cpu.linear_many(x, cpu.Matrix(bands, 512, bias)) - truth).abs().max() < 2e-6 * truth.abs().max()
