"""A GGUF of every family installs, and computes what transformers computes with the same weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import PreTrainedModel

from engine.attention.exact import Exact
from engine.attention.sequence import Rows, Sequence, Tail
from engine.errors import LongshelfError
from engine.home import Home
from engine.model.decoder import Decoder
from engine.model.gguf_config import config_of
from engine.model.gguf_file import GgufFile
from engine.model.install import install_model
from engine.model.installed import Models
from engine.model.weights import build, state
from tests.engine.model import tiny_gguf
from tests.engine.model.tiny import FAMILIES, tiny
from tests.engine.model.tiny_gguf import PACKED

IDS = torch.randint(0, len(tiny_gguf.TOKENS), (150,), generator=torch.Generator().manual_seed(3))
LIKE_LLAMA_CPP: dict[str, dict[str, Any]] = {
    "Qwen3 with YaRN": {
        "max_position_embeddings": 256,
        "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64},
    },
    "Gemma 2": {"query_pre_attn_scalar": 16},
    "Gemma 3": {"query_pre_attn_scalar": 16, "sliding_window_pattern": 6, "num_hidden_layers": 7},
}
"""A GGUF doesn't say this; whoever reads it knows what all models of the family have."""
NAMED = [family for family in FAMILIES if family != "Qwen2 with sliding layers"]


def model_of(family: str) -> PreTrainedModel:
    """A tiny model whose matrices are bf16 numbers, as an installed model stores them."""
    entries = {**FAMILIES[family], **LIKE_LLAMA_CPP.get(family, {})}
    model = tiny(**{"seed": 4, "window": 256, "vocab_size": len(tiny_gguf.TOKENS), **entries})
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim == 2:
                weight.copy_(weight.bfloat16())
    return model


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home").open()


def installed_logits(home: Home, source: Path) -> torch.Tensor:
    model = Models(home).open(install_model(home, source))
    decoder = Decoder(model.config, build(state(model.weights).get, model.config, torch.float32))
    rows = Rows([(Sequence((), Tail(model.config, torch.float32)), len(IDS))])
    return decoder.forward(IDS, rows, Exact(model.config), slice(None))


@pytest.mark.parametrize("family", NAMED)
def test_an_installed_file_gives_the_logits_of_transformers(tmp_path: Path, home: Home, family: str) -> None:
    model = model_of(family)
    with torch.no_grad():
        truth = model(IDS[None]).logits[0]
    assert (installed_logits(home, tiny_gguf.write_model(tmp_path / "tiny.gguf", model)) - truth).abs().max() < 1e-4


@pytest.mark.parametrize("family", ["Phi-3", "SmolLM3", "Gemma 3"])
def test_packed_rows_are_taken_apart_and_reordered_as_they_are(tmp_path: Path, home: Home, family: str) -> None:
    model = model_of(family)
    source = tiny_gguf.write_model(tmp_path / "tiny.gguf", model, PACKED.Q8_0)
    with torch.no_grad():
        truth = model(IDS[None]).logits[0]
    assert (installed_logits(home, source) - truth).abs().mean() < 0.1 * truth.abs().mean()
    assert Models(home).open().card.weights == "q8_0"


def config(path: Path, family: str, **fields: Any) -> Any:
    """The config of a tiny file of the Llama shape that names another family."""
    return config_of(GgufFile(tiny_gguf.write(path / "m.gguf", family=family, **{f"{family}__{k}": v for k, v in fields.items()})))


def test_what_gemma_files_leave_out_is_known(tmp_path: Path) -> None:
    second = config(tmp_path, "gemma2", context_length=8192)
    assert (second.sliding_window, second.layer_kinds) == (4096, ("sliding", "full"))
    assert (second.attention_softcap, second.logit_softcap, second.attention_scale) == (50.0, 30.0, 0.25)
    large = config(tmp_path, "gemma2", block_count=46, embedding_length=576, attention__key_length=16)
    assert large.attention_scale == pytest.approx(144**-0.5)
    third = config(tmp_path, "gemma3", block_count=7, attention__sliding_window=64)
    assert third.layer_kinds == (*("sliding",) * 5, "full", "sliding")
    assert (third.sliding_rope_theta, third.logit_softcap, third.attention_softcap) == (10000.0, 0.0, 0.0)


def test_a_pattern_of_sliding_layers_in_the_file_counts(tmp_path: Path) -> None:
    found = config(tmp_path, "gemma3", attention__sliding_window=64, attention__sliding_window_pattern=[False, True])
    assert found.layer_kinds == ("full", "sliding")


@pytest.mark.parametrize(
    ("family", "fields", "kind"),
    [
        ("qwen2", {"attention__sliding_window": 64}, "model_unsupported"),
        ("smollm3", {"rope__dimension_count": 8}, "model_unsupported"),
        ("gemma3", {"attention__sliding_window_pattern": [True]}, "model_damaged"),
        ("gemma3", {"attention__value_length": 8}, "model_unsupported"),
    ],
    ids=str,
)
def test_a_variant_that_would_be_computed_wrongly_is_refused(tmp_path: Path, family: str, fields: dict[str, Any], kind: str) -> None:
    with pytest.raises(LongshelfError) as caught:
        config(tmp_path, family, **fields)
    assert caught.value.kind == kind


def test_the_two_sets_of_long_divisors_are_both_needed(tmp_path: Path) -> None:
    model = model_of("Phi-4 mini")
    source = tiny_gguf.write_model(tmp_path / "tiny.gguf", model)
    file = GgufFile(source)
    del file.tensors["rope_factors_long.weight"]
    with pytest.raises(LongshelfError, match="rope_factors_long"):
        config_of(file)
