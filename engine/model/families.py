"""The table of model families: what each has that others don't, and what its Hugging Face config.json means to our decoder.

A family is a row of `FAMILIES`. Whatever a config asks for that the decoder doesn't do is an error here, before anything is installed: a
model that is computed almost rightly answers almost sensibly, and nobody would notice.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.errors import LongshelfError
from engine.model.config import ModelConfig
from engine.model.long_rope import longrope, yarn

SUPPORTED = "This version runs dense Llama, Mistral, Qwen2, Qwen3, Phi-3, Phi-4, SmolLM3, Gemma 2 and Gemma 3 models."
ROPE_RULES = ("default", "linear", "llama3", "longrope", "yarn")
_ACTIVATIONS = {"silu": "silu", "swish": "silu", "gelu_pytorch_tanh": "gelu_tanh"}


@dataclass(frozen=True)
class Family:
    """What sets a family apart.

    hf: its `model_type`s. gguf: its `general.architecture`. always: fields of ModelConfig that are the same for all of its models.
    fused: checkpoints keep q, k, v in one matrix, and gate and up in another. norm_plus_one: Hugging Face checkpoints hold w where the norm
    multiplies by 1 + w (a GGUF holds 1 + w). interleaved: a GGUF holds the rows of q and k in the order of interleaved rotation.
    sliding: "all" its layers where the config names a window, else those that the config lists, or "none".
    """

    hf: tuple[str, ...]
    gguf: str | None
    always: Mapping[str, Any] = field(default_factory=dict)
    fused: bool = False
    norm_plus_one: bool = False
    interleaved: bool = False
    sliding: str = "none"


_GEMMA = {"activation": "gelu_tanh", "post_norms": True}
FAMILIES: dict[str, Family] = {
    "llama": Family(("llama",), "llama", interleaved=True),
    "mistral": Family(("mistral", "mistral3"), None, sliding="all"),  # its GGUFs say "llama"
    "qwen2": Family(("qwen2",), "qwen2", {"qkv_bias": True}, sliding="listed"),
    "qwen3": Family(("qwen3",), "qwen3", {"qk_norm": True}, sliding="listed"),
    "phi3": Family(("phi3",), "phi3", fused=True, sliding="all"),
    "smollm3": Family(("smollm3",), "smollm3", interleaved=True),
    "gemma2": Family(("gemma2",), "gemma2", _GEMMA, norm_plus_one=True, sliding="listed"),
    "gemma3": Family(("gemma3_text", "gemma3"), "gemma3", {**_GEMMA, "qk_norm": True}, norm_plus_one=True, sliding="listed"),
}


def unsupported(what: str) -> LongshelfError:
    return LongshelfError("model_unsupported", what, SUPPORTED)


def config_from_hf(stored: Mapping[str, Any], generation: Mapping[str, Any] | None = None) -> ModelConfig:
    """The config of a Hugging Face checkpoint from its config.json and, for the ids that end an answer, its generation_config.json.

    Gaps are filled with the family's defaults by the `transformers` package. Of a model that also sees images the text part is taken.
    Raises LongshelfError("model_unsupported") for an unknown architecture or a variant that the decoder doesn't know, ("model_damaged")
    for a config that contradicts itself.
    """
    name = next((name for name, family in FAMILIES.items() if stored.get("model_type") in family.hf), None)
    if name is None:
        raise unsupported(f"The architecture {_architecture(stored)} isn't known.")
    if quantised := stored.get("quantization_config"):
        method = quantised.get("quant_method", "a method that isn't named") if isinstance(quantised, dict) else quantised
        raise LongshelfError(
            "model_unsupported", f"The weights are quantised with {method}.", "Take the original checkpoint, or a GGUF of the model."
        )
    try:
        return _config(name, stored, generation or {})
    except (AttributeError, KeyError, TypeError, ValueError, ArithmeticError) as error:
        raise _damaged(error) from error


def _config(name: str, stored: Mapping[str, Any], generation: Mapping[str, Any]) -> ModelConfig:
    family, c = FAMILIES[name], _filled(stored)
    if c.model_type not in family.hf:
        raise unsupported(f"The architecture {_architecture(stored)} with a text part {c.model_type!r} isn't known.")
    _check(c)
    head_dim = int(getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads)
    window, (rope_theta, sliding_rope_theta, rope, rotary_dim) = _window(c), _rope(c, head_dim)
    sliding_window, kinds = _kinds(family, c, window)
    gemma = "post_norms" in family.always
    ends = (_ids(source.get("eos_token_id")) for source in (generation, stored, c.to_dict()))
    return ModelConfig(
        family=name,
        layers=c.num_hidden_layers,
        hidden=c.hidden_size,
        heads=c.num_attention_heads,
        kv_heads=c.num_key_value_heads,
        head_dim=head_dim,
        intermediate=c.intermediate_size,
        vocab=c.vocab_size,
        rope_theta=rope_theta,
        rms_eps=c.rms_norm_eps,
        tied=bool(stored.get("tie_word_embeddings", c.tie_word_embeddings)),
        window=window,
        bos=c.bos_token_id,
        eos=tuple(sorted(set().union(*ends))),
        rope=rope,
        rotary_dim=rotary_dim,
        embedding_scale=c.hidden_size**0.5 if gemma else 1.0,
        attention_scale=c.query_pre_attn_scalar**-0.5 if gemma else 0.0,
        attention_softcap=(c.attn_logit_softcapping or 0.0) if name == "gemma2" else 0.0,
        logit_softcap=(c.final_logit_softcapping or 0.0) if gemma else 0.0,
        layer_kinds=kinds,
        sliding_window=sliding_window,
        sliding_rope_theta=sliding_rope_theta,
        **family.always,
    )


def _architecture(stored: Mapping[str, Any]) -> str:
    named = stored.get("architectures")
    return str((named[0] if isinstance(named, list) and named else stored.get("model_type")) or "(not named)")


def _damaged(error: Exception) -> LongshelfError:
    return LongshelfError("model_damaged", f"The model's config.json can't be used: {error}.", "Download the model again.")


def _filled(stored: Mapping[str, Any]) -> Any:
    """The transformers config of the model's text part, which for most is the whole."""
    from transformers import AutoConfig  # seconds to import, and needed at install only

    try:
        return AutoConfig.for_model(**copy.deepcopy(dict(stored))).get_text_config()  # it writes into what it is given
    except Exception as error:  # its validators raise what they like
        raise _damaged(error) from error


