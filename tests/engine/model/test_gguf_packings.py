"""Every packing of GGUF files is installed and loaded, those that the kernels know as they are; split files are put together."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest
import torch

from engine.errors import LongshelfError
from engine.home import Home
from engine.model import weights
from engine.model.install import install_model
from engine.model.installed import Models
from engine.model.plan import Wishes
from engine.model.weights import state
from kernels.packings import PACKINGS
from tests.engine.model import tiny_gguf
from tests.engine.model.tiny_gguf import PACKED
from tests.kernels.test_packings import random_blocks

OURS = {
    "token_embd": "model.embed_tokens",
    "blk.1.attn_v": "model.layers.1.self_attn.v_proj",
    "blk.0.ffn_down": "model.layers.0.mlp.down_proj",
}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home").open()


@pytest.mark.parametrize("name", ["f32", "f16", "bf16", *PACKINGS])
def test_a_packing_is_installed_and_loaded(tmp_path: Path, home: Home, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(tiny_gguf, "HIDDEN", 256)
    monkeypatch.setattr(tiny_gguf, "INTERMEDIATE", 512)
    kind = PACKED[name.upper()]
    values = tiny_gguf.tensors(seed=5)
    if name in PACKINGS:
        values = {
            key: random_blocks(name, *value.shape, seed=n).numpy() if value.ndim == 2 else value
            for n, (key, value) in enumerate(values.items())
        }
    model = Models(home).open(install_model(home, tiny_gguf.write(tmp_path / "tiny.gguf", values, kind)))
    assert model.card.weights == (name if name in PACKINGS else "bf16")
    found, loaded = state(model.weights), weights.load(model.folder, model.config)
    for old, new in OURS.items():
        value = values[f"{old}.weight"]
        truth = gguf.quants.dequantize(value, kind) if name in PACKINGS else gguf.quants.dequantize(gguf.quants.quantize(value, kind), kind)
        assert torch.equal(found[f"{new}.weight"], torch.from_numpy(np.ascontiguousarray(truth, np.float32)).to(torch.bfloat16)), old
    assert torch.equal(loaded.embedding.weight(torch.bfloat16), found["model.embed_tokens.weight"])
    assert torch.equal(loaded.layers[0].down.weight(torch.bfloat16), found["model.layers.0.mlp.down_proj.weight"])


def test_plain_matrices_are_packed_on_request(tmp_path: Path, home: Home) -> None:
    path = tiny_gguf.write(tmp_path / "tiny.gguf", packing=PACKED.F16)
    model = Models(home).open(install_model(home, path, wishes=Wishes(pack="q4_0")))
    value = np.float16(tiny_gguf.tensors()["blk.0.ffn_up.weight"]).astype(np.float32)
    truth = gguf.quants.dequantize(gguf.quants.quantize(value, PACKED.Q4_0), PACKED.Q4_0)
    assert torch.equal(state(model.weights)["model.layers.0.mlp.up_proj.weight"], torch.from_numpy(truth).to(torch.bfloat16))


def split(path: Path) -> list[Path]:
    """The tiny file in three, as llama.cpp splits it: all metadata in the first."""
    whole = tiny_gguf.tensors()
    names = list(whole)
    files = []
    for n in range(3):
        file = path / f"tiny-{n + 1:05d}-of-00003.gguf"
        part = {name: whole[name] for name in names[n::3]}
        files.append(tiny_gguf.write(file, part, split__count=3, split__no=n))
    return files


@pytest.mark.parametrize("named", [0, 2])
def test_a_split_file_is_installed_from_any_of_its_parts(tmp_path: Path, home: Home, named: int) -> None:
    whole = Models(home).open(install_model(home, tiny_gguf.write(tmp_path / "whole.gguf")))
    parts = Models(home).open(install_model(home, split(tmp_path)[named]))
    assert (parts.name, parts.card.weights_digest) == ("tiny", whole.card.weights_digest)


@pytest.mark.parametrize("gone", ["deleted", "renamed"])
def test_a_missing_part_of_a_split_file_is_named(tmp_path: Path, home: Home, gone: str) -> None:
    files = split(tmp_path)
    if gone == "deleted":
        files[1].unlink()
    else:
        files[0] = files[0].rename(tmp_path / "model.gguf")
    with pytest.raises(LongshelfError, match=files[1].name if gone == "deleted" else "one of 3 files") as caught:
        install_model(home, files[0])
    assert caught.value.kind == "missing_shard"


def test_a_pointer_in_place_of_a_file_is_told_apart(tmp_path: Path, home: Home) -> None:
    (tmp_path / "m.gguf").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5000000000\n")
    with pytest.raises(LongshelfError) as caught:
        install_model(home, tmp_path / "m.gguf")
    assert caught.value.kind == "lfs_pointer"
