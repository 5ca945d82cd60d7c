"""Packed blocks unpack to the numbers that the gguf package reads from them."""

from __future__ import annotations

import gguf
import numpy as np
import pytest
import torch

from kernels.packings import PACKINGS, unpack


def random_blocks(name: str, rows: int, columns: int, seed: int = 0) -> torch.Tensor:
    """[rows, bytes of a row] uint8: any bits are valid in these layouts as long as the float16 scales are finite."""
    packing = PACKINGS[name]
    generator = torch.Generator().manual_seed(seed)
    blocks = torch.randint(0, 256, (rows * columns // packing.elements, packing.bytes), dtype=torch.uint8, generator=generator)
    halves = {"q6_k": (208,), "q8_0": (0,), "q4_0": (0,), "q5_0": (0,)}.get(name, (0, 2))
    for at in halves:
        scales = torch.randn(len(blocks), 1, generator=generator).mul(0.02).half()
        blocks[:, at : at + 2] = scales.view(torch.uint8)
    return blocks.view(rows, packing.row_bytes(columns))


@pytest.mark.parametrize("name", PACKINGS)
def test_blocks_unpack_as_gguf_reads_them(name: str) -> None:
    packed = random_blocks(name, 3, 512)
    kind = gguf.GGMLQuantizationType[name.upper()]
    theirs = torch.from_numpy(np.ascontiguousarray(gguf.quants.dequantize(packed.numpy(), kind), dtype=np.float32))
    assert gguf.GGML_QUANT_SIZES[kind] == (PACKINGS[name].elements, PACKINGS[name].bytes)
    assert torch.equal(unpack(PACKINGS[name], packed), theirs.to(torch.bfloat16))


def test_a_row_that_fills_no_whole_blocks_is_refused() -> None:
    with pytest.raises(ValueError, match="whole q4_k blocks"):
        PACKINGS["q4_k"].row_bytes(300)
