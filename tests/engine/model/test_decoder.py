"""The decoder gives the logits of transformers' eager attention: whole, in chunks, token by token, and from shared chains."""

from __future__ import annotations

import pytest
import torch

from engine.attention.exact import Exact
from engine.attention.sequence import Rows, Sequence, Tail
from engine.errors import LongshelfError
from tests.engine.model.tiny import llama, ours

IDS = torch.randint(0, 320, (150,), generator=torch.Generator().manual_seed(3))


def read(decoder, ids: torch.Tensor, chunks: list[int], sequence: Sequence | None = None) -> torch.Tensor:
    sequence = sequence or Sequence((), Tail(decoder.config, decoder.dtype, 8))
    attention, logits, at = Exact(decoder.config), [], 0
    for count in chunks:
        rows = Rows([(sequence, count)])
        logits.append(decoder.forward(ids[at : at + count], rows, attention, slice(None)))
        rows.advance()
        at += count
    return torch.cat(logits)


@pytest.fixture(scope="module")
def pair():
    model = llama()
    with torch.no_grad():
        truth = model(IDS[None]).logits[0]
    return model, ours(model), truth


@pytest.mark.parametrize("chunks", [[150], [64, 64, 22], [1] * 150], ids=["whole", "chunked", "token by token"])
def test_logits_equal_eager_transformers(pair, chunks):
    _, decoder, truth = pair
    assert (read(decoder, IDS, chunks) - truth).abs().max() < 1e-4


@pytest.mark.parametrize(
    "changes",
    [
        {"num_attention_heads": 8, "num_key_value_heads": 8, "head_dim": 16},
        {"num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 80, "tie_word_embeddings": True},
        {"head_dim": 24},
        {
            "max_position_embeddings": 256,
            "rope_parameters": {
                "rope_type": "llama3",
                "rope_theta": 10000.0,
                "factor": 4.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 32,
            },
        },
        {"rope_parameters": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.0}},
    ],
    ids=["no groups", "one KV head, tied", "head size without a native kernel", "llama3 positions", "linear positions"],
)
def test_every_shape_of_the_family_equals_transformers(changes):
    model = llama(seed=5, **changes)
    with torch.no_grad():
        truth = model(IDS[None]).logits[0]
    assert (read(ours(model), IDS, [100, 49, 1]) - truth).abs().max() < 1e-4


def test_a_shifted_position_moves_the_logits(pair):
    """The test of the test: the tiny model is sharp enough that a wrong rotation shows."""
    _, decoder, truth = pair
    sequence = Sequence((), Tail(decoder.config, decoder.dtype))
    rows = Rows([(sequence, 150)])
    rows.positions[75:] += 1
    assert (decoder.forward(IDS, rows, Exact(decoder.config), slice(None)) - truth).abs().max() > 0.1


def test_two_sequences_in_one_call_read_only_their_own(pair):
    _, decoder, truth = pair
    first, second = (Sequence((), Tail(decoder.config, decoder.dtype)) for _ in range(2))
    other = IDS.flip(0)[:40]
    rows = Rows([(first, 60), (second, 40)])
    logits = decoder.forward(torch.cat([IDS[:60], other]), rows, Exact(decoder.config), slice(None))
    assert (logits[:60] - truth[:60]).abs().max() < 1e-4
    assert (logits[60:] - read(decoder, other, [40])).abs().max() < 1e-4


def test_a_cut_tail_gives_the_same_logits_again(pair):
    _, decoder, truth = pair
    sequence = Sequence((), Tail(decoder.config, decoder.dtype))
    read(decoder, IDS, [100], sequence)
    sequence.tail.cut(50)
    assert (read(decoder, IDS[50:], [100], sequence) - truth[50:]).abs().max() < 1e-4


def test_beyond_the_window_is_refused_with_numbers():
    decoder = ours(llama(window=64))
    with pytest.raises(LongshelfError, match="65 tokens.*holds 64"):
        read(decoder, IDS, [65])


def test_work_between_layers_is_called_once_a_layer_and_may_stop(pair):
    _, decoder, _ = pair
    calls = []

    def stop_at_second() -> None:
        calls.append(1)
        if len(calls) == 2:
            raise InterruptedError

    sequence = Sequence((), Tail(decoder.config, decoder.dtype))
    with pytest.raises(InterruptedError):
        decoder.forward(IDS, Rows([(sequence, 150)]), Exact(decoder.config), between_layers=stop_at_second)
    assert len(calls) == 2
    assert sequence.length == 0
