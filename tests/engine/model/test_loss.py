"""The log-loss of a text's tokens, sampled, and what they stand for."""

from __future__ import annotations

import math

import pytest
import torch

from engine.home import Home
from engine.model.install import install_model
from engine.model.installed import Models
from engine.model.loss import Loss, letters, looked_at, of_rows
from tests.engine.model import tiny_folder


def test_the_rows_looked_at_are_the_same_every_time_and_have_a_token_behind_them() -> None:
    assert looked_at(512).tolist() == list(range(15, 512, 32))
    assert looked_at(16).tolist() == looked_at(3).tolist() == []
    assert looked_at(17).tolist() == [15]


@pytest.mark.parametrize(
    ("written", "count"), [("the ", 4), ("é", 1), ("жук", 3), ("나는", 6), ("かな", 6), ("漢", 3), ("“", 1), ("🙂", 1), ("", 0)]
)
def test_a_syllable_counts_as_three_letters(written: str, count: int) -> None:
    assert letters(written.encode()) == count


def test_tokens_that_split_a_character_count_it_once() -> None:
    assert [letters(bytes([byte])) for byte in "나".encode()] == [3, 0, 0]


def test_the_loss_of_rows_is_cross_entropy(tiny_home: Home) -> None:
    tokenizer = Models(tiny_home).open().tokenizer()
    logits, chunk = torch.randn(2, tokenizer.vocab_size), tokenizer.encode_ids("abc")
    loss = of_rows(logits, chunk, torch.tensor([0, 1]), tokenizer)
    truth = torch.nn.functional.cross_entropy(logits, torch.tensor(chunk[1:]), reduction="sum")
    assert (loss.count, loss.letters) == (2, 2)
    assert math.isclose(loss.nats, float(truth), rel_tol=1e-5)
    assert math.isclose((loss + loss).bits_per_letter, loss.nats / 2 / math.log(2))


def test_an_installed_model_knows_how_it_reads_the_handbook(tmp_path_factory: pytest.TempPathFactory) -> None:
    room = tmp_path_factory.mktemp("usual")
    home = Home(room / "home").open()
    card = Models(home).open(install_model(home, tiny_folder.write(room / "tiny", "Gemma 3"))).card
    assert card.usual_bits is not None
    assert 4 < card.usual_bits < 12  # random: about log2 of its vocabulary, a letter a token
    assert Loss().bits_per_letter == 0
