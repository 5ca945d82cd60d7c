"""`bench decode`: our exact decoding and prefill beside transformers', on the same weights, tokens and threads.

The peer is the faster of eager and sdpa attention, in bf16. Contexts: 512 and 7,680 tokens of the handbook, repeated as needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from engine.errors import LongshelfError
from engine.evaluation.ours import decoding, handbook_ids, read_ids
from engine.evaluation.report import Report, timed
from engine.evaluation.stages import add_stages
from engine.model.loaded import LoadedModel
from engine.model.weights import state

CONTEXTS = (512, 7680)
PREFILL = 2048
PEERS = ("eager", "sdpa")


def bench_decode(model: LoadedModel, say: Callable[[str], None], quick: bool = False, stages: bool = False) -> Report:
    """Figures exact_vs_transformers_512, exact_vs_transformers_7680, prefill_vs_transformers: above 1 we are faster.

    quick: the short context only, and fewer repeats. stages: no peers, but where the time of our own step goes (`add_stages`).
    """
    repeats, steps = (3, 4) if quick else (7, 16)
    named = CONTEXTS[:1] if quick else CONTEXTS  # reading thousands of tokens three times over takes minutes
    contexts = [min(context, model.config.window - 64) for context in named]
    report = Report(
        "decode",
        {
            "model": model.name,
            "dtype": "bfloat16",
            "contexts": contexts,
            "prefill_tokens": PREFILL,
            "repeats": repeats,
            "steps": steps,
            "quick": quick,
            "stages": stages,
        },
    )
    if stages:
        for context in contexts:
            say(f"a step behind {context} tokens")
            add_stages(report, model, context, repeats)
        return report
    peers = {kind: _peer(model, kind) for kind in PEERS}
    for context in contexts:
        ids = handbook_ids(model, context)
        say(f"decoding behind {context} tokens")
        sides: dict[str, Callable[[], object]] = {"longshelf": decoding(model, read_ids(model, ids), steps)}
        cache = _peer_cache(peers["sdpa"], ids)
        sides |= {kind: _peer_decode(peer, cache, steps) for kind, peer in peers.items()}
        _alternate(report, sides, repeats, steps, stage="decode", context=context)
    say(f"reading {PREFILL} tokens")
    ids = handbook_ids(model, PREFILL)
    sides = {"longshelf": lambda: read_ids(model, ids)} | {kind: _peer_prefill(peer, ids) for kind, peer in peers.items()}
    _alternate(report, sides, 2 if quick else 5, PREFILL, stage="prefill", context=PREFILL)
    for context, name in zip(contexts, named, strict=True):
        report.figures[f"exact_vs_transformers_{name}"] = _advantage(report, stage="decode", context=context)
        report.figures[f"exact_ms_{name}"] = 1e3 * report.median("seconds", side="longshelf", stage="decode", context=context)
    report.figures["prefill_vs_transformers"] = _advantage(report, stage="prefill", context=PREFILL)
    report.figures["prefill_tokens_per_s"] = 1 / report.median("seconds", side="longshelf", stage="prefill")
    return report


def _alternate(report: Report, sides: dict[str, Callable[[], object]], repeats: int, tokens: int, **where: Any) -> None:
    """One warm-up of each side, then repeats in turn; rows hold seconds a token."""
    for work in sides.values():
        work()
    for repeat in range(repeats):
        for side, work in sides.items():
            report.add(side=side, repeat=repeat, seconds=timed(work) / tokens, **where)


def _advantage(report: Report, **where: Any) -> float:
    ours = report.median("seconds", side="longshelf", **where)
    return min(report.median("seconds", side=kind, **where) for kind in PEERS) / ours


def _peer(model: LoadedModel, attention: str) -> Any:
    """transformers' Llama with the very same weights. Raises LongshelfError("model_unsupported") for another family."""
    from transformers import LlamaConfig, LlamaForCausalLM

    c = model.config
    if c.family != "llama" or "divisors" in c.rope:
        raise LongshelfError(
            "model_unsupported",
            f"This bench runs the same weights in transformers' Llama; {model.name} ({c.family}) can't be run so.",
            "Choose the default model with `longshelf models use`.",
        )
    config = LlamaConfig(
        vocab_size=c.vocab,
        hidden_size=c.hidden,
        intermediate_size=c.intermediate,
        num_hidden_layers=c.layers,
        num_attention_heads=c.heads,
        num_key_value_heads=c.kv_heads,
        head_dim=c.head_dim,
        max_position_embeddings=c.window,
        rms_norm_eps=c.rms_eps,
        tie_word_embeddings=c.tied,
        rope_parameters={**c.rope, "rope_theta": c.rope_theta},
        attn_implementation=attention,
    )
    with torch.device("meta"):
        peer = LlamaForCausalLM(config)
    tensors = state(model.installed.weights)
    if c.tied:
        tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"]
    peer = peer.to_empty(device="cpu").to(torch.bfloat16)
    peer.load_state_dict(tensors)
    peer.model.rotary_emb = type(peer.model.rotary_emb)(config)  # its tables are not part of the state
    return peer.eval()


@torch.inference_mode()
def _peer_cache(peer: Any, ids: list[int]) -> Any:
    from transformers import DynamicCache

    cache = DynamicCache()
    peer(torch.tensor([ids]), cache=cache, logits_to_keep=1)
    return cache


def _peer_decode(peer: Any, cache: Any, steps: int) -> Callable[[], object]:
    @torch.inference_mode()
    def run() -> None:
        token = torch.tensor([[1]])
        for _ in range(steps):
            logits = peer(token, cache=cache, logits_to_keep=1).logits
            token = logits[:, -1].argmax(-1, keepdim=True)
        cache.crop(-steps)

    return run


def _peer_prefill(peer: Any, ids: list[int]) -> Callable[[], object]:
    return lambda: _peer_cache(peer, ids)
