"""Sketches made on the GPU are those of the reference, and so is what they guess."""

from __future__ import annotations

import pytest

pytest.importorskip("triton")

import torch

from kernels import gpu, sketch
from kernels.sketch import Layout, Projection
from tests.kernels.gpu.device import NEAR, there
from tests.kernels.sampled_case import KV_HEADS, projection

LAYOUTS = [Layout(2, 2, 0), Layout(1, 0, 0), Layout(0, 0, 2), Layout(3, 1, 1)]


def projection_there(made: Projection) -> Projection:
    return Projection(made.layout, there(made.centres), there(made.keys), there(made.queries))


def build(keys: torch.Tensor, made: Projection) -> torch.Tensor:
    return gpu.build_sketch(there(keys), projection_there(made)).cpu()


def guess(q: torch.Tensor, drawn: torch.Tensor, made: Projection, tokens: int) -> torch.Tensor:
    return gpu.guess(there(q), there(drawn), projection_there(made), tokens).cpu()


@pytest.mark.parametrize(("layout", "tokens"), [*((layout, 70) for layout in LAYOUTS), (LAYOUTS[0], 1)], ids=str)
def test_a_sketch_has_the_codes_of_the_reference(layout: Layout, tokens: int) -> None:
    """But for a step at most where a coordinate lies on the edge between two."""
    made, keys = projection(48, layout), torch.randn(KV_HEADS, tokens, 48).bfloat16()
    got, expected = build(keys, made), sketch.build(keys, made)
    assert got.shape == expected.shape
    apart = (sketch.codes(got, layout).int() - sketch.codes(expected, layout).int()).abs()
    assert apart.max() <= 1
    assert apart.float().mean() < 1e-3


def test_a_sketch_is_made_of_a_part_of_a_longer_tensor_too() -> None:
    made, keys = projection(64), torch.randn(KV_HEADS, 60, 64)
    assert torch.equal(gpu.build_sketch(there(keys)[:, 10:50], projection_there(made)).cpu(), build(keys[:, 10:50].contiguous(), made))


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize(("rows", "group"), [(1, 1), (9, 2)])
def test_guesses_are_those_of_the_reference(layout: Layout, rows: int, group: int) -> None:
    made, q = projection(64, layout), torch.randn(rows, KV_HEADS * group, 64)
    drawn = sketch.build(torch.randn(KV_HEADS, 150, 64), made)
    expected = sketch.guess(q.view(rows, KV_HEADS, group, 64), drawn, made)[..., :140].reshape(rows, -1, 140)
    assert (guess(q, drawn, made, 140) - expected).abs().max() < NEAR * expected.abs().max()


def test_guesses_are_right_beyond_what_one_program_reads() -> None:
    made, q = projection(32, Layout(1, 0, 0)), torch.randn(1, KV_HEADS, 32)
    drawn = sketch.build(torch.randn(KV_HEADS, 700, 32), made)
    expected = sketch.guess(q.view(1, KV_HEADS, 1, 32), drawn, made)[..., :700].reshape(1, -1, 700)
    assert (guess(q, drawn, made, 700) - expected).abs().max() < NEAR * expected.abs().max()


def test_neighbours_change_no_bit_of_a_guess() -> None:
    made, q = projection(64), torch.randn(7, KV_HEADS * 3, 64)
    drawn = sketch.build(torch.randn(KV_HEADS, 50, 64), made)
    together = guess(q, drawn, made, 50)
    assert torch.equal(guess(q[2:3].contiguous(), drawn, made, 50), together[2:3])
    assert torch.equal(guess(q[6:].contiguous(), drawn, made, 50), together[6:])


def test_a_query_of_zeros_guesses_zero() -> None:
    made = projection(64)
    drawn = sketch.build(torch.randn(KV_HEADS, 20, 64), made)
    assert not guess(torch.zeros(1, KV_HEADS, 64), drawn, made, 20).any()
