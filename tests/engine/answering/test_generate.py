"""The decode loop ends where it must, keeps what was said, and gives out whole characters only."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from engine.answering.generate import Generated, generate, loops
from engine.answering.prompt import Prompt
from engine.answering.sampling import Sampler, Sampling
from engine.attention.exact import Exact
from engine.attention.sequence import Sequence, Tail
from engine.errors import Stopped
from engine.model.prefill import prefill
from engine.model.tokenizer import Tokenizer
from tests.engine.answering.scripted import END, STRENGTH, scripted
from tests.engine.model.tiny import llama, ours


@pytest.fixture(scope="module")
def tokenizer(tiny_models: Path) -> Tokenizer:
    return Tokenizer(tiny_models / "tiny")


class Speaker:
    """A model that says one text after the prompt "..?", and then ends."""

    def __init__(self, tokenizer: Tokenizer, text: str, window: int = 256) -> None:
        self.tokenizer = tokenizer
        self.prompt = Prompt(tokenizer.encode_ids(".."), tokenizer.encode_ids("?"))
        self.ids = tokenizer.encode_ids(text)
        self.decoder = scripted(tokenizer.vocab_size, [*self.prompt.asking, *self.ids, END], window=window)
        self.sequence = Sequence((), Tail(self.decoder.config, torch.float32, 8))
        self.attention = Exact(self.decoder.config, range(1))
        self.pieces: list[str] = []

    def speak(self, max_tokens: int = 100, stop_at: int | None = None) -> Generated:
        """stop_at: the layer pass (one a call) at which the person stops it, from 1; the first is the prompt's."""
        passes = 0

        def between_layers() -> None:
            nonlocal passes
            passes += 1
            if passes == stop_at:
                raise Stopped

        return generate(
            self.decoder,
            self.tokenizer,
            self.sequence,
            self.prompt,
            Sampler(Sampling()),
            self.attention,
            max_tokens,
            self.pieces.append,
            between_layers,
        )


# ---- how it ends ----


def test_an_answer_ends_with_the_models_own_token(tokenizer: Tokenizer) -> None:
    speaker = Speaker(tokenizer, "Walden")
    said = speaker.speak()
    assert (said.text, said.ids, said.ending) == ("Walden", speaker.ids, "end")


def test_an_answer_may_be_empty(tokenizer: Tokenizer) -> None:
    speaker = Speaker(tokenizer, "")
    said = speaker.speak()
    assert (said.text, said.ids, said.ending) == ("", [], "end")


def test_an_answer_ends_at_the_limit(tokenizer: Tokenizer) -> None:
    said = Speaker(tokenizer, "Walden").speak(max_tokens=3)
    assert (said.text, said.ending) == ("Wal", "limit")


def test_an_answer_as_long_as_the_limit_allows_is_told_as_cut(tokenizer: Tokenizer) -> None:
    assert Speaker(tokenizer, "Walden").speak(max_tokens=6).ending == "limit"


def test_an_answer_ends_with_the_window(tokenizer: Tokenizer) -> None:
    speaker = Speaker(tokenizer, "Walden", window=7)
    said = speaker.speak()
    assert (said.ids, said.ending) == (speaker.ids[:4], "limit")
    assert speaker.sequence.length == 7


def test_a_stopped_answer_keeps_what_was_said(tokenizer: Tokenizer) -> None:
    speaker = Speaker(tokenizer, "Walden")
    said = speaker.speak(stop_at=4)
    assert (said.text, said.ids, said.ending) == ("Wal", speaker.ids[:3], "stopped")
    assert "".join(speaker.pieces) == "Wal"


def test_a_question_stopped_while_it_is_read_has_an_empty_answer(tokenizer: Tokenizer) -> None:
    said = Speaker(tokenizer, "Walden").speak(stop_at=1)
    assert (said.text, said.ids, said.ending, said.attended) == ("", [], "stopped", None)


def test_an_answer_that_goes_round_in_circles_is_ended(tokenizer: Tokenizer) -> None:
    speaker = Speaker(tokenizer, "")
    question, first, second = *speaker.prompt.asking, *tokenizer.encode_ids("xy")
    speaker.decoder = scripted(tokenizer.vocab_size, [question, first, second, first])
    said = speaker.speak()
    assert (said.text, said.ending) == ("xy" * 15, "loop")


