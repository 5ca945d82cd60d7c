"""Which tensors a model of ours has, and where Hugging Face checkpoints and GGUF files keep them.

Ours go by Hugging Face's names for Llama; what other families name or fuse differently is undone at install, so that the decoder finds
every model laid out alike.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.model.config import ModelConfig
from engine.model.families import FAMILIES


@dataclass(frozen=True)
class Take:
    """One tensor of ours: the rows [first, first + shape[0]) of the tensor `source`, which has `source_rows` in all.

    plus: to be added to each number, in float32. interleaved: heads whose rows stand in pairs (2i, 2i + 1) in `source`, to be put back
    into halves (i, i + head_dim / 2); 0: they are in order.
    """

    name: str
    shape: tuple[int, ...]
    source: str
    source_rows: int
    first: int = 0
    plus: float = 0.0
    interleaved: int = 0


def takes_from_hf(config: ModelConfig) -> list[Take]:
    """Every tensor of the model, and its place in a Hugging Face checkpoint whose names went through `text_name`."""
    family = FAMILIES[config.family]
    plus = 1.0 if family.norm_plus_one else 0.0
    takes = []
    for name, shape, _ in _tensors(config):
        source, first, rows = _fused(config, name, shape[0], "qkv_proj", "gate_up_proj") if family.fused else (name, 0, shape[0])
        takes.append(Take(name, shape, source, rows, first, plus if name.endswith("norm.weight") else 0.0))
    return takes


def takes_from_gguf(config: ModelConfig) -> list[Take]:
    """Every tensor of the model, and its place in a GGUF file."""
    family = FAMILIES[config.family]
    takes = []
    for name, shape, source in _tensors(config):
        first, rows = 0, shape[0]
        if family.fused:
            source, first, rows = _fused(config, source, rows, "attn_qkv", "ffn_up")
        heads = {"q_proj": config.heads, "k_proj": config.kv_heads}.get(name.split(".")[-2], 0) if family.interleaved else 0
        takes.append(Take(name, shape, source, rows, first, interleaved=heads))
    return takes


def text_name(stored: str) -> str | None:
    """The name in a text-only checkpoint of a tensor in one that also has an image part; None for a tensor of that part."""
    for prefix, plain in (
        ("language_model.model.", "model."),
        ("model.language_model.", "model."),
        ("language_model.lm_head.", "lm_head."),
    ):
        if stored.startswith(prefix):
            return plain + stored.removeprefix(prefix)
    return stored if stored.startswith(("model.layers.", "model.embed_tokens.", "model.norm.", "lm_head.")) else None


def _tensors(c: ModelConfig) -> list[tuple[str, tuple[int, ...], str]]:
    """(our name, shape, name in a GGUF file) of every tensor."""
    q, kv = c.heads * c.head_dim, c.kv_heads * c.head_dim
    mlp_norm = "pre_feedforward_layernorm" if c.post_norms else "post_attention_layernorm"
    in_layer: list[tuple[str, tuple[int, ...], str]] = [
        ("input_layernorm.weight", (c.hidden,), "attn_norm.weight"),
        ("self_attn.q_proj.weight", (q, c.hidden), "attn_q.weight"),
        ("self_attn.k_proj.weight", (kv, c.hidden), "attn_k.weight"),
        ("self_attn.v_proj.weight", (kv, c.hidden), "attn_v.weight"),
        ("self_attn.o_proj.weight", (c.hidden, q), "attn_output.weight"),
        (f"{mlp_norm}.weight", (c.hidden,), "ffn_norm.weight"),
        ("mlp.gate_proj.weight", (c.intermediate, c.hidden), "ffn_gate.weight"),
        ("mlp.up_proj.weight", (c.intermediate, c.hidden), "ffn_up.weight"),
        ("mlp.down_proj.weight", (c.hidden, c.intermediate), "ffn_down.weight"),
    ]
    if c.qkv_bias:
        in_layer += [(f"self_attn.{x}_proj.bias", (rows,), f"attn_{x}.bias") for x, rows in (("q", q), ("k", kv), ("v", kv))]
    if c.qk_norm:
        in_layer += [(f"self_attn.{x}_norm.weight", (c.head_dim,), f"attn_{x}_norm.weight") for x in ("q", "k")]
    if c.post_norms:
        in_layer += [
            ("post_attention_layernorm.weight", (c.hidden,), "post_attention_norm.weight"),
            ("post_feedforward_layernorm.weight", (c.hidden,), "post_ffw_norm.weight"),
        ]
    outside: list[tuple[str, tuple[int, ...], str]] = [
        ("model.embed_tokens.weight", (c.vocab, c.hidden), "token_embd.weight"),
        ("model.norm.weight", (c.hidden,), "output_norm.weight"),
    ]
    if not c.tied:
        outside.append(("lm_head.weight", (c.vocab, c.hidden), "output.weight"))
    layers = [(f"model.layers.{n}.{name}", shape, f"blk.{n}.{source}") for n in range(c.layers) for name, shape, source in in_layer]
    return outside + layers


def _fused(c: ModelConfig, name: str, rows: int, qkv: str, gate_up: str) -> tuple[str, int, int]:
    """(name, first row, rows in all) of the matrix that holds the rows of the matrix `name`; of other tensors their own."""
    q, kv = c.heads * c.head_dim, c.kv_heads * c.head_dim
    fused = {
        "q_proj": (qkv, 0, q + 2 * kv),
        "k_proj": (qkv, q, q + 2 * kv),
        "v_proj": (qkv, q + kv, q + 2 * kv),
        "gate_proj": (gate_up, 0, 2 * c.intermediate),
        "up_proj": (gate_up, c.intermediate, 2 * c.intermediate),
    }
    fused |= {"attn_q": fused["q_proj"], "attn_k": fused["k_proj"], "attn_v": fused["v_proj"]}
    fused |= {"ffn_gate": fused["gate_proj"], "ffn_up": fused["up_proj"]}
    *before, own, kind = name.split(".")
    if own not in fused:
        return name, 0, rows
    matrix, first, in_all = fused[own]
    return ".".join([*before, matrix, kind]), first, in_all
