"""The default model's real weights give the logits of transformers' eager attention in float32."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

import resources
from engine.attention.exact import Exact
from engine.attention.sequence import Rows, Sequence, Tail
from engine.home import Home
from engine.model.decoder import Decoder
from engine.model.installed import Models
from engine.model.weights import build, state


class Pair(NamedTuple):
    decoder: Decoder
    ids: torch.Tensor
    truth: torch.Tensor  # [tokens, vocabulary] float32


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def pair(model_home: Home, one_thread: None) -> Pair:
    """Our decoder with its bf16 weights made float32, and what transformers gives on the same ones."""
    installed = Models(model_home).open()
    config = installed.config
    plain = {name: tensor.float() for name, tensor in state(installed.weights).items()}
    peer_config = LlamaConfig(
        vocab_size=config.vocab,
        hidden_size=config.hidden,
        intermediate_size=config.intermediate,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        num_key_value_heads=config.kv_heads,
        head_dim=config.head_dim,
        max_position_embeddings=config.window,
        rms_norm_eps=config.rms_eps,
        tie_word_embeddings=config.tied,
        rope_parameters={"rope_type": "default", "rope_theta": config.rope_theta},
        attn_implementation="eager",
    )
    ids = torch.tensor(installed.tokenizer().encode_ids(resources.handbook("en").read_text(encoding="utf-8"))[:64])
    with torch.device("meta"):
        peer = LlamaForCausalLM(peer_config)
    peer.load_state_dict({"lm_head.weight": plain["model.embed_tokens.weight"], **plain}, assign=True)
    peer.model.rotary_emb = type(peer.model.rotary_emb)(peer_config)  # its tables are not part of the state
    with torch.no_grad():
        truth = peer.eval()(ids[None]).logits[0]
    del peer
    return Pair(Decoder(config, build(plain.get, config, torch.float32)), ids, truth)


@pytest.mark.parametrize("chunks", [[64], [40, 23, 1]], ids=["whole", "chunked"])
def test_real_logits_equal_eager_transformers(pair: Pair, chunks: list[int]) -> None:
    sequence, attention = Sequence((), Tail(pair.decoder.config, torch.float32)), Exact(pair.decoder.config)
    logits = []
    for piece in pair.ids.split(chunks):
        rows = Rows([(sequence, len(piece))])
        logits.append(pair.decoder.forward(piece, rows, attention, slice(None)))
        rows.advance()
    assert (torch.cat(logits) - pair.truth).abs().max() < 1e-4 * pair.truth.abs().max()
