"""Projections guess logits better than an arbitrary choice of coordinates, and are kept with the model as they were fitted."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from engine.attention.exact import Exact
from engine.attention.in_memory import turn
from engine.attention.sequence import Rows, Sequence, Tail
from engine.errors import LongshelfError
from engine.retrieval import projections
from engine.retrieval.fitting import Moments, fit, layout_for
from engine.shelf import Shelf
from kernels import sketch
from kernels.reference import rotate
from kernels.sketch import Layout
from tests.engine.attention.test_exact import CONFIG

HEADS, GROUP, DIM, LAYERS = CONFIG.kv_heads, CONFIG.heads // CONFIG.kv_heads, CONFIG.head_dim, CONFIG.layers


def skewed(count: int, heads: int, seed: int) -> torch.Tensor:
    """[count, heads, D] float32 of which a few directions hold most of the spread."""
    draw = torch.Generator().manual_seed(seed)
    axes = torch.linalg.qr(torch.randn(DIM, DIM, generator=torch.Generator().manual_seed(5)))[0]
    return (torch.randn(count, heads, DIM, generator=draw) * 0.75 ** torch.arange(DIM)) @ axes


def moments(keys: torch.Tensor, queries: torch.Tensor, start: int = 0) -> Moments:
    read = Moments(CONFIG, Exact(CONFIG), start)
    rows = Rows([(Sequence((), Tail(CONFIG, torch.float32, len(keys))), len(keys))])
    for layer in range(LAYERS):
        read.attend(layer, queries, keys, keys, rows)
    return read


def test_moments_are_those_of_the_rows_behind_the_start() -> None:
    keys, queries = skewed(50, HEADS, 1), skewed(50, HEADS * GROUP, 2)
    read = moments(keys, queries, start=10)
    later = queries[10:].view(40, HEADS, GROUP, DIM)
    assert (read.queries[1] - torch.einsum("nhgd,nhge->hde", later, later)).abs().max() < 1e-3
    assert (read.keys[2] - torch.einsum("nhd,nhe->hde", keys[10:], keys[10:])).abs().max() < 1e-3
    assert read.counts.tolist() == [40] * LAYERS


def test_fitted_coordinates_guess_better_than_arbitrary_ones() -> None:
    keys, queries = skewed(800, HEADS, 1) + 2.0, skewed(800, HEADS * GROUP, 2)
    layout = Layout(1, 0, 0)  # 8 of 16 coordinates
    fitted = fit(moments(keys, queries), layout)[0]
    arbitrary = fit(moments(torch.randn(800, HEADS, DIM) + 2.0, torch.randn(800, HEADS * GROUP, DIM)), layout)[0]
    fresh = (skewed(500, HEADS, 3) + 2.0).transpose(0, 1).contiguous()
    asked = skewed(30, HEADS * GROUP, 4).view(30, HEADS, GROUP, DIM)
    errors = []
    for made in (fitted, arbitrary):
        guessed = sketch.guess(asked, sketch.build(fresh, made), made)[..., :500]
        exact = torch.einsum("nhgd,htd->nhgt", asked, fresh)
        off = guessed - exact
        errors.append(float((off - off.mean(-1, keepdim=True)).std() / (exact - exact.mean(-1, keepdim=True)).std()))
    assert errors[0] < 0.3
    assert errors[0] < 0.5 * errors[1]


@pytest.mark.parametrize(("dim", "share"), [(16, 1 / 16), (64, 1 / 16), (80, 1 / 20), (128, 1 / 16), (256, 1 / 16)])
def test_sketches_take_about_a_sixteenth_of_keys_and_values(dim: int, share: float) -> None:
    assert layout_for(dim).bytes_per_key == pytest.approx(share * 4 * dim)
    assert layout_for(dim).coordinates <= dim


def test_projections_are_fitted_once_and_kept_with_the_model(tiny_shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_shelf.model()[0]
    (model.installed.folder / projections.FILE).unlink()
    made = tiny_shelf.model_thread.run(lambda: projections.of(model, lambda: None))
    monkeypatch.setattr(projections, "fit", None)
    again = projections.of(model, lambda: None)
    assert again.digest == made.digest
    assert all(torch.equal(a.queries, b.queries) for a, b in zip(made.layers, again.layers, strict=True))
    assert len(made.layers) == model.config.layers


def test_damaged_projections_are_told(tiny_shelf: Shelf) -> None:
    model = tiny_shelf.model()[0]
    tiny_shelf.model_thread.run(lambda: projections.of(model, lambda: None))
    path: Path = model.installed.folder / projections.FILE
    whole = path.read_bytes()
    for content in (whole[:100], whole[:-3] + b"abc"):
        path.write_bytes(content)
        with pytest.raises(LongshelfError) as error:
            projections.of(model, lambda: None)
        assert error.value.kind == "model_damaged"


def test_moments_are_spread_over_the_places_of_the_window() -> None:
    keys, queries = skewed(200, HEADS, 1) + 1.0, skewed(200, HEADS * GROUP, 2)
    read = moments(keys, queries)
    before = read.keys.clone()
    read.spread(CONFIG, 1000)
    turned = torch.zeros_like(before[0])
    for by in torch.linspace(0, 1000, 24).int().tolist():
        moved_keys = rotate(keys.transpose(0, 1), *turn(CONFIG, CONFIG.kind(0), by))
        turned += moved_keys.transpose(1, 2) @ moved_keys / 24
    assert (read.keys[0] - turned).abs().max() < 1e-2 * turned.abs().max()
    assert (read.keys[0] - before[0]).abs().max() > 0.1 * before[0].abs().max()
    assert read.keys.diagonal(dim1=-2, dim2=-1).sum() == pytest.approx(float(before.diagonal(dim1=-2, dim2=-1).sum()), rel=1e-4)


def test_projections_that_an_earlier_version_fitted_are_fitted_anew(tiny_shelf: Shelf) -> None:
    model = tiny_shelf.model()[0]
    made = tiny_shelf.model_thread.run(lambda: projections.of(model, lambda: None))
    path: Path = model.installed.folder / projections.FILE
    with safe_open(path, "pt") as file:
        tensors, said = {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118
    save_file(tensors, path, {name: value for name, value in said.items() if name != "fitting"})
    again = tiny_shelf.model_thread.run(lambda: projections.of(model, lambda: None))
    assert again.digest == made.digest
    with safe_open(path, "pt") as file:
        assert "fitting" in file.metadata()
