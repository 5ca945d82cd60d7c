"""Weights as the decoder uses them: tensors of one layer fused for few, large products.

Read from model.safetensors under Hugging Face's names; mapped, so that two processes share the pages of what is not fused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from engine.errors import LongshelfError
from engine.model.config import ModelConfig


@dataclass(frozen=True)
class Layer:
    """One decoder layer. Shapes are [out, in] as torch linears want them."""

    attention_norm: torch.Tensor  # [E]
    qkv: torch.Tensor  # [(Hq + 2 Hkv) D, E]
    out: torch.Tensor  # [E, Hq D]
    mlp_norm: torch.Tensor  # [E]
    gate_up: torch.Tensor  # [2 F, E]
    down: torch.Tensor  # [E, F]


@dataclass(frozen=True)
class Weights:
    embedding: torch.Tensor  # [V, E]
    layers: tuple[Layer, ...]
    norm: torch.Tensor  # [E]
    head: torch.Tensor  # [V, E]; the embedding itself where they are tied

    @property
    def dtype(self) -> torch.dtype:
        return self.embedding.dtype


def load(folder: Path, config: ModelConfig, dtype: torch.dtype = torch.bfloat16) -> Weights:
    """Weights of an installed model. Raises LongshelfError("model_damaged") for a missing or misshapen tensor."""
    path = folder / "model.safetensors"
    try:
        with safe_open(path, framework="pt") as file:
            return build(lambda name: file.get_tensor(name), config, dtype)
    except (OSError, SafetensorError) as error:
        raise LongshelfError(
            "model_damaged", f"The model's weights {path} can't be read: {error}.", "Remove the model and install it again."
        ) from error


def build(tensor: Callable[[str], torch.Tensor], config: ModelConfig, dtype: torch.dtype) -> Weights:
    """Weights from a lookup by Hugging Face name."""

    def get(name: str, *shape: int) -> torch.Tensor:
        found = tensor(name)
        if tuple(found.shape) != shape:
            raise LongshelfError(
                "model_damaged", f"The model's tensor {name} is {list(found.shape)}, not {list(shape)}.", "Install the model again."
            )
        return found.to(dtype)

    e, d, q, kv, f = config.hidden, config.head_dim, config.heads, config.kv_heads, config.intermediate
    layers = []
    for n in range(config.layers):
        at = f"model.layers.{n}."
        attention, mlp = at + "self_attn.", at + "mlp."
        layers.append(
            Layer(
                attention_norm=get(at + "input_layernorm.weight", e),
                qkv=torch.cat(
                    [
                        get(attention + "q_proj.weight", q * d, e),
                        get(attention + "k_proj.weight", kv * d, e),
                        get(attention + "v_proj.weight", kv * d, e),
                    ]
                ),
                out=get(attention + "o_proj.weight", e, q * d).contiguous(),
                mlp_norm=get(at + "post_attention_layernorm.weight", e),
                gate_up=torch.cat([get(mlp + "gate_proj.weight", f, e), get(mlp + "up_proj.weight", f, e)]),
                down=get(mlp + "down_proj.weight", e, f).contiguous(),
            )
        )
    embedding = get("model.embed_tokens.weight", config.vocab, e)
    head = embedding if config.tied else get("lm_head.weight", config.vocab, e)
    return Weights(embedding, tuple(layers), get("model.norm.weight", e), head)
