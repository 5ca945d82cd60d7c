"""A real decoder that says what a test wants: its weights make every token be followed by one chosen token.

One-hot embeddings, attention and MLP of zeros, and a head that maps each token to its successor: logits are STRENGTH for the
successor and 0 for all others, exactly.
"""

from __future__ import annotations

from itertools import pairwise

import torch

from engine.model.config import ModelConfig
from engine.model.decoder import Decoder
from engine.model.weights import build

END = 2
STRENGTH = 10.0


def scripted(vocab: int, *runs: list[int], window: int = 256, layers: int = 1) -> Decoder:
    """After runs[i][0] the model says the rest of the run. Tokens that begin no pair are followed by token 0."""
    config = ModelConfig(
        family="llama",
        layers=layers,
        hidden=vocab,
        heads=2,
        kv_heads=1,
        head_dim=16,
        intermediate=8,
        vocab=vocab,
        rope_theta=10000.0,
        rms_eps=1e-12,
        tied=False,
        window=window,
        bos=None,
        eos=(END,),
    )
    followers = [pair for run in runs for pair in pairwise(run)]
    assert len({before for before, _ in followers}) == len(set(followers)), "a token can have one successor only"
    head = torch.zeros(vocab, vocab)
    for before, after in followers:
        head[after, before] = STRENGTH * vocab**-0.5  # a one-hot row has this norm after RMSNorm
    shapes = {"q_proj": (32, vocab), "k_proj": (16, vocab), "v_proj": (16, vocab), "o_proj": (vocab, 32)}
    shapes |= {"gate_proj": (8, vocab), "up_proj": (8, vocab), "down_proj": (vocab, 8)}

    def tensor(name: str) -> torch.Tensor | None:
        if name == "model.embed_tokens.weight":
            return torch.eye(vocab)
        if name == "lm_head.weight":
            return head
        if "norm" in name:
            return torch.ones(vocab)
        return torch.zeros(shapes[name.split(".")[-2]]) if name.endswith(".weight") else None

    return Decoder(config, build(tensor, config, torch.float32))
