"""Every family gives the logits of transformers' eager attention, and everything that sets it apart is seen in them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from transformers import PreTrainedModel

from engine.attention.exact import Exact
from engine.attention.sequence import Rows, Sequence, Tail
from engine.errors import LongshelfError
from engine.model.config import ModelConfig
from engine.model.decoder import Decoder
from engine.model.families import config_from_hf
from engine.model.tensor_names import takes_from_hf, text_name
from engine.model.weights import build
from kernels import cpu
from tests.engine.model.tiny import FAMILIES, SIZES, config_of, installed, tiny

IDS = torch.randint(0, 320, (150,), generator=torch.Generator().manual_seed(3))
"""More than any sliding window of the tiny models."""


@dataclass
class Pair:
    """A model of one family in transformers, and in ours."""

    name: str
    model: PreTrainedModel
    config: ModelConfig
    truth: torch.Tensor

    def read(self, chunks: list[int], config: ModelConfig | None = None, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """Our logits; config: another one with the same weights."""
        config = config or self.config
        decoder = Decoder(config, build(installed(self.config, self.model.state_dict()).get, config, dtype))
        sequence, attention = Sequence((), Tail(config, dtype, 8)), Exact(config)
        logits = []
        for ids in IDS.split(chunks):
            rows = Rows([(sequence, len(ids))])
            logits.append(decoder.forward(ids, rows, attention, slice(None)))
            rows.advance()
        return torch.cat(logits)

    def off(self, logits: torch.Tensor) -> float:
        return float((logits - self.truth).abs().max())


_PAIRS: dict[str, Pair] = {}


def pair_of(family: str) -> Pair:
    if family not in _PAIRS:
        model = tiny(**{"seed": 2, "window": 160, **FAMILIES[family]})
        with torch.no_grad():
            _PAIRS[family] = Pair(family, model, config_of(model), model(IDS[None]).logits[0])
    return _PAIRS[family]


@pytest.fixture(scope="module", autouse=True)
def _forget() -> Iterator[None]:
    yield
    _PAIRS.clear()


@pytest.mark.parametrize("chunks", [[150], [64, 64, 22], [1] * 150], ids=["whole", "chunked", "token by token"])
@pytest.mark.parametrize("family", FAMILIES)
def test_logits_equal_eager_transformers(family: str, chunks: list[int]) -> None:
    pair = pair_of(family)
    assert pair.off(pair.read(chunks)) < 1e-4


@pytest.mark.parametrize(
    ("family", "lost"),
    [
        ("Llama 3", {"rope": {"rope_type": "default"}}),
        ("Mistral", {"layer_kinds": ()}),
        ("Mistral", {"sliding_window": 21}),
        ("Qwen2", {"qkv_bias": False}),
        ("Qwen2 with sliding layers", {"layer_kinds": ("sliding", "full", "full")}),
        ("Qwen3", {"qk_norm": False}),
        ("Qwen3 with YaRN", {"rope": {"rope_type": "default"}}),
        ("Phi-3", {"layer_kinds": ()}),
        ("Phi-4 mini", {"rotary_dim": 0, "rope": {"rope_type": "default"}}),
        ("Phi-4 mini", {"rope": {"rope_type": "default"}}),
        ("SmolLM3", {"layer_kinds": ()}),
        ("Gemma 2", {"attention_softcap": 0.0}),
        ("Gemma 2", {"logit_softcap": 0.0}),
        ("Gemma 2", {"attention_scale": 0.0}),
        ("Gemma 2", {"embedding_scale": 1.0}),
        ("Gemma 2", {"activation": "silu"}),
        ("Gemma 2", {"layer_kinds": ("full", "sliding", "full")}),
        ("Gemma 3", {"sliding_rope_theta": 0.0}),
        ("Gemma 3", {"rope": {"rope_type": "default"}}),
        ("Gemma 3", {"layer_kinds": ()}),
        ("Gemma 3", {"qk_norm": False}),
    ],
    ids=str,
)
def test_what_sets_a_family_apart_moves_the_logits(family: str, lost: dict[str, Any]) -> None:
    """The test of the test: the tiny models are sharp enough that a fact left out shows."""
    pair = pair_of(family)
    assert pair.off(pair.read([150], replace(pair.config, **lost))) > 0.1


@pytest.mark.parametrize("family", ["Phi-4 mini", "Qwen3 with YaRN"])
def test_the_attention_factor_of_long_rotation_moves_the_logits(family: str) -> None:
    pair = pair_of(family)
    assert pair.off(pair.read([150], replace(pair.config, rope={**pair.config.rope, "attention_factor": 1.0}))) > 0.1


@pytest.mark.parametrize("family", FAMILIES)
def test_in_bf16_logits_stay_near(family: str) -> None:
    pair = pair_of(family)
    near = pair.read([150], dtype=torch.bfloat16)
    assert (near - pair.truth).abs().mean() < 0.1 * pair.truth.abs().mean()


@pytest.mark.parametrize("family", ["Gemma 2", "Gemma 3"])
def test_embeddings_are_scaled_in_the_dtype_of_the_model(family: str) -> None:
    """The square root of 96 is 9.8 in float32 and 9.8125 in bf16, and models were trained with the latter."""
    pair = pair_of(family)
    near = tiny(seed=2, window=160, **FAMILIES[family]).bfloat16()
    decoder = Decoder(pair.config, build(installed(pair.config, near.state_dict()).get, pair.config, torch.bfloat16))
    assert torch.equal(decoder.embed(IDS), near.model.embed_tokens(IDS))


@pytest.mark.skipif(cpu.native() is None, reason="the native library isn't built")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bf16"])
@pytest.mark.parametrize("family", FAMILIES)
def test_tokens_read_together_have_the_bits_of_tokens_read_alone(family: str, dtype: torch.dtype) -> None:
    pair = pair_of(family)
    alone, together = (pair.read(chunks, dtype=dtype) for chunks in ([110, *[1] * 40], [110, 16, 8, 7, 9]))
    assert torch.equal(alone, together)


# ---- configs ----


@pytest.mark.parametrize("family", FAMILIES)
def test_a_config_means_the_same_as_published_and_as_transformers_writes_it(family: str) -> None:
    stored = {**SIZES, "max_position_embeddings": 160, **FAMILIES[family]}
    assert config_from_hf({name: value for name, value in stored.items() if value is not None}) == pair_of(family).config


def test_a_window_above_the_original_one_always_takes_the_long_divisors() -> None:
    stored = {**SIZES, **FAMILIES["Phi-4 mini"], "head_dim": 16}
    assert config_from_hf({**stored, "max_position_embeddings": 65}).rope["divisors"] == [1, 3, 5, 7, 9, 11]
    short = config_from_hf({**stored, "max_position_embeddings": 64})
    assert short.rope == {"rope_type": "divisors", "divisors": [1, 1.25, 1.5, 1.75, 2, 2.25], "attention_factor": 1.0}
    assert short.rotary_dim == 12


def test_a_window_stretched_by_yarn_is_as_long_as_that_makes_it() -> None:
    stored = {**SIZES, "model_type": "qwen2", "rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 100}}
    assert config_from_hf({**stored, "max_position_embeddings": 100}).window == 400
    assert config_from_hf({**stored, "max_position_embeddings": 400}).window == 400


def test_a_sliding_window_as_wide_as_the_models_own_is_none() -> None:
    stored = {**SIZES, "model_type": "mistral", "max_position_embeddings": 160}
    wide, none = config_from_hf({**stored, "sliding_window": 160}), config_from_hf({**stored, "sliding_window": None})
    assert wide == none
    assert (none.layer_kinds, none.sliding_window) == ((), 0)


def test_ids_that_end_an_answer_come_from_both_configs() -> None:
    config = config_from_hf({**SIZES, "model_type": "llama", "eos_token_id": 9}, {"eos_token_id": [4, 9]})
    assert config.eos == (4, 9)


def test_of_a_model_that_sees_images_the_text_part_is_taken() -> None:
    text = {name: value for name, value in {**SIZES, **FAMILIES["Gemma 3"]}.items() if name != "eos_token_id"}
    stored = {"model_type": "gemma3", "architectures": ["Gemma3ForConditionalGeneration"], "text_config": text, "eos_token_id": [1, 106]}
    config = config_from_hf(stored)
    assert (config.family, config.layers, config.tied) == ("gemma3", 4, True)
    assert {1, 106} <= {*config.eos}


def test_an_unknown_text_part_is_named() -> None:
    entries = {**SIZES, "max_position_embeddings": 4096}
    seeing = {"model_type": "mistral3", "architectures": ["Mistral3ForConditionalGeneration"]}
    config = config_from_hf({**seeing, "text_config": {**entries, "model_type": "mistral", "sliding_window": None}})
    assert (config.family, config.layers, config.layer_kinds, config.tied) == ("mistral", 3, (), False)
    with pytest.raises(LongshelfError, match="qwen3_moe"):
        config_from_hf({**seeing, "text_config": {"model_type": "qwen3_moe"}})


def test_names_of_a_model_that_sees_images_are_those_of_its_text_part() -> None:
    assert text_name("language_model.model.layers.3.mlp.up_proj.weight") == "model.layers.3.mlp.up_proj.weight"
    assert text_name("model.language_model.norm.weight") == "model.norm.weight"
    assert text_name("model.embed_tokens.weight") == "model.embed_tokens.weight"
    assert text_name("vision_tower.vision_model.encoder.layers.0.mlp.fc1.weight") is None
    assert text_name("model.vision_tower.encoder.layers.0.mlp.fc1.weight") is None


@pytest.mark.parametrize("family", FAMILIES)
def test_every_tensor_of_a_checkpoint_is_taken_whole(family: str) -> None:
    pair = pair_of(family)
    rows: dict[str, int] = {}
    for take in takes_from_hf(pair.config):
        rows[take.source] = rows.get(take.source, 0) + take.shape[0]
    state = pair.model.state_dict()
    if pair.config.tied:
        del state["lm_head.weight"]
    assert rows == {name: len(value) for name, value in state.items()}


def test_an_unknown_architecture_is_named() -> None:
    with pytest.raises(LongshelfError, match="FalconH1ForCausalLM") as caught:
        config_from_hf({"model_type": "falcon_h1", "architectures": ["FalconH1ForCausalLM"]})
    assert caught.value.kind == "model_unsupported"


@pytest.mark.parametrize(
    "variant",
    [
        {"model_type": ""},
        {"model_type": "llama", "attention_bias": True},
        {"model_type": "llama", "mlp_bias": True},
        {"model_type": "llama", "hidden_act": "relu"},
        {"model_type": "llama", "quantization_config": {"quant_method": "gptq"}},
        {"model_type": "qwen2", "rope_scaling": {"rope_type": "dynamic", "factor": 4.0}},
        {"model_type": "qwen2", "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "mscale": 0.7, "mscale_all_dim": 1.0}},
        {"model_type": "smollm3", "num_hidden_layers": 4, "use_sliding_window": True, "sliding_window": 20},
        {"model_type": "gemma3_text", "use_bidirectional_attention": True},
    ],
    ids=str,
)
def test_a_variant_that_would_be_computed_wrongly_is_refused(variant: dict[str, Any]) -> None:
    with pytest.raises(LongshelfError) as caught:
        config_from_hf({**SIZES, "max_position_embeddings": 4096, **variant})
    assert caught.value.kind == "model_unsupported"


def test_the_config_that_was_given_stays_as_it_was() -> None:
    stored = {**SIZES, **FAMILIES["Phi-4 mini"], "head_dim": 16, "max_position_embeddings": 160}
    before = json.dumps(stored)
    config_from_hf(stored)
    assert json.dumps(stored) == before


def test_a_config_that_contradicts_itself_is_damage() -> None:
    with pytest.raises(LongshelfError) as caught:
        config_from_hf({**SIZES, "model_type": "llama", "hidden_size": "wide"})
    assert caught.value.kind == "model_damaged"


@pytest.mark.parametrize("family", FAMILIES)
def test_a_wrong_entry_never_raises_anything_but_a_named_error(family: str) -> None:
    stored = {**SIZES, "max_position_embeddings": 160, **FAMILIES[family]}
    kinds = set()
    for name in stored:
        for wrong in (None, 0, -1, 1.5, "x", [], [0], {}, {"rope_type": "yarn", "factor": 0}):
            try:
                config_from_hf({**stored, name: wrong})
            except LongshelfError as error:
                kinds.add(error.kind)
    assert kinds == {"model_damaged", "model_unsupported"}


def test_what_a_family_does_not_have_is_not_in_its_identity() -> None:
    plain = config_from_hf({**SIZES, "model_type": "llama"}).identity
    assert not any(name in plain for name in ("rotary_dim", "softcap", "sliding", "layer_kinds", "bias", "norms"))
