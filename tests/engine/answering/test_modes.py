"""Answers that are sampled: a few keys are read, the error is measured, and the same seed says the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.answering import modes
from engine.answering.modes import EXACT, Afforded, Mode, as_bits, compact_set
from engine.attention import sampled
from engine.attention.exact import Exact
from engine.attention.in_memory import InMemory
from engine.errors import LongshelfError
from engine.library.sidecars import SKETCH
from engine.model import calibration
from engine.model.config import ModelConfig
from engine.retrieval import kept_sketches, projections
from engine.shelf import Shelf
from tests.engine.books import Row, add, ask, book, listen


@pytest.fixture
def document(tiny_shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The id of a book of one part, which is long enough to be sampled."""
    monkeypatch.setattr(modes, "LEAST", 16)
    monkeypatch.setattr(sampled, "LOCAL", 8)
    monkeypatch.setattr(modes, "LOCAL", 8)
    monkeypatch.setattr(modes, "COMPACT", 8)
    monkeypatch.setattr(modes, "KEYS", 40)
    return str(add(tiny_shelf, book(tmp_path, 1))["id"])


def kept(shelf: Shelf) -> list[str]:
    return [row.digest for row in shelf.library.sidecars.all() if row.kind == SKETCH]


def test_a_sampled_answer_says_what_it_read_and_how_far_off_it_was(tiny_shelf: Shelf, document: str) -> None:
    exact = ask(tiny_shelf, document)
    result = ask(tiny_shelf, document, mode="sampled", seed=1)
    assert (result["mode"], result["mode_asked"], result["exact_because"]) == ("sampled", "sampled", None)
    assert 0 < result["error_measured"] < 1
    assert 0 < result["keys_read_fraction"] < result["rows_read_fraction"] < 1
    assert result["kv_bytes_read"] < exact["kv_bytes_read"]
    assert result["citations"]
    assert (exact["mode"], exact["error_measured"], exact["keys_read_fraction"], exact["rows_read_fraction"]) == ("exact", 0.0, 1.0, 1.0)


def test_the_same_seed_says_the_same(tiny_shelf: Shelf, document: str) -> None:
    first, second = (ask(tiny_shelf, document, mode="sampled", seed=3) for _ in range(2))
    told = ("token_ids", "error_measured", "keys_read_fraction", "rows_read_fraction", "kv_bytes_read")
    assert [first[name] for name in told] == [second[name] for name in told]


def test_sketches_made_while_adding_are_found_by_the_first_question(
    tiny_shelf: Shelf, document: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_sketches, "make", refuse)
    assert ask(tiny_shelf, document, mode="sampled")["mode"] == "sampled"


