"""Tiny random models in which a broken rotation, mask or cap can't hide: q and k are scaled so that attention is sharp."""

from __future__ import annotations

import copy
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from engine.model.config import ModelConfig
from engine.model.decoder import Decoder
from engine.model.families import config_from_hf
from engine.model.tensor_names import takes_from_hf
from engine.model.weights import build

SIZES: dict[str, Any] = {
    "vocab_size": 320,
    "hidden_size": 96,
    "intermediate_size": 160,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "rope_theta": 10000.0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
LLAMA_3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
LONG_ROPE = {"type": "longrope", "short_factor": [1.0 + n / 4 for n in range(6)], "long_factor": [1.0 + 2 * n for n in range(6)]}
FAMILIES: dict[str, dict[str, Any]] = {
    "Llama 3": {"model_type": "llama", "rope_scaling": LLAMA_3},
    "Mistral": {"model_type": "mistral", "sliding_window": 20},
    "Mistral without a window": {"model_type": "mistral", "sliding_window": None},
    "Qwen2": {"model_type": "qwen2", "head_dim": None},
    "Qwen2 with sliding layers": {
        "model_type": "qwen2",
        "head_dim": None,
        "use_sliding_window": True,
        "sliding_window": 20,
        "max_window_layers": 1,
    },
    "Qwen3": {"model_type": "qwen3"},
    "Qwen3 with YaRN": {"model_type": "qwen3", "max_position_embeddings": 64, "rope_scaling": {"rope_type": "yarn", "factor": 4.0}},
    "Phi-3": {"model_type": "phi3", "head_dim": None, "sliding_window": 30},
    "Phi-4 mini": {
        "model_type": "phi3",
        "head_dim": None,
        "partial_rotary_factor": 0.75,
        "original_max_position_embeddings": 64,
        "rope_scaling": LONG_ROPE,
        "tie_word_embeddings": True,
    },
    "SmolLM3": {"model_type": "smollm3", "head_dim": None, "num_hidden_layers": 5},
    "Gemma 2": {
        "model_type": "gemma2",
        "sliding_window": 20,
        "query_pre_attn_scalar": 24,
        "attn_logit_softcapping": 5.0,
        "final_logit_softcapping": 1.0,
    },
    "Gemma 3": {
        "model_type": "gemma3_text",
        "sliding_window": 20,
        "num_hidden_layers": 4,
        "sliding_window_pattern": 3,
        "query_pre_attn_scalar": 24,
        "rope_theta": 1e6,
        "rope_local_base_freq": 1e4,
        "rope_scaling": {"rope_type": "linear", "factor": 8.0},
    },
}
"""What a config.json says of a tiny model of each family, beside `SIZES`."""


def tiny(seed: int = 0, window: int = 4096, **changes: Any) -> PreTrainedModel:
    """A Hugging Face model of random weights, float32, eager attention, as `config.json` with these entries describes it."""
    torch.manual_seed(seed)
    entries = {**SIZES, "max_position_embeddings": window, **changes}
    entries = copy.deepcopy({name: value for name, value in entries.items() if value is not None or name not in SIZES})
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**entries), attn_implementation="eager").eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if any(part in name for part in ("q_proj", "k_proj", "qkv_proj")) and name.endswith("weight"):
                weight[: weight.shape[0] if "qkv" not in name else 128].mul_(8)
            elif "norm" in name or name.endswith("bias"):
                weight.add_(0.3 * torch.randn(weight.shape))
    return model


def llama(seed: int = 0, window: int = 4096, **changes: Any) -> PreTrainedModel:
    """3 layers, 6 query heads on 2 KV heads."""
    return tiny(seed, window, **{"model_type": "llama", **changes})


def config_of(model: PreTrainedModel) -> ModelConfig:
    return config_from_hf(model.config.to_dict())


def ours(model: PreTrainedModel, dtype: torch.dtype = torch.float32) -> Decoder:
    """Our decoder on the same weights."""
    config = config_of(model)
    return Decoder(config, build(installed(config, model.state_dict()).get, config, dtype))


def installed(config: ModelConfig, checkpoint: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The tensors of a checkpoint as an installed model has them, not rounded."""
    found = {}
    for take in takes_from_hf(config):
        source = checkpoint[take.source]
        assert len(source) == take.source_rows
        found[take.name] = source[take.first : take.first + take.shape[0]] + take.plus
        assert tuple(found[take.name].shape) == take.shape
    return found
