"""Tiny GGUF files as another program would have written them, to install from: of the Llama family, or of any model of transformers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel

from engine.model.json_vocabulary import byte_symbols

SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
MERGES = ("t h", "th e", "Ġ the", "a n", "an d", "Ġ and", "1 8")
TOKENS = [*SPECIALS, *byte_symbols(), *(merge.replace(" ", "") for merge in MERGES)]
TEMPLATE = (
    "{% for message in messages %}{% if loop.first and message['role'] != 'system' %}<|im_start|>system\nBe brief.<|im_end|>\n{% endif %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] | trim + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
LAYERS, HIDDEN, HEADS, KV_HEADS, INTERMEDIATE, WINDOW = 2, 64, 4, 2, 96, 256
PACKED = gguf.GGMLQuantizationType


def tensors(seed: int = 0, tied: bool = True) -> dict[str, NDArray[np.float32]]:
    """Random float32 tensors under GGUF names; rows of q and k in two halves a head, as models are trained."""
    draw = np.random.default_rng(seed)
    head_dim = HIDDEN // HEADS
    shapes: dict[str, tuple[int, ...]] = {"token_embd": (len(TOKENS), HIDDEN), "output_norm": (HIDDEN,)}
    if not tied:
        shapes["output"] = (len(TOKENS), HIDDEN)
    for layer in range(LAYERS):
        shapes |= {
            f"blk.{layer}.attn_norm": (HIDDEN,),
            f"blk.{layer}.attn_q": (HIDDEN, HIDDEN),
            f"blk.{layer}.attn_k": (KV_HEADS * head_dim, HIDDEN),
            f"blk.{layer}.attn_v": (KV_HEADS * head_dim, HIDDEN),
            f"blk.{layer}.attn_output": (HIDDEN, HIDDEN),
            f"blk.{layer}.ffn_norm": (HIDDEN,),
            f"blk.{layer}.ffn_gate": (INTERMEDIATE, HIDDEN),
            f"blk.{layer}.ffn_up": (INTERMEDIATE, HIDDEN),
            f"blk.{layer}.ffn_down": (HIDDEN, INTERMEDIATE),
        }
    return {f"{name}.weight": draw.standard_normal(shape, dtype=np.float32) for name, shape in shapes.items()}


def write(
    path: Path,
    values: dict[str, NDArray[np.float32]] | None = None,
    packing: gguf.GGMLQuantizationType = PACKED.F32,
    family: str = "llama",
    template: str | None = TEMPLATE,
    **fields: Any,
) -> Path:
    """Write a GGUF: matrices packed as `packing` (uint8: they are), vectors float32. `fields` replaces or adds metadata, dots written as
    "__"."""
    known: dict[str, Any] = {
        f"{family}.block_count": LAYERS,
        f"{family}.context_length": WINDOW,
        f"{family}.embedding_length": HIDDEN,
        f"{family}.feed_forward_length": INTERMEDIATE,
        f"{family}.attention.head_count": HEADS,
        f"{family}.attention.head_count_kv": KV_HEADS,
        f"{family}.attention.layer_norm_rms_epsilon": 1e-5,
        f"{family}.rope.freq_base": 10000.0,
        **vocabulary(template),
    }
    known |= {name.replace("__", "."): value for name, value in fields.items()}
    stored = {
        name: _interleaved(tensor) if name.endswith(("attn_q.weight", "attn_k.weight")) else tensor
        for name, tensor in (tensors() if values is None else values).items()
    }
    return _write(path, family, known, stored, packing)


def vocabulary(template: str | None = TEMPLATE) -> dict[str, Any]:
    """What a file says of its tokens, and of itself."""
    kinds = [gguf.TokenType.CONTROL if token in SPECIALS else gguf.TokenType.NORMAL for token in TOKENS]
    known: dict[str, Any] = {
        "general.license": "mit",
        "general.languages": ["en", "ko"],
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": TOKENS,
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.merges": list(MERGES),
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
    }
    return known if template is None else {**known, "tokenizer.chat_template": template}


def write_model(path: Path, model: PreTrainedModel, packing: gguf.GGMLQuantizationType = PACKED.F32) -> Path:
    """The file that llama.cpp's converter makes of a checkpoint, its vocabulary replaced by ours. Names come from the gguf package."""
    c = model.config
    family = {"mistral": "llama", "gemma3_text": "gemma3"}.get(c.model_type, c.model_type)
    arch = next(arch for arch, name in gguf.MODEL_ARCH_NAMES.items() if name == family)
    names = gguf.get_tensor_name_map(arch, c.num_hidden_layers)
    values = {}
    for name, weight in model.state_dict().items():
        value = weight.numpy()
        if "gemma" in family and name.endswith("norm.weight"):
            value = value + np.float32(1)
        if family in ("llama", "smollm3") and name.endswith(("q_proj.weight", "k_proj.weight")):
            value = _interleaved(value)
        if not (name == "lm_head.weight" and c.tie_word_embeddings):
            values[names.get_name(name, try_suffixes=(".weight", ".bias"))] = value
    fields, factors = _facts(model)
    return _write(path, family, vocabulary() | {f"{family}.{key}": value for key, value in fields.items()}, values | factors, packing)


