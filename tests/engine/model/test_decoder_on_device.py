"""The decoder with its weights on a device: the tokens that the processor gives, for every family and packing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from engine.attention.in_memory import InMemory
from engine.attention.sequence import Rows, Sequence, Tail
from engine.home import Home
from engine.model import weights
from engine.model.config import ModelConfig
from engine.model.decoder import Decoder
from engine.model.install import install_model
from engine.model.installed import Models
from engine.model.prefill import prefill
from engine.model.weights import Weights, build
from engine.placement import Placement
from kernels.cpu import FEW
from tests.engine.model import tiny_gguf
from tests.engine.model.tiny import FAMILIES, config_of, installed, tiny
from tests.engine.on_device import KIND

IDS = torch.randint(0, 260, (40,), generator=torch.Generator().manual_seed(3)).tolist()
MARGIN = 0.05
"""Logits of bf16 models read on both sides may be off by so much: KV is rounded, and sums differ in order."""


def answered(config: ModelConfig, loaded: Weights, placement: Placement, tokens: int = 3) -> tuple[list[int], torch.Tensor]:
    """(the tokens decoded behind a chain and a question, the logits of the last)."""
    decoder, exact = Decoder(config, loaded), placement.exact()
    read = Sequence((), Tail(config, decoder.dtype, 8))
    prefill(decoder, read, IDS, exact)
    sequence = Sequence([InMemory(read.tail.kv[:, :, :, :30].contiguous())], Tail(config, decoder.dtype, 8))
    logits, said = prefill(decoder, sequence, IDS[30:35], exact), []
    for _ in range(tokens):
        said.append(int(logits.argmax()))
        logits = prefill(decoder, sequence, said[-1:], exact)
    return said, logits


def both(config: ModelConfig, tensors: dict[str, torch.Tensor], dtype: torch.dtype, tokens: int = 3) -> tuple[Any, Any]:
    sides = []
    for asked in ("cpu", KIND):
        placement = Placement(asked, config, 0)
        sides.append(answered(config, build(tensors.get, config, dtype, placement.weights_on), placement, tokens))
    return sides[0], sides[1]


QUICK = ("Qwen2 with sliding layers", "Phi-4 mini", "Gemma 3")
"""Biases; heads that are turned in part; norms of heads and after, and a scale: between them all that a family can have but caps."""


@pytest.mark.parametrize("family", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in FAMILIES])
def test_every_family_says_the_same_tokens_as_on_the_processor(family: str) -> None:
    model = tiny(**{**FAMILIES[family], "num_hidden_layers": 3 if family == "Gemma 3" else 2})  # of which Gemma 3 has one that sees all
    config = config_of(model)
    (said, logits), (there, logits_there) = both(config, installed(config, model.state_dict()), torch.float32, tokens=1)
    assert there == said
    assert (logits_there - logits).abs().max() < 1e-3


def test_bf16_weights_say_the_same_tokens_as_on_the_processor() -> None:
    model = tiny(**{**FAMILIES["Llama 3"], "num_hidden_layers": 2})
    config = config_of(model)
    (said, logits), (there, logits_there) = both(config, installed(config, model.state_dict()), torch.bfloat16)
    assert there == said
    assert (logits_there - logits).abs().max() < MARGIN


@pytest.mark.parametrize("packing", ["Q4_1", "Q8_0"])
def test_packed_weights_say_the_same_tokens_as_on_the_processor(packing: str, tmp_path: Path) -> None:
    home = Home(tmp_path / "home").open()
    model = Models(home).open(install_model(home, tiny_gguf.write(tmp_path / "tiny.gguf", packing=tiny_gguf.PACKED[packing])))
    sides = []
    for asked in ("cpu", KIND):
        placement = Placement(asked, model.config, 0, packed=True)
        sides.append(answered(model.config, weights.load(model.folder, model.config, placement.weights_on), placement, 2))
    assert sides[1][0] == sides[0][0]
    assert (sides[1][1] - sides[0][1]).abs().max() < MARGIN


def test_a_row_has_the_same_logits_in_every_bit_whatever_rows_stand_beside_it() -> None:
    model = tiny(**{**FAMILIES["Llama 3"], "num_hidden_layers": 1})
    config = config_of(model)
    placement = Placement(KIND, config, 0)
    decoder = Decoder(config, build(installed(config, model.state_dict()).get, config, torch.bfloat16, placement.weights_on))

    def logits(ids: list[int]) -> torch.Tensor:
        rows = Rows([(Sequence((), Tail(config, decoder.dtype, 32)), len(ids))])
        return decoder.forward(torch.tensor(ids), rows, placement.exact(), slice(None))

    together = logits(IDS[:FEW])
    assert torch.equal(logits(IDS[:3]), together[:3])
