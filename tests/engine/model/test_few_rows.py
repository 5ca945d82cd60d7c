"""Decoding one row or sixteen gives a row the same logits in every bit, so that drafts and neighbours change no answer."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine.attention.exact import Exact
from engine.attention.sequence import Rows, Sequence, Tail
from engine.home import Home
from engine.model import weights
from engine.model.decoder import Decoder
from engine.model.install import install_model
from engine.model.installed import Models
from kernels import cpu
from kernels.cpu import FEW
from tests.engine.model import tiny_gguf
from tests.engine.model.tiny import llama, ours


def ids_of(decoder: Decoder, count: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(0, decoder.config.vocab, (count,), generator=torch.Generator().manual_seed(seed))


def read(decoder: Decoder, ids: torch.Tensor) -> Sequence:
    sequence = Sequence((), Tail(decoder.config, decoder.dtype, 64))
    rows = Rows([(sequence, len(ids))])
    decoder.forward(ids, rows, Exact(decoder.config))
    rows.advance()
    return sequence


def alone(decoder: Decoder, sequence: Sequence, ids: torch.Tensor) -> torch.Tensor:
    """Logits of ids [n] decoded one by one; the sequence is as before."""
    length, logits = sequence.tail.length, []
    for token in ids:
        rows = Rows([(sequence, 1)])
        logits.append(decoder.forward(token[None], rows, Exact(decoder.config), slice(None)))
        rows.advance()
    sequence.tail.cut(length)
    return torch.cat(logits)


@pytest.fixture(scope="module", params=["float32", "bf16", "q4_1", "q8_0", "default"])
def decoder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Decoder:
    if request.param == "default":
        installed = Models(request.getfixturevalue("model_home")).open()
        return Decoder(installed.config, weights.load(installed.folder, installed.config))
    if request.param in ("float32", "bf16"):
        return ours(llama(), torch.float32 if request.param == "float32" else torch.bfloat16)
    folder: Path = tmp_path_factory.mktemp(request.param)
    home = Home(folder / "home").open()
    packing = tiny_gguf.PACKED[request.param.upper()]
    installed = Models(home).open(install_model(home, tiny_gguf.write(folder / "tiny.gguf", packing=packing)))
    return Decoder(installed.config, weights.load(installed.folder, installed.config))


@pytest.fixture(autouse=True, params=["native", "torch"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, decoder: Decoder) -> None:
    """Each test with the native library and without."""
    if request.param == "torch":
        if decoder.config.layers > 3:
            pytest.skip("slow")
        monkeypatch.setattr(decoder, "_few", None)
        for name in ("attention", "weights"):
            monkeypatch.setattr(f"kernels.cpu.{name}.library", lambda: None)
    elif cpu.native() is None:
        pytest.skip("no native library")


def test_verifying_several_tokens_is_decoding_them_one_by_one(decoder: Decoder) -> None:
    sequence, ids = read(decoder, ids_of(decoder, 40)), ids_of(decoder, FEW, 1)
    truth = alone(decoder, sequence, ids)
    for count in (2, 3, 5, 8, 9, FEW):
        together = decoder.forward(ids[:count], Rows([(sequence, count)]), Exact(decoder.config), slice(None))
        assert torch.equal(together, truth[:count]), count


def test_a_sequence_answers_the_same_whatever_others_are_decoded_beside_it(decoder: Decoder) -> None:
    sequences = [read(decoder, ids_of(decoder, 20 + 3 * n, n)) for n in range(5)]
    ids = ids_of(decoder, 5, 9)
    truth = torch.cat([alone(decoder, sequence, ids[n : n + 1]) for n, sequence in enumerate(sequences)])
    together = decoder.forward(ids, Rows([(sequence, 1) for sequence in sequences]), Exact(decoder.config), slice(None))
    assert torch.equal(together, truth)


def test_few_rows_and_many_rows_mean_the_same(decoder: Decoder) -> None:
    ids = ids_of(decoder, 48)
    rows = Rows([(Sequence((), Tail(decoder.config, decoder.dtype, 64)), 48)])
    in_bulk = decoder.forward(ids, rows, Exact(decoder.config), slice(None))
    one_by_one = alone(decoder, Sequence((), Tail(decoder.config, decoder.dtype, 64)), ids)
    tolerance = 1e-5 if decoder.dtype == torch.float32 else 0.08  # random models in bf16 amplify roundings
    assert (in_bulk - one_by_one).norm() < tolerance * in_bulk.norm()
