"""Tiny GGUF files of the Llama family, as another program would have written them, to install from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

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
    """Write a GGUF: matrices packed as `packing`, vectors float32. `fields` replaces or adds metadata, dots written as "__"."""
    writer = gguf.GGUFWriter(path, family)
    kinds = [gguf.TokenType.CONTROL if token in SPECIALS else gguf.TokenType.NORMAL for token in TOKENS]
    known: dict[str, Any] = {
        f"{family}.block_count": LAYERS,
        f"{family}.context_length": WINDOW,
        f"{family}.embedding_length": HIDDEN,
        f"{family}.feed_forward_length": INTERMEDIATE,
        f"{family}.attention.head_count": HEADS,
        f"{family}.attention.head_count_kv": KV_HEADS,
        f"{family}.attention.layer_norm_rms_epsilon": 1e-5,
        f"{family}.rope.freq_base": 10000.0,
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
    if template is not None:
        known["tokenizer.chat_template"] = template
    for key, value in (known | {name.replace("__", "."): value for name, value in fields.items()}).items():
        _add(writer, key, value)
    for name, tensor in (tensors() if values is None else values).items():
        if name.endswith(("attn_q.weight", "attn_k.weight")):
            tensor = _interleaved(tensor)
        if tensor.ndim == 1 or packing == PACKED.F32:
            writer.add_tensor(name, tensor)
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
    return np.ascontiguousarray(tensor.reshape(-1, 2, head_dim // 2, HIDDEN).swapaxes(1, 2).reshape(tensor.shape))


def _add(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    if isinstance(value, list):
        writer.add_array(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    else:
        writer.add_uint32(key, value)
