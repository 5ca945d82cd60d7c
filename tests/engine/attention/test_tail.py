"""A tail on a device: what is written there comes back when somebody looks at it here."""

from __future__ import annotations

import torch

from engine.attention.tail import Tail
from tests.engine.attention.test_exact import CONFIG, DIM, KV_HEADS, LAYERS

THERE = torch.device("cpu")


def rows(count: int, seed: int) -> torch.Tensor:
    return torch.randn(count, KV_HEADS, DIM, generator=torch.Generator().manual_seed(seed))


def written(tail: Tail) -> torch.Tensor:
    """The same rows into every layer of a tail; gives its kv."""
    for start, seed in ((0, 1), (3, 2)):
        for layer in range(LAYERS):
            tail.write(layer, start, rows(3, seed), rows(3, seed + 5))
        tail.length = start + 3
    return tail.kv


def test_what_is_written_on_the_device_is_found_here() -> None:
    plain, placed = Tail(CONFIG, torch.float32, 8), Tail(CONFIG, torch.float32, 8)
    placed.on(THERE)
    assert torch.equal(written(placed), written(plain))
    assert torch.equal(placed.on(THERE), placed.kv)


def test_what_was_written_here_before_is_found_on_the_device() -> None:
    tail = Tail(CONFIG, torch.float32, 8)
    kv = written(tail)
    assert torch.equal(tail.on(THERE), kv)
    assert tail.on(THERE).data_ptr() != kv.data_ptr()


def test_a_layer_that_was_looked_at_is_brought_again_after_the_next_row() -> None:
    tail = Tail(CONFIG, torch.float32, 8)
    tail.on(THERE)
    for at in range(3):
        tail.write(1, at, rows(1, at), rows(1, at + 9))
        assert torch.equal(tail.key(1)[:, at], rows(1, at)[0])
        assert torch.equal(tail.value(1)[:, at], rows(1, at + 9)[0])


def test_growing_keeps_both() -> None:
    tail = Tail(CONFIG, torch.float32, 6)
    tail.on(THERE)
    before = written(tail).clone()
    tail.reserve(50)
    assert torch.equal(tail.kv[:, :, :, :6], before)
    assert torch.equal(tail.on(THERE)[:, :, :, :6], before)


def test_growing_before_anybody_looked_loses_nothing() -> None:
    tail = Tail(CONFIG, torch.float32, 3)
    tail.on(THERE)
    tail.write(2, 0, rows(3, 1), rows(3, 2))
    tail.length = 3
    tail.reserve(4)
    assert torch.equal(tail.key(2)[:, :3], rows(3, 1).transpose(0, 1))
