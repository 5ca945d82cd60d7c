"""Choosing parts: how likely a question is behind each, measured together as alone, fused with the full-text order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from engine.answering import choosing
from engine.answering.choosing import Likelihood, fuse, likelihood
from engine.answering.prompt import Prompts
from engine.answering.sources import Chains, asked_documents
from engine.attention.exact import Exact
from engine.attention.sequence import Rows, Sequence, Tail
from engine.errors import Stopped
from engine.model.loaded import LoadedModel
from engine.reading.memory import Chain
from engine.shelf import Shelf
from tests.engine.books import add, book

QUESTION = "Who keeps lamp 2.3?"


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


class Book:
    """A book of three chapters, read; its chains and the model, on this thread."""

    def __init__(self, shelf: Shelf, folder: Path) -> None:
        self.model: LoadedModel = shelf.model()[0]
        self.prompts = Prompts(self.model.card, self.model.tokenizer)
        self.document = add(shelf, book(folder, 3))
        opened = Chains(shelf, self.model, lambda: None)
        asked = asked_documents(shelf, [self.document["id"]], False, self.model.namespace)
        self.preamble, self.chains = opened.preamble, [opened.of(source) for source in asked.sources]

    def gains(self, chains: list[Chain], question: str = QUESTION) -> list[float]:
        return self.measured(chains, question).gains

    def measured(self, chains: list[Chain], question: str = QUESTION) -> Likelihood:
        behind = [chain.segments for chain in chains]
        return likelihood(self.model, self.prompts, self.preamble.segments, behind, question, lambda: None)

    def log_p(self, chain: Chain) -> float:
        """The mean of log p of the question's tokens behind a chain, read by itself."""
        before, asked = self.prompts.question_probe(QUESTION)
        sequence = Sequence(chain.segments, Tail(self.model.config, torch.bfloat16))
        rows = Rows([(sequence, len(before) + len(asked))])
        logits = self.model.decoder.forward(torch.tensor(before + asked), rows, Exact(self.model.config), slice(None))
        log_p = torch.log_softmax(logits[len(before) - 1 : -1], -1)
        return float(log_p[torch.arange(len(asked)), torch.tensor(asked)].mean())


@pytest.fixture
def read(tiny_shelf: Shelf, tmp_path: Path) -> Book:
    return Book(tiny_shelf, tmp_path)


def test_the_gain_is_how_much_likelier_a_question_is_behind_a_part(read: Book) -> None:
    expected = [read.log_p(chain) - read.log_p(read.preamble) for chain in read.chains]
    assert read.gains(read.chains) == pytest.approx(expected, abs=0.05)
    assert max(expected) - min(expected) > 0.2  # so that the tolerance tells them apart


def test_several_chains_measured_together_gain_what_each_does_alone(read: Book) -> None:
    alone = [read.gains([chain])[0] for chain in read.chains]
    assert read.gains(read.chains) == pytest.approx(alone, abs=0.05)


def test_batches_change_nothing(read: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    together = read.gains(read.chains)
    monkeypatch.setattr("engine.answering.choosing.BATCH_ROWS", 1)
    assert read.gains(read.chains) == pytest.approx(together, abs=0.05)


def test_what_was_computed_and_read_is_counted(read: Book) -> None:
    measured = read.measured(read.chains)
    probe = sum(map(len, read.prompts.question_probe(QUESTION)))
    assert measured.tokens == 4 * probe
    c = read.model.config
    keys = sum(chain.length - read.preamble.length for chain in read.chains) + read.preamble.length + 4 * probe
    assert measured.bytes == keys * c.kv_bytes_per_token


def test_a_chain_without_room_for_the_question_is_never_chosen(read: Book, tiny_shelf: Shelf, tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    path.write_text("word " * 800, encoding="utf-8")  # nowhere a good place to cut: the first part is as large as allowed
    long = add(tiny_shelf, path, part_tokens=3584)
    asked = asked_documents(tiny_shelf, [long["id"]], False, read.model.namespace)
    chain = Chains(tiny_shelf, read.model, lambda: None).of(asked.sources[0])
    gains = read.gains([read.chains[0], chain], question="?" * 600)
    assert chain.length + 600 > read.model.config.window
    assert gains[1] == float("-inf")
    assert gains[0] > float("-inf")


def test_measuring_stops_between_layers(read: Book) -> None:
    def stop() -> None:
        raise Stopped

    with pytest.raises(Stopped):
        likelihood(read.model, read.prompts, read.preamble.segments, [chain.segments for chain in read.chains], QUESTION, stop)


# ---- fusing ----


def test_both_orders_count_by_reciprocal_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "FUSION", 4)
    monkeypatch.setattr(choosing, "LIKELIHOOD_WEIGHT", 3)
    assert fuse([1.0, 3.0, 2.0], [0, None, 1]) == pytest.approx([3 / 6 + 1 / 4, 3 / 4, 3 / 5 + 1 / 5])


def test_first_in_both_orders_is_first_of_all() -> None:
    scores = fuse([0.1, 0.9, 0.3, -0.2], [2, 0, 1, 3])
    assert max(range(4), key=scores.__getitem__) == 1


def test_without_full_text_the_likelihood_decides() -> None:
    scores = fuse([0.1, 0.3, 0.2], [None, None, None])
    assert sorted(range(3), key=lambda i: -scores[i]) == [1, 2, 0]


def test_without_room_for_the_question_full_text_alone_does_not_win() -> None:
    scores = fuse([float("-inf"), 0.3], [0, 1])
    assert scores[1] >= scores[0]
