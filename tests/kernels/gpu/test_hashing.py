"""Codes are made of the signs of products, those of a table packed into one number."""

from __future__ import annotations

import pytest

pytest.importorskip("triton")

import torch

from kernels import gpu, lsh
from tests.kernels.gpu.device import there


def expected(x: torch.Tensor, directions: torch.Tensor, tables: int, bits: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Codes as int64, and which ones no rounding can change."""
    products = (x.double() @ directions.double()).view(*x.shape[:2], tables, bits)
    return ((products < 0).long() << torch.arange(bits)).sum(-1), (products.abs() > 1e-4).all(-1)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=["bf16", "fp32"])
@pytest.mark.parametrize(("vectors", "tables", "bits"), [(1, 9, 10), (70, 5, 7), (3, 2, 16), (16, 8, 1)])
def test_a_code_has_a_bit_for_each_direction(vectors: int, tables: int, bits: int, dtype: torch.dtype) -> None:
    x, directions = torch.randn(2, vectors, 48).to(dtype), torch.randn(1, 48, tables * bits)
    codes, sure = expected(x, directions, tables, bits)
    got = gpu.hash_codes(there(x), there(directions), tables, bits).cpu().long() & 0xFFFF
    assert torch.equal(got[sure], codes[sure])
    assert sure.float().mean() > 0.99


def test_codes_are_those_of_the_reference() -> None:
    x, hashing = torch.randn(2, 20, 64), lsh.hashing(64, 10, 12, seed=3)
    sure = expected(x, hashing.directions[None], 12, 10)[1]
    got = gpu.hash_codes(there(x), there(hashing.directions[None]), 12, 10).cpu().long()
    assert torch.equal(got[sure], lsh.codes(x, hashing)[sure])


def test_heads_may_have_directions_of_their_own() -> None:
    x, directions = torch.randn(3, 4, 32), torch.randn(3, 32, 6 * 8)
    codes, sure = expected(x, directions, 6, 8)
    got = gpu.hash_codes(there(x), there(directions), 6, 8).cpu().long() & 0xFFFF
    assert torch.equal(got[sure], codes[sure])


def test_neighbours_change_no_code() -> None:
    x, directions = torch.randn(2, 9, 32), torch.randn(1, 32, 60)
    together = gpu.hash_codes(there(x), there(directions), 6, 10)
    assert torch.equal(gpu.hash_codes(there(x[:, 4:5].contiguous()), there(directions), 6, 10), together[:, 4:5])


@pytest.mark.parametrize(("bits", "columns"), [(17, 34), (8, 15)])
def test_what_is_no_code_is_refused(bits: int, columns: int) -> None:
    with pytest.raises(ValueError, match="bits"):
        gpu.hash_codes(there(torch.randn(1, 1, 16)), there(torch.randn(1, 16, columns)), 2, bits)
