"""Segments held on a device: true copies, within their room, the ones read last kept."""

from __future__ import annotations

import pytest
import torch

from engine.attention.held import Held
from engine.attention.in_memory import InMemory
from tests.engine.attention.test_exact import LAYERS, TOKEN_BYTES, segment

THERE = torch.device("cpu")
ROOM = 100 * LAYERS * TOKEN_BYTES  # a hundred tokens


def held(room: int = ROOM) -> Held:
    return Held(THERE, LAYERS, room)


def test_a_copy_is_the_same_in_other_memory() -> None:
    kept, kv = held(), segment(40, 1)
    kept.hold([kv])
    copy = kept.of(kv)
    assert copy is not None
    assert torch.equal(copy.kv, kv.kv)
    assert copy.kv.data_ptr() != kv.kv.data_ptr()
    assert kept.bytes == 40 * LAYERS * TOKEN_BYTES


def test_what_finds_no_room_is_not_held() -> None:
    kept, chain = held(), [segment(60, 1), segment(50, 2), segment(30, 3)]
    kept.hold(chain)
    assert [kept.of(kv) is not None for kv in chain] == [True, False, True]
    assert kept.bytes <= ROOM


def test_without_room_nothing_is_held() -> None:
    kept, kv = held(0), segment(1, 1)
    kept.hold([kv])
    assert kept.of(kv) is None


def test_what_was_read_longest_ago_makes_room() -> None:
    kept, first, second, third = held(), segment(40, 1), segment(40, 2), segment(40, 3)
    for chain in ([first], [second], [first], [third]):
        kept.hold(chain)
    assert [kept.of(kv) is not None for kv in (first, second, third)] == [True, False, True]


def test_what_is_read_now_makes_no_room() -> None:
    kept, first, second = held(), segment(60, 1), segment(60, 2)
    kept.hold([first])
    kept.hold([first, second])
    assert [kept.of(kv) is not None for kv in (first, second)] == [True, False]


def test_a_stored_segment_is_known_whoever_opened_it() -> None:
    class Stored(InMemory):
        digest = "abc"

    kept = held()
    kept.hold([Stored(segment(10, 1).kv)])
    assert kept.of(Stored(segment(10, 1).kv)) is not None


@pytest.mark.parametrize("again", [True, False], ids=["the same", "another"])
def test_the_version_tells_whether_anything_changed(again: bool) -> None:
    kept, kv = held(), segment(10, 1)
    kept.hold([kv])
    before = kept.version
    kept.hold([kv if again else segment(10, 1)])
    assert (kept.version == before) is again
