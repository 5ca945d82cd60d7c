"""Attention where some of what is read lies on a device: what exact attention gives, wherever each segment lies."""

from __future__ import annotations

from collections.abc import Sequence as Run
from dataclasses import replace

import pytest
import torch

from engine.attention.exact import Exact
from engine.attention.held import Held
from engine.attention.in_memory import InMemory
from engine.attention.placed import Placed
from engine.attention.sequence import Rows, Sequence
from engine.model.config import ModelConfig
from kernels.cpu import FEW
from tests.engine.attention.test_exact import CONFIG, LAYERS, SLIDING, TOKEN_BYTES, Step, segment, sequence
from tests.engine.on_device import there

DEVICE = there()
CHAIN = [segment(4, 1), segment(60, 2), segment(30, 3)]
ROOMS = {"in memory": 0, "partly on the device": 40, "on the device": 1000}  # tokens
MANY = FEW + 4
NEAR = 1e-5 if DEVICE.kind == "interpret" else 1e-3

rooms = pytest.mark.parametrize("room", ROOMS.values(), ids=ROOMS.keys())


def placed(room: int, config: ModelConfig = CONFIG, watch: Run[int] = ()) -> Placed:
    return Placed(config, Held(DEVICE.where, LAYERS, room * LAYERS * TOKEN_BYTES), watch)


class StepThere(Step):
    """The same step, its tensors on the device and its answer here."""

    def __init__(self, count: int, seed: int = 0) -> None:
        super().__init__(count, seed)
        self.q, self.k, self.v = (each.to(DEVICE.where) for each in (self.q, self.k, self.v))

    def read(self, attention: Exact, rows: Rows, layers: Run[int] = (0,)) -> torch.Tensor:
        return super().read(attention, rows, layers).cpu()


def off(attention: Placed, counts: Run[int], layers: Run[int] = (0,)) -> float:
    """How far it is from exact attention, at the most, over calls of so many rows behind one chain."""
    ours, theirs, exact = sequence(*CHAIN), sequence(*CHAIN), Exact(attention.config)
    most = 0.0
    for seed, count in enumerate(counts):
        got = StepThere(count, seed).read(attention, Rows([(ours, count)]), layers)
        expected = Step(count, seed).read(exact, Rows([(theirs, count)]), layers)
        most = max(most, float((got - expected).abs().max()))
    assert attention.bytes_read == exact.bytes_read
    assert torch.equal(ours.tail.kv, theirs.tail.kv)
    return most


@rooms
def test_few_rows_and_many_read_what_exact_attention_reads(room: int) -> None:
    assert off(placed(room), (3, MANY, 1)) < NEAR


@rooms
def test_windows_and_caps_are_those_of_the_layer(room: int) -> None:
    config = replace(SLIDING, attention_softcap=2.0, sliding_window=35)
    assert off(placed(room, config), (2, MANY, 1), layers=(1,)) < NEAR


@rooms
@pytest.mark.parametrize("count", [1, MANY // 2])
def test_sequences_that_share_a_segment_read_their_own(room: int, count: int) -> None:
    def rows() -> Rows:
        return Rows([(sequence(*CHAIN), count), (sequence(CHAIN[0], CHAIN[2]), count), (sequence(), count)])

    got = StepThere(3 * count).read(placed(room), rows())
    assert (got - Step(3 * count).read(Exact(CONFIG), rows())).abs().max() < NEAR


@rooms
def test_what_rows_attend_to_is_watched_wherever_it_lies(room: int) -> None:
    ours, theirs = placed(room, watch=(0, 1)), Exact(CONFIG, (0, 1))
    steps = ((5, 1), (MANY, 2), (1, 3))
    for attention, step in ((ours, StepThere), (theirs, Step)):
        read = sequence(*CHAIN)
        attention.watch((96, 99, 94 + 5 + MANY))
        for count, seed in steps:
            step(count, seed).read(attention, Rows([(read, count)]), (0, 1))
    length = 94 + 5 + MANY + 1
    assert (ours.watched((0, 1))[:, :length] - theirs.watched((0, 1))[:, :length]).abs().max() < NEAR
    assert (ours.scores(1, 1)[:, :length] - theirs.scores(1, 1)[:, :length]).abs().max() < 10 * NEAR


def test_a_row_has_the_same_bits_whatever_rows_stand_beside_it() -> None:
    together = StepThere(5, 1)
    out = together.read(placed(40), Rows([(sequence(*CHAIN), 5)]))
    first = StepThere(1, 1)
    first.q, first.k, first.v = together.q[:1].contiguous(), together.k[:1], together.v[:1]
    assert torch.equal(first.read(placed(40), Rows([(sequence(*CHAIN), 1)]))[0], out[0])


def test_what_moves_to_the_device_and_away_again_is_read_where_it_lies_then() -> None:
    attention, other = placed(70), [segment(60, 8)]
    read, exact, theirs = sequence(*CHAIN), Exact(CONFIG), sequence(*CHAIN)
    for seed in range(3):
        got = StepThere(1, seed).read(attention, Rows([(read, 1)]))
        assert (got - Step(1, seed).read(exact, Rows([(theirs, 1)]))).abs().max() < NEAR
        attention.held.hold(other if seed == 0 else CHAIN)  # another question meanwhile


def test_only_few_rows_of_a_chain_in_memory_are_read_by_the_processor() -> None:
    attention = placed(0)
    rows = Rows([(sequence(*CHAIN), 1)])
    StepThere(1).read(attention, rows)
    assert [stretch.tokens for stretch in attention.here(rows)] == [4, 60, 30]
    held_back = placed(1000)
    rows = Rows([(Sequence(CHAIN, sequence().tail), 1)])
    StepThere(1).read(held_back, rows)
    assert not held_back.here(rows)
    assert all(isinstance(held_back.held.of(kv), InMemory) for kv in CHAIN)
