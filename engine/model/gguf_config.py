"""What the metadata of a GGUF file means to our decoder.

A GGUF names most of a model's facts, and leaves some to whoever reads its architecture: which layers slide, how Gemma scales attention,
which of SmolLM3's layers aren't rotated. Those are written here as llama.cpp has them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.model.config import ModelConfig
from engine.model.families import FAMILIES, plain_kinds
from engine.model.gguf_file import GgufFile
from engine.model.long_rope import longrope, yarn

DIVISORS, SHORT, LONG = "rope_freqs.weight", "rope_factors_short.weight", "rope_factors_long.weight"
ROPE_TENSORS = frozenset((DIVISORS, SHORT, LONG))
_NOPE_PERIOD = 4
_SLIDING_PERIODS = {"gemma2": 2, "gemma3": 6}
"""The last layer of each period sees everything."""
_SMALLER_HEADS = {("gemma2", 46), ("gemma3", 62)}
"""Families and layers of the 27B Gemmas, which scale attention by hidden / heads instead of by the size of a head."""
_DEFAULTS = {
    "gemma2": {"sliding_window": 4096.0, "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0},
    "gemma3": {"freq_base_swa": 10000.0},
}


def config_of(file: GgufFile) -> ModelConfig:
    """Raises LongshelfError("model_unsupported") for another family or a variant that the decoder doesn't know, ("model_damaged")."""
    try:
        return _config(file)
    except (TypeError, ValueError, ArithmeticError) as error:
        raise file.damaged(f"its metadata contradicts itself ({error})") from error


def _config(file: GgufFile) -> ModelConfig:
    name = next((name for name, family in FAMILIES.items() if family.gguf == file.family), None)
    if name is None:
        raise file.unsupported(f"is of the family {file.family!r}" if file.family else "doesn't say of which family it is")
    if file.number("expert_count", 0):
        raise file.unsupported("is a mixture of experts")
    if "token_embd.weight" not in file.tensors:
        raise file.damaged("it has no token embeddings")
    theta = shortest(file.number("rope.freq_base", 10000.0))
    hidden, heads = int(file.number("embedding_length")), int(file.number("attention.head_count"))
    layers, window = int(file.number("block_count")), int(file.number("context_length"))
    head_dim = int(file.number("attention.key_length", hidden / max(heads, 1)))
    rotated = int(file.number("rope.dimension_count", head_dim))
    if int(file.number("attention.value_length", head_dim)) != head_dim:
        raise file.unsupported("has values of another width than keys")
    if rotated != head_dim and FAMILIES[name].interleaved:
        raise file.unsupported("rotates a part of each head")
    default, gemma = _DEFAULTS.get(name, {}), name in _SLIDING_PERIODS
    sliding_window, kinds = _kinds(file, name, layers, window, default.get("sliding_window", 0.0))
    scaled_by = hidden / max(heads, 1) if (name, layers) in _SMALLER_HEADS else float(head_dim)
    return ModelConfig(
        family=name,
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=int(file.number("attention.head_count_kv", heads)),
        head_dim=head_dim,
        intermediate=int(file.number("feed_forward_length")),
        vocab=int(file.tensors["token_embd.weight"].shape[-1]),
        rope_theta=theta,
        rms_eps=shortest(file.number("attention.layer_norm_rms_epsilon")),
        tied="output.weight" not in file.tensors,
        window=window,
        bos=file.token_id("bos_token_id"),
        eos=file.stop_ids(),
        rope=_rope(file, theta, rotated, window),
        rotary_dim=0 if rotated == head_dim else rotated,
        embedding_scale=hidden**0.5 if gemma else 1.0,
        attention_scale=shortest(file.number("attention.scale", scaled_by**-0.5)) if gemma else 0.0,
        attention_softcap=shortest(file.number("attn_logit_softcapping", default["attn_logit_softcapping"])) if name == "gemma2" else 0.0,
        logit_softcap=shortest(file.number("final_logit_softcapping", default.get("final_logit_softcapping", 0.0))) if gemma else 0.0,
        layer_kinds=kinds,
        sliding_window=sliding_window,
        sliding_rope_theta=shortest(file.number("rope.freq_base_swa", default["freq_base_swa"])) if name == "gemma3" else 0.0,
        **FAMILIES[name].always,
    )


def _kinds(file: GgufFile, name: str, layers: int, window: int, default: float) -> tuple[int, tuple[str, ...]]:
    """(sliding window or 0, kind of each layer or () for all full)."""
    sliding_window = int(file.number("attention.sliding_window", default))
    if name == "smollm3":
        return 0, tuple("full" if (layer + 1) % _NOPE_PERIOD else "nope" for layer in range(layers))
    if name not in _SLIDING_PERIODS:
        if name in ("qwen2", "qwen3") and 0 < sliding_window < window:
            raise file.unsupported("has sliding layers and doesn't say which")
        return plain_kinds(["sliding"] * layers, sliding_window, window)
    pattern = file.get(f"{file.family}.attention.sliding_window_pattern", _SLIDING_PERIODS[name])
    if isinstance(pattern, list) and len(pattern) != layers:
        raise file.damaged("its field attention.sliding_window_pattern doesn't fit its layers")
    sliding = pattern if isinstance(pattern, list) else [(layer + 1) % max(1, int(pattern)) > 0 for layer in range(layers)]
    return plain_kinds(["sliding" if slides else "full" for slides in sliding], sliding_window, window, keep=name == "gemma3")


def _rope(file: GgufFile, theta: float, rotated: int, window: int) -> dict[str, Any]:
    kind = file.get(f"{file.family}.rope.scaling.type", "none")
    rule = {"original_max_position_embeddings": file.number("rope.scaling.original_context_length", window)}
    if attention_factor := file.number("rope.scaling.attn_factor", 0):
        rule["attention_factor"] = shortest(attention_factor)
    if factor := file.number("rope.scaling.factor", 0):
        rule["factor"] = shortest(factor)
    if DIVISORS in file.tensors:
        return {"rope_type": "divisors", "divisors": _divisors(file, DIVISORS, rotated)}
    if SHORT in file.tensors or LONG in file.tensors:
        return longrope(_divisors(file, SHORT, rotated), _divisors(file, LONG, rotated), window, rule)
    if kind == "linear" and factor:
        return {"rope_type": "linear", "factor": rule["factor"]}
    if kind == "yarn":
        return yarn(theta, rotated, window, rule)
    if kind != "none":
        raise file.unsupported(f"scales its positions by {kind!r}")
    return {"rope_type": "default"}


def _divisors(file: GgufFile, name: str, rotated: int) -> list[float]:
    """The numbers of a tensor by which inverse frequencies are divided."""
    divisors = file.vector(name)
    if len(divisors) != rotated // 2 or not np.all(np.isfinite(divisors) & (divisors > 0)):
        raise file.damaged("its rotation frequencies don't fit its heads")
    return [shortest(value) for value in divisors]


def shortest(value: float) -> float:
    """The float32 in the file as the shortest decimal that names it (1e-05, not 9.999999747378752e-06)."""
    return float(str(np.float32(value)))