def test_a_sketch_that_is_missing_is_made_by_the_first_question_and_found_by_the_next(
    tiny_shelf: Shelf, document: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ask(tiny_shelf, document, mode="sampled", seed=3)
    before = kept(tiny_shelf)
    forget_sketches(tiny_shelf)
    for _ in range(2):
        assert ask(tiny_shelf, document, mode="sampled", seed=3)["token_ids"] == first["token_ids"]
        assert kept(tiny_shelf) == before
        monkeypatch.setattr(kept_sketches, "make", refuse)


def forget_sketches(shelf: Shelf) -> None:
    for digest in kept(shelf):
        shelf.library.sidecars.drop(digest)


def test_preparing_a_model_is_told_once(tiny_shelf: Shelf, document: str) -> None:
    (tiny_shelf.models.open().folder / projections.FILE).unlink()
    events: list[tuple[str, Row]] = []
    for _ in range(2):
        ask(tiny_shelf, document, mode="sampled", call=listen(events))
    assert [data["name"] for name, data in events if name == "phase"].count("preparing_sampling") == 1


def refuse(*arguments: object) -> torch.Tensor:
    raise AssertionError("a sketch is made again")


def test_a_damaged_sketch_is_made_again(tiny_shelf: Shelf, document: str) -> None:
    first = ask(tiny_shelf, document, mode="sampled", seed=3)
    (digest,) = kept(tiny_shelf)
    path = tiny_shelf.library.sidecars.store.path(digest)
    content = bytearray(path.read_bytes())
    content[5000] ^= 1
    path.write_bytes(content)
    assert ask(tiny_shelf, document, mode="sampled", seed=3)["token_ids"] == first["token_ids"]
    assert tiny_shelf.library.sidecars.find(digest) is not None


def test_without_room_for_sketches_the_answer_is_the_same(tiny_shelf: Shelf, document: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = ask(tiny_shelf, document, mode="sampled", seed=3)
    forget_sketches(tiny_shelf)
    monkeypatch.setattr("engine.reading.room.spare", lambda shelf, needed: False)
    assert ask(tiny_shelf, document, mode="sampled", seed=3)["token_ids"] == first["token_ids"]
    assert not kept(tiny_shelf)


def test_with_keys_for_all_the_answer_is_the_exact_one(tiny_shelf: Shelf, document: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modes, "KEYS", 1_000_000)
    result = ask(tiny_shelf, document, mode="sampled")
    assert result["token_ids"] == ask(tiny_shelf, document)["token_ids"]
    assert result["error_measured"] < 1e-3
    assert result["keys_read_fraction"] == result["rows_read_fraction"] == 1


def test_a_short_chain_is_read_exactly(tiny_shelf: Shelf, document: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modes, "LEAST", 1_000_000)
    result = ask(tiny_shelf, document, mode="sampled")
    assert result["token_ids"] == ask(tiny_shelf, document)["token_ids"]
    assert (result["mode"], result["error_measured"], result["keys_read_fraction"]) == ("exact", 0.0, 1.0)
    assert (result["mode_asked"], result["exact_because"]) == ("sampled", "short")


def calibrate(shelf: Shelf, **measured: Any) -> None:
    installed = shelf.models.open()
    calibration.save(installed, replace(calibration.load(installed), **measured))


def test_a_chain_is_sampled_from_the_length_that_was_measured(tiny_shelf: Shelf, document: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modes, "LEAST", 1_000_000)
    calibrate(tiny_shelf, sampled_from=16)
    assert ask(tiny_shelf, document, mode="sampled")["mode"] == "sampled"
    monkeypatch.setattr(modes, "LEAST", 16)
    calibrate(tiny_shelf, sampled_from=1_000_000)
    assert ask(tiny_shelf, document, mode="sampled")["mode"] == "exact"


def test_layers_that_do_not_bear_sampling_are_read_whole(tiny_shelf: Shelf, document: str) -> None:
    fractions = []
    for dense in ((), (0,), (0, 1)):
        calibrate(tiny_shelf, dense_layers=dense)
        fractions.append(ask(tiny_shelf, document, mode="sampled", seed=1)["keys_read_fraction"])
    assert fractions[0] < fractions[1] < fractions[2] == 1


def test_a_smaller_budget_reads_less(tiny_shelf: Shelf, document: str) -> None:
    wide, narrow = (ask(tiny_shelf, document, mode="sampled", seed=1, budget=budget) for budget in (1.0, 0.01))
    assert narrow["keys_read_fraction"] < wide["keys_read_fraction"]


def test_a_promise_is_told_with_how_often_it_was_broken(tiny_shelf: Shelf, document: str) -> None:
    result = ask(tiny_shelf, document, mode="sampled", seed=1, epsilon=0.3)
    assert (result["epsilon"], result["delta"]) == (0.3, 0.1)
    assert 0 <= result["eps_violation_rate"] <= 1
    without = ask(tiny_shelf, document, mode="sampled", seed=1)
    assert (without["epsilon"], without["delta"], without["eps_violation_rate"]) == (None, None, None)


def test_where_a_promise_takes_too_many_keys_all_are_read(tiny_shelf: Shelf, document: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modes, "DEAR", 0.0)
    result = ask(tiny_shelf, document, mode="sampled", epsilon=0.3)
    assert result["token_ids"] == ask(tiny_shelf, document)["token_ids"]
    assert (result["eps_violation_rate"], result["error_measured"]) == (0, pytest.approx(0, abs=1e-3))


def test_a_budget_caps_what_a_promise_takes(tiny_shelf: Shelf, document: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modes, "DEAR", 0.0)
    free, capped = (ask(tiny_shelf, document, mode="sampled", epsilon=0.3, budget=budget) for budget in (1.0, 0.3))
    assert capped["keys_read_fraction"] < 0.5 < free["keys_read_fraction"]


WRONG = {
    "no mode": lambda: Mode("guessed"),
    "budget 0": lambda: Mode("sampled", 0.0),
    "budget 1.5": lambda: Mode("sampled", 1.5),
    "epsilon 0": lambda: Mode("sampled", epsilon=0.0),
    "epsilon 1": lambda: Mode("sampled", epsilon=1.0),
    "epsilon without sampling": lambda: Mode("exact", epsilon=0.2),
    "epsilon of hash tables": lambda: Mode("sampled", selector="lsh", epsilon=0.2),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_what_is_no_mode_or_no_share_is_wrong_usage(wrong: Callable[[], Mode]) -> None:
    with pytest.raises(LongshelfError) as error:
        wrong()
    assert error.value.kind == "usage"


def test_exact_answers_watch_the_middle_layers_only(tiny_shelf: Shelf) -> None:
    config = replace(tiny_shelf.models.open().config, layers=9)
    assert list(EXACT.watched_layers(config)) == [3, 4, 5]
    assert list(Mode("sampled").watched_layers(config)) == list(range(9))


# ---- keys and the compact set ----


def test_a_budget_allows_keys_for_what_sketches_and_compact_set_leave(tiny_shelf: Shelf) -> None:
    config = replace(tiny_shelf.models.open().config, heads=9, kv_heads=3, head_dim=64)
    plenty = Afforded.within(0.2, config, 16, 10_000)
    assert plenty.compact == modes.COMPACT
    assert plenty.keys * 2 + modes.COMPACT + sampled.LOCAL == pytest.approx(0.1375 * 10_000)
    scarce = Afforded.within(0.1, config, 16, 10_000)
    assert scarce.compact == 155  # half of the rows that are left
    assert scarce.keys * 2 + 155 + sampled.LOCAL == pytest.approx(0.0375 * 10_000)
    assert Afforded.within(0.01, config, 16, 10_000) == Afforded(0, 1.0)


def test_the_compact_set_holds_what_the_question_looked_at_and_the_last_keys(tiny_shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modes, "LOCAL", 3)
    config: ModelConfig = tiny_shelf.models.open().config
    exact = Exact(config, range(config.layers))
    looked = torch.rand(2, config.kv_heads, 50)
    looked[modes.QUESTION, :, [7, 21]] = 9.0
    monkeypatch.setattr(exact, "scores", lambda layer, group: looked[group])
    chain = [InMemory(torch.zeros(config.layers, 2, config.kv_heads, tokens, config.head_dim)) for tokens in (4, 20, 16)]
    bits = as_bits(compact_set(exact, chain, 2), chain, {id(kv) for kv in chain[1:]})
    first, second = (sampled_positions(bits[id(kv)], kv.tokens) for kv in chain[1:])
    assert first == {3, 17}  # 7 and 21, the preamble's 4 taken off
    assert second == {13, 14, 15}


def sampled_positions(bits: torch.Tensor, tokens: int) -> set[int]:
    """Positions set in every layer and head, which must be all that are set in any."""
    every = (bits[..., None] >> torch.arange(16) & 1).flatten(-2)[..., :tokens].bool()
    assert torch.equal(every.all(0).all(0), every.any(0).any(0))
    return set(every[0, 0].nonzero()[:, 0].tolist())
