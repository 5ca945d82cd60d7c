"""Tiny folders of the Hugging Face kind, as transformers saves them, to install from."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

from tests.engine.model import tiny_gguf
from tests.engine.model.tiny import FAMILIES, tiny
from tests.engine.model.tiny_vocabulary import byte_level_json, sentencepiece_model, tokenizer_json

SENTENCEPIECE_TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}{{ '[INST] ' + m.content + ' [/INST]' }}"
    "{% else %}{{ ' ' + m.content + eos_token }}{% endif %}{% endfor %}"
)
VOCABULARIES = {"bytes": 320, "tokenizer.json": 700, "tokenizer.model": 760}
"""Kinds of tokenizers, and the embeddings that a model with such a one gets."""


@cache
def model_of(family: str, vocabulary: str, window: int) -> PreTrainedModel:
    """A random model; its end of text has no weight in the head, so that it never ends an answer by itself."""
    entries = {**FAMILIES[family], "vocab_size": VOCABULARIES[vocabulary]}
    if "max_position_embeddings" in entries:  # which YaRN stretches fourfold
        entries["max_position_embeddings"] = window // 4
    model = tiny(seed=1, window=window, **entries)
    with torch.no_grad():
        model.get_output_embeddings().weight[:3] = 0
    return model


def write(
    path: Path,
    family: str = "Llama 3",
    vocabulary: str = "bytes",
    window: int = 4096,
    dtype: torch.dtype = torch.bfloat16,
    shard: str = "5GB",
    template: str | None = "own",
    **config: Any,
) -> Path:
    """shard: most bytes of a safetensors file. template: "own" for one that suits the vocabulary. config: changes of config.json."""
    model_of(family, vocabulary, window).to(dtype).save_pretrained(path, max_shard_size=shard)
    model_of(family, vocabulary, window).to(torch.float32)
    tokenizer_config: dict[str, Any] = {"bos_token": "<s>", "eos_token": {"content": "</s>"}}
    if vocabulary == "bytes":
        (path / "tokenizer.json").write_text(byte_level_json(), encoding="utf-8")
        tokenizer_config = {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>"}
    elif vocabulary == "tokenizer.json":
        (path / "tokenizer.json").write_text(tokenizer_json("prepend"), encoding="utf-8")
    else:
        (path / "tokenizer.model").write_bytes(sentencepiece_model())
        tokenizer_config["added_tokens_decoder"] = {"701": {"content": "[/INST]", "special": True}}
    if template is not None:
        suits = tiny_gguf.TEMPLATE if vocabulary == "bytes" else SENTENCEPIECE_TEMPLATE
        tokenizer_config["chat_template"] = suits if template == "own" else template
    (path / "tokenizer_config.json").write_text(json.dumps(tokenizer_config), encoding="utf-8")
    stored = json.loads((path / "config.json").read_text()) | config
    (path / "config.json").write_text(json.dumps(stored))
    return path
