"""Products with packed and plain rows on the GPU: right, and the same in every bit whatever rows stand beside a row."""

from __future__ import annotations

import pytest

pytest.importorskip("triton")

import torch

from kernels import gpu, reference
from kernels.packings import PACKINGS, Band, plain, unpack
from tests.kernels.gpu.device import NEAR, there
from tests.kernels.test_packings import random_blocks

PACKED = ("q8_0", "q4_0", "q4_1")
LAYOUTS = (*PACKED, "bf16", "f32")


def band(layout: str, rows: int, columns: int, seed: int = 0) -> Band:
    if layout in PACKINGS:
        return Band(PACKINGS[layout], random_blocks(layout, rows, columns, seed))
    weight = torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))
    return plain(weight.to(torch.bfloat16 if layout == "bf16" else torch.float32))


def x_of(rows: int, columns: int) -> torch.Tensor:
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(9))


def linear(x: torch.Tensor, bands: list[Band], bias: torch.Tensor | None = None) -> torch.Tensor:
    there_bands = [Band(each.packing, there(each.data)) for each in bands]
    return gpu.linear(there(x), gpu.Matrix(there_bands, x.shape[1], None if bias is None else there(bias))).cpu()


def off(got: torch.Tensor, truth: torch.Tensor) -> float:
    """Relative to the largest."""
    return float((got - truth).abs().max() / truth.abs().max())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_product_is_that_of_the_unpacked_numbers(layout: str) -> None:
    x, matrix = x_of(3, 576), band(layout, 77, 576)
    assert off(linear(x, [matrix]), reference.linear(x.double(), [matrix])) < NEAR / 10


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_matrix_unpacks_to_the_numbers_it_was_made_of(layout: str) -> None:
    made = band(layout, 30, 64)
    expected = unpack(made.packing, made.data) if layout in PACKED else made.data
    assert torch.equal(gpu.unpack(gpu.Matrix([Band(made.packing, there(made.data))], 64)).cpu(), expected)


def test_bands_unpack_below_one_another() -> None:
    bands = [band("q4_1", 30, 64), band("q8_0", 10, 64)]
    expected = torch.cat([unpack(each.packing, each.data) for each in bands])
    assert torch.equal(gpu.unpack(gpu.Matrix([Band(each.packing, there(each.data)) for each in bands], 64)).cpu(), expected)


@pytest.mark.parametrize("layout", ["q4_1", "bf16"])
def test_rows_may_be_bf16(layout: str) -> None:
    x, matrix = x_of(2, 128).bfloat16(), band(layout, 20, 128)
    assert off(linear(x, [matrix]), reference.linear(x.double(), [matrix])) < NEAR / 10


@pytest.mark.parametrize("layout", PACKED)
def test_packed_and_unpacked_rows_give_the_same_bits(layout: str) -> None:
    """One number at a time, so that the order of sums says nothing."""
    packed = band(layout, 30, 64)
    for column in range(0, 64, 7):
        one = torch.zeros(1, 64)
        one[0, column] = 1
        assert torch.equal(linear(one, [packed])[0], unpack(packed.packing, packed.data)[:, column].float())


@pytest.mark.parametrize("layout", ["q5_1", "q6_k"])
def test_other_layouts_are_unpacked_when_they_are_stored(layout: str) -> None:
    x, matrix = x_of(2, 256), band(layout, 20, 256)
    assert off(linear(x, [matrix]), reference.linear(x.double(), [matrix])) < NEAR / 10


@pytest.mark.parametrize("layout", ["q4_1", "bf16"])
def test_a_row_is_the_same_in_every_bit_beside_any_others(layout: str) -> None:
    x, matrix = x_of(16, 512), band(layout, 70, 512)
    together = linear(x, [matrix])
    for first, last in ((0, 1), (3, 8), (15, 16)):
        assert torch.equal(linear(x[first:last], [matrix]), together[first:last])


def test_bands_of_several_layouts_stand_below_one_another_with_their_bias() -> None:
    bands, bias, x = [band("q4_0", 30, 256), band("q8_0", 7, 256, 1), band("bf16", 41, 256, 2)], torch.arange(78.0), x_of(4, 256)
    assert off(linear(x, bands, bias), reference.linear(x.double(), bands, bias)) < NEAR / 10


@pytest.mark.parametrize("columns", [32, 100])
def test_plain_rows_may_have_any_length(columns: int) -> None:
    x, matrix = x_of(2, columns), band("bf16", 5, columns)
    assert off(linear(x, [matrix]), reference.linear(x.double(), [matrix])) < NEAR / 10


def test_more_rows_than_few_are_refused() -> None:
    with pytest.raises(ValueError, match="17 rows"):
        linear(x_of(17, 32), [band("bf16", 5, 32)])
