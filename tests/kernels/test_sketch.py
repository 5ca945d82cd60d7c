"""Sketches hold what they say, byte for byte, and guess inner products."""

from __future__ import annotations

import pytest
import torch

from kernels import sketch
from kernels.sketch import Layout
from tests.kernels.sampled_case import KV_HEADS, projection

LAYOUTS = [Layout(2, 2, 0), Layout(1, 0, 0), Layout(0, 1, 0), Layout(0, 0, 2), Layout(1, 2, 1)]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("tokens", [1, 15, 16, 100])
def test_codes_are_the_steps_of_the_centred_keys(layout: Layout, tokens: int) -> None:
    made = projection(64, layout)
    keys = torch.randn(KV_HEADS, tokens, 64).bfloat16()
    codes = sketch.codes(sketch.build(keys, made), layout)[:, :tokens].float()
    middles = layout.middles()
    exact = torch.bmm(keys.float() - made.centres[:, None], made.keys) + middles
    inside = (exact > 0) & (exact < 2 * middles)
    assert ((codes - exact).abs()[inside] <= 0.5001).all()
    assert ((codes == 0) | (codes == 2 * middles))[~inside & ((exact < -0.5) | (exact > 2 * middles + 0.5))].all()
    assert codes.max() <= 2 * middles.max()


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_a_key_takes_the_bytes_its_layout_says(layout: Layout) -> None:
    made = sketch.build(torch.randn(KV_HEADS, 160, 64), projection(64, layout))
    assert made.shape == (KV_HEADS, 10, layout.planes, 64)
    assert made[0].numel() == 160 * layout.bytes_per_key


def test_guesses_are_inner_products_with_what_the_codes_stand_for() -> None:
    made = projection(64)
    keys, q = torch.randn(KV_HEADS, 48, 64), torch.randn(3, KV_HEADS, 2, 64)
    drawn = sketch.build(keys, made)
    stands_for = sketch.codes(drawn, made.layout).float() - made.layout.middles()
    expected = torch.einsum("nhgd,hdc,htc->nhgt", q, made.queries, stands_for)
    assert (sketch.guess(q, drawn, made) - expected).abs().max() < 0.02 * expected.abs().max()


def test_finer_steps_guess_better() -> None:
    keys, q = torch.randn(KV_HEADS, 512, 64), torch.randn(4, KV_HEADS, 1, 64)
    errors = []
    for layout in (Layout(0, 0, 2), Layout(0, 4, 0), Layout(8, 0, 0)):
        made = projection(64, layout)
        centred = keys + made.centres[:, None]
        guessed = sketch.guess(q, sketch.build(centred, made), made)
        errors.append((guessed - torch.einsum("nhgd,htd->nhgt", q, keys)).std().item())
    assert errors[0] > 1.5 * errors[1] > 2 * errors[2]


def test_a_key_at_the_centre_and_a_query_of_zeros_are_no_trouble() -> None:
    made = projection(64)
    drawn = sketch.build(made.centres[:, None].expand(-1, 20, -1).contiguous(), made)
    guessed = sketch.guess(torch.zeros(1, KV_HEADS, 1, 64), drawn, made)
    assert torch.equal(guessed, torch.zeros_like(guessed))
    assert torch.isfinite(sketch.guess(torch.randn(1, KV_HEADS, 1, 64), drawn, made)).all()
