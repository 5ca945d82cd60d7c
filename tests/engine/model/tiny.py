"""Tiny random models in which a broken rotation or mask can't hide: q and k are scaled so that attention is sharp."""

from __future__ import annotations

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from engine.model.config import ModelConfig
from engine.model.decoder import Decoder
from engine.model.weights import build


def llama(seed: int = 0, window: int = 4096, **changes: object) -> LlamaForCausalLM:
    """A Hugging Face Llama of 3 layers, 6 query heads on 2 KV heads, float32, eager attention."""
    torch.manual_seed(seed)
    settings = {
        "vocab_size": 320,
        "hidden_size": 96,
        "intermediate_size": 160,
        "num_hidden_layers": 3,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "max_position_embeddings": window,
        "rope_theta": 10000.0,
        "attn_implementation": "eager",
    }
    model = LlamaForCausalLM(LlamaConfig(**{**settings, **changes})).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "q_proj" in name or "k_proj" in name:
                weight.mul_(8)
    return model


def config_of(model: LlamaForCausalLM) -> ModelConfig:
    c = model.config
    rope = dict(getattr(c, "rope_parameters", None) or {"rope_type": "default"})
    return ModelConfig(
        family="llama",
        layers=c.num_hidden_layers,
        hidden=c.hidden_size,
        heads=c.num_attention_heads,
        kv_heads=c.num_key_value_heads,
        head_dim=c.head_dim,
        intermediate=c.intermediate_size,
        vocab=c.vocab_size,
        rope_theta=float(rope.get("rope_theta", 10000.0)),
        rms_eps=c.rms_norm_eps,
        tied=c.tie_word_embeddings,
        window=c.max_position_embeddings,
        bos=1,
        eos=(2,),
        rope=rope,
    )


def ours(model: LlamaForCausalLM, dtype: torch.dtype = torch.float32) -> Decoder:
    """Our decoder on the same weights."""
    config, state = config_of(model), model.state_dict()
    return Decoder(config, build(state.get, config, dtype))