def test_only_what_was_read_is_part_of_the_sequence(tokenizer: Tokenizer) -> None:
    speaker = Speaker(tokenizer, "Walden")
    speaker.speak(stop_at=4)
    assert speaker.sequence.length == 5  # the prompt and two letters: the pass of the third was stopped


# ---- text ----


def test_text_is_given_out_as_it_comes(tokenizer: Tokenizer) -> None:
    speaker = Speaker(tokenizer, "Walden")
    speaker.speak()
    assert speaker.pieces == list("Walden")


def test_hangul_split_over_tokens_is_given_out_in_whole_syllables(tokenizer: Tokenizer) -> None:
    speaker = Speaker(tokenizer, "한글")
    said = speaker.speak()
    assert len(said.ids) == 6
    assert speaker.pieces == ["한", "글"]
    assert said.text == "한글"


@pytest.mark.parametrize("tokens", range(1, 6))
def test_a_syllable_cut_off_by_the_limit_is_left_out(tokenizer: Tokenizer, tokens: int) -> None:
    said = Speaker(tokenizer, "한글").speak(max_tokens=tokens)
    assert len(said.ids) == tokens
    assert said.text == "한글"[: tokens // 3]


@pytest.mark.parametrize("tokens", range(1, 6))
def test_a_syllable_cut_off_by_stopping_is_left_out(tokenizer: Tokenizer, tokens: int) -> None:
    speaker = Speaker(tokenizer, "한글")
    said = speaker.speak(stop_at=tokens + 1)
    assert len(said.ids) == tokens
    assert said.text == "".join(speaker.pieces) == "한글"[: tokens // 3]


# ---- numbers ----


def test_the_log_probability_is_the_mean_over_the_answers_tokens(tokenizer: Tokenizer) -> None:
    said = Speaker(tokenizer, "Walden").speak()
    each = STRENGTH - math.log(math.exp(STRENGTH) + tokenizer.vocab_size - 1)
    assert said.log_probability == pytest.approx(each, rel=1e-4)


def test_opening_question_and_answer_each_tell_where_a_row_of_theirs_looked(tokenizer: Tokenizer) -> None:
    """By the mean: each sums to the heads of the one watched layer. Attention of zeros is spread evenly."""
    speaker = Speaker(tokenizer, "Walden")
    attended = speaker.speak().attended
    assert attended is not None
    for taken in (attended.opening, attended.question, attended.answer):
        assert taken.sum().item() == pytest.approx(speaker.decoder.config.heads, rel=1e-4)
    assert attended.question[:3].tolist() == pytest.approx([2 / 3] * 3, rel=1e-4)


# ---- going round in circles ----


@pytest.mark.parametrize(
    ("ids", "found"),
    [
        ([7] * 30, True),
        ([7] * 29, False),
        ([1, 2, 3] * 10, True),
        ([9, 9, 9, *[1, 2, 3] * 10], True),
        ([*[1, 2, 3] * 10, 9], False),
        (list(range(20)) * 3, True),
        (list(range(20)) * 2, False),
        (list(range(64)) * 3, True),
        (list(range(300)), False),
        ([], False),
    ],
    ids=str,
)
def test_three_copies_of_thirty_tokens_in_all_are_a_circle(ids: list[int], found: bool) -> None:
    assert loops(ids) is found


# ---- the prompt ----


def test_a_prompt_longer_than_a_chunk_gives_the_logits_of_reading_it_in_other_pieces() -> None:
    decoder, ids = ours(llama()), torch.randint(0, 320, (600,), generator=torch.Generator().manual_seed(1)).tolist()
    whole, cut = (Sequence((), Tail(decoder.config, torch.float32)) for _ in range(2))
    prefill(decoder, cut, ids[:77], Exact(decoder.config))
    assert (prefill(decoder, whole, ids, Exact(decoder.config)) - prefill(decoder, cut, ids[77:], Exact(decoder.config))).abs().max() < 1e-4