def _facts(model: PreTrainedModel) -> tuple[dict[str, Any], dict[str, NDArray[np.float32]]]:
    """(metadata without the family's name, tensors of rotation) that the converter writes."""
    c = model.config
    rope = c.rope_parameters.get("full_attention", c.rope_parameters)
    head_dim = getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads
    fields: dict[str, Any] = {
        "block_count": c.num_hidden_layers,
        "context_length": c.max_position_embeddings,
        "embedding_length": c.hidden_size,
        "feed_forward_length": c.intermediate_size,
        "attention.head_count": c.num_attention_heads,
        "attention.head_count_kv": c.num_key_value_heads,
        "attention.layer_norm_rms_epsilon": c.rms_norm_eps,
        "attention.key_length": head_dim,
        "attention.value_length": head_dim,
    }
    if c.model_type != "gemma2":
        fields["rope.freq_base"] = float(rope["rope_theta"])
    if c.model_type in ("llama", "smollm3"):
        fields["rope.dimension_count"] = head_dim
    if c.model_type in ("gemma2", "gemma3_text", "mistral") and c.sliding_window:
        fields["attention.sliding_window"] = c.sliding_window
    if c.model_type == "gemma2":
        fields |= {"attn_logit_softcapping": c.attn_logit_softcapping, "final_logit_softcapping": c.final_logit_softcapping}
    if rope["rope_type"] == "linear":
        fields |= {"rope.scaling.type": "linear", "rope.scaling.factor": float(rope["factor"])}
    if rope["rope_type"] == "yarn":
        fields |= {"rope.scaling.type": "yarn", "rope.scaling.factor": float(rope["factor"])}
        fields["rope.scaling.original_context_length"] = rope["original_max_position_embeddings"]
    if c.model_type == "phi3":
        fields |= {
            "attention.sliding_window": c.sliding_window or 0,
            "rope.dimension_count": int(head_dim * rope.get("partial_rotary_factor", 1.0)),
            "rope.scaling.original_context_length": c.original_max_position_embeddings,
        }
    if rope["rope_type"] == "longrope":
        trained = c.original_max_position_embeddings
        stretched = math.log(c.max_position_embeddings / trained) / math.log(trained)
        fields["rope.scaling.attn_factor"] = math.sqrt(1 + stretched)
        return fields, {f"rope_factors_{name}.weight": np.float32(rope[f"{name}_factor"]) for name in ("short", "long")}
    if rope["rope_type"] == "llama3":
        plain = 1.0 / 10000.0 ** (torch.arange(0, head_dim, 2).float() / head_dim)
        return fields, {"rope_freqs.weight": (plain / model.model.rotary_emb.inv_freq).numpy()}
    return fields, {}


def _write(
    path: Path, family: str, fields: dict[str, Any], values: dict[str, NDArray[np.float32]], packing: gguf.GGMLQuantizationType
) -> Path:
    writer = gguf.GGUFWriter(path, family)
    for key, value in fields.items():
        _add(writer, key, value)
    for name, tensor in values.items():
        if tensor.dtype == np.uint8:  # blocks already
            writer.add_tensor(name, np.ascontiguousarray(tensor), raw_dtype=packing)
        elif tensor.ndim == 1 or packing == PACKED.F32:
            writer.add_tensor(name, np.ascontiguousarray(tensor))
        else:
            writer.add_tensor(name, gguf.quants.quantize(tensor, packing), raw_dtype=packing)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _interleaved(tensor: NDArray[np.float32]) -> NDArray[np.float32]:
    """What llama.cpp's converter does to the rows of q and k: halves become pairs."""
    head_dim = HIDDEN // HEADS
    return np.ascontiguousarray(tensor.reshape(-1, 2, head_dim // 2, tensor.shape[1]).swapaxes(1, 2).reshape(tensor.shape))


def _add(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    if isinstance(value, list):
        writer.add_array(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    else:
        writer.add_uint32(key, value)
