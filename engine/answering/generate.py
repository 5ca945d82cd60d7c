"""The decode loop: prompt onto the tail, then one token after another until the model ends, the limit is reached or Stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from engine.answering.citations import middle_layers
from engine.answering.prompt import Prompt
from engine.answering.sampling import Chooser
from engine.answering.thought import Thought
from engine.attention.exact import Exact
from engine.attention.sequence import Attention, Rows, Sequence
from engine.errors import Stopped
from engine.model.decoder import Decoder
from engine.model.prefill import prefill
from engine.model.tokenizer import Tokenizer, TokenStream


@dataclass(frozen=True)
class Attended:
    """[positions] each: the attention that a row of the opening, of the question and of the answer gave, by the mean; zeros where
    there were none."""

    opening: torch.Tensor
    question: torch.Tensor
    answer: torch.Tensor


@dataclass
class Generated:
    """ids: without the token that ended the answer. Times in seconds.

    ending: "end" (the model's own), "limit", "loop" (it said the same over and over) or "stopped".
    """

    ids: list[int] = field(default_factory=list)
    text: str = ""
    ending: str = "limit"
    prompt_s: float = 0.0
    decode_s: float = 0.0
    log_probability: float = 0.0  # mean over the tokens, the ending one included; natural log
    attended: Attended | None = None  # None where the answer never began


def generate(
    decoder: Decoder,
    tokenizer: Tokenizer,
    sequence: Sequence,
    prompt: Prompt,
    chooser: Chooser,
    attention: Exact,
    max_tokens: int,
    emit: Callable[[str], None],
    between_layers: Callable[[], None] | None = None,
    decoding: Callable[[], Attention] | None = None,
) -> Generated:
    """Answer after the chain and tail of `sequence`. `emit` gets text as its characters become complete.

    attention reads the prompt; `decoding`, called behind the first token, gives what reads the answer's: without it attention does.
    A `Stopped` raised between layers ends the answer; what was generated until then is kept.
    """
    result = Generated()
    reading: Attention | None = None
    opened = sequence.length + len(prompt.opening)
    attention.watch((sequence.length, opened, sequence.length + len(prompt)))
    stream, thought = TokenStream(tokenizer), Thought()
    started = answering = time.perf_counter()
    try:
        logits = prefill(decoder, sequence, prompt.opening + prompt.asking, attention, between_layers)
        answering = time.perf_counter()
        while len(result.ids) < max_tokens and sequence.length < decoder.config.window:
            token = chooser.choose(logits)
            result.log_probability += float(torch.log_softmax(logits, -1)[token])
            if token in decoder.config.eos:
                result.ending = "end"
                break
            result.ids.append(token)
            if piece := thought.fold(stream.feed(token)):
                result.text += piece
                emit(piece)
            if loops(result.ids):
                result.ending = "loop"
                break
            if reading is None:
                reading = decoding() if decoding is not None else attention
            rows = Rows([(sequence, 1)])
            logits = decoder.forward(torch.tensor([token]), rows, reading, slice(-1, None), between_layers)[0]
            rows.advance()
    except Stopped:
        result.ending = "stopped"
    if answering > started:
        result.attended = Attended(*attention.watched(middle_layers(decoder.config.layers)))
    result.text += thought.flush() + stream.flush()
    result.log_probability /= max(1, len(result.ids) + (result.ending == "end"))
    result.prompt_s, result.decode_s = answering - started, time.perf_counter() - answering
    return result


def loops(ids: list[int]) -> bool:
    """Whether the answer ends in copies of one run: three or more, 30 tokens or more. Small models that fall into this never leave it."""
    for period in range(1, min(64, len(ids) // 3) + 1):
        repeated = max(2 * period, 30 - period)
        if len(ids) >= repeated + period and ids[-repeated:] == ids[-repeated - period : -period]:
            return True
    return False