def _check(c: Any) -> None:
    activation = getattr(c, "hidden_activation", None) or getattr(c, "hidden_act", None)
    if _ACTIVATIONS.get(str(activation)) is None:
        raise unsupported(f"The model's MLP uses {activation}.")
    for flag, what in (
        ("mlp_bias", "biases in its MLP"),
        ("attention_bias", "a bias behind attention"),
        ("use_bidirectional_attention", "attention that sees what comes later"),
    ):
        if getattr(c, flag, False):
            raise unsupported(f"The model has {what}.")


def _rope(c: Any, head_dim: int) -> tuple[float, float, dict[str, Any], int]:
    """(theta, theta of sliding layers or 0, rule, leading dims that are rotated or 0 for all)."""
    rules = c.rope_parameters
    full, sliding = dict(rules.get("full_attention", rules)), rules.get("sliding_attention")
    if sliding is not None and sliding["rope_type"] != "default":
        raise unsupported(f"The model's sliding layers scale positions by {sliding['rope_type']!r}.")
    if full["rope_type"] not in ROPE_RULES:
        raise unsupported(f"The model scales positions by {full['rope_type']!r}.")
    theta, rotated = float(full.pop("rope_theta")), int(head_dim * full.pop("partial_rotary_factor", 1.0))
    full.pop("type", None)  # the older name of rope_type
    if full["rope_type"] == "longrope":
        full = longrope(full["short_factor"], full["long_factor"], c.max_position_embeddings, full)
    elif full["rope_type"] == "yarn":
        if full.keys() & {"mscale", "mscale_all_dim"}:
            raise unsupported("The model scales attention by a rule of its own (mscale).")
        full = yarn(theta, rotated, c.max_position_embeddings, full)
    return theta, float(sliding["rope_theta"]) if sliding else 0.0, full, 0 if rotated == head_dim else rotated


def _window(c: Any) -> int:
    """Configs that stretch positions by YaRN often still name the window before."""
    rule, window = c.rope_parameters, int(c.max_position_embeddings)
    if rule.get("rope_type") != "yarn" or not rule.get("factor"):
        return window
    return max(window, int(rule["factor"] * rule["original_max_position_embeddings"]))


def _kinds(family: Family, c: Any, window: int) -> tuple[int, tuple[str, ...]]:
    """(sliding window or 0, kind of each layer or () for all full)."""
    sliding_window = getattr(c, "sliding_window", None) or 0
    listed = getattr(c, "layer_types", None) or []
    if family.sliding == "all":
        kinds = ["sliding"] * c.num_hidden_layers
    elif family.sliding == "listed":
        kinds = ["sliding" if kind == "sliding_attention" else "full" for kind in listed]
        if strange := set(listed) - {"sliding_attention", "full_attention"}:
            raise unsupported(f"The model has layers of the kind {min(strange)!r}.")
    else:
        turned = getattr(c, "no_rope_layers", None) or [1] * c.num_hidden_layers
        kinds = ["full" if turned[layer] else "nope" for layer in range(c.num_hidden_layers)]
        if "sliding_attention" in listed:
            raise unsupported("The model has sliding layers without rotation.")
    return plain_kinds(kinds, sliding_window, window, keep=isinstance(c.rope_parameters.get("sliding_attention"), dict))


def plain_kinds(kinds: list[str], sliding_window: int, window: int, keep: bool = False) -> tuple[int, tuple[str, ...]]:
    """(sliding window or 0, kinds or () for all full); a sliding window as wide as the model's own is none. keep: not so where sliding
    layers differ in their rotation too."""
    if not keep and not 0 < sliding_window < window:
        kinds = ["full" if kind == "sliding" else kind for kind in kinds]
    if set(kinds) == {"full"}:
        return 0, ()
    return sliding_window if "sliding" in kinds else 0, tuple(kinds)


def _ids(named: int | list[int] | None) -> set[int]:
    if named is None:
        return set()
    return {named} if isinstance(named, int) else set(named)
