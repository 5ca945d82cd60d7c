"""Sketches of whole segments, all layers of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from engine.attention.sequence import KV
from kernels import gpu, sketch
from kernels.sketch import Projection


class Sketch:
    """The sketch of one segment. layers: one [Hkv, groups, planes, 64] uint8 a layer."""

    def __init__(self, layers: list[torch.Tensor]) -> None:
        self.layers = layers


def make(kv: KV, projections: Sequence[Projection], before_layer: Callable[[], None] = lambda: None) -> torch.Tensor:
    """[layers, Hkv, groups, planes, 64] uint8 of a segment's keys; projections: one a layer, on the device of the keys. before_layer may
    raise Stopped."""
    layers = []
    for layer, projection in enumerate(projections):
        before_layer()
        key = kv.key(layer)
        layers.append(gpu.build_sketch(key, projection) if key.is_cuda else sketch.build(key, projection))
    return torch.stack(layers)
