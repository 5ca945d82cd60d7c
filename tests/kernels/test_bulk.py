"""What stands between the products of many rows means what the reference says."""

from __future__ import annotations

import pytest
import torch

from kernels import cpu, reference

DTYPES = pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=["bf16", "fp32"])


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * 3


def close(ours: torch.Tensor, truth: torch.Tensor) -> bool:
    """Equal but for the last bit."""
    return torch.allclose(ours.float(), truth.float(), rtol=2**-7 if ours.dtype == torch.bfloat16 else 2e-6, atol=1e-6)


@DTYPES
@pytest.mark.parametrize("columns", [16, 100, 576])
def test_what_is_added_is_normalised(isa: str, columns: int, dtype: torch.dtype) -> None:
    x, delta, weight = draw(33, columns).to(dtype), draw(33, columns, seed=1).to(dtype), draw(columns, seed=2)
    truth = x.clone()
    expected = reference.add_norm(truth, delta, weight, 1e-5)
    assert close(cpu.add_norm(x, delta, weight, 1e-5), expected)
    assert torch.equal(x, truth)
    assert close(cpu.add_norm(x, None, weight, 1e-5), expected)


@DTYPES
@pytest.mark.parametrize("activation", ["silu", "gelu_tanh"])
def test_a_gate_opens_in_place(isa: str, activation: str, dtype: torch.dtype) -> None:
    gate, up = draw(40, 1003).to(dtype), draw(40, 1003, seed=1).to(dtype)
    expected = reference.gated(gate.clone(), up, activation)
    out = cpu.gated(gate, up, activation)
    assert out.data_ptr() == gate.data_ptr()
    assert torch.allclose(out.float(), expected.float(), rtol=2**-7 if dtype == torch.bfloat16 else 1e-5, atol=1e-5)


@DTYPES
@pytest.mark.parametrize("rotated", [0, 16, 24, 48])
@pytest.mark.parametrize("normed", [False, True])
def test_heads_are_taken_apart_normalised_and_turned(isa: str, rotated: int, normed: bool, dtype: torch.dtype) -> None:
    qkv = draw(19, (6 + 2 * 2) * 48).to(dtype)
    norms = (draw(48, seed=1), draw(48, seed=2)) if normed else None
    half = draw(19, 1, rotated // 2, seed=3)
    angles = (torch.cat([half.cos()] * 2, -1), torch.cat([-half.sin(), half.sin()], -1)) if rotated else None
    ours = cpu.split_heads(qkv, 6, 2, norms, angles, 1e-5)
    expected = reference.split_heads(qkv, 6, 2, norms, angles, 1e-5)
    assert [t.shape for t in ours] == [(19, 6, 48), (19, 2, 48), (19, 2, 48)]
    assert torch.allclose(ours[0], expected[0], rtol=1e-5, atol=1e-5)
    for mine, theirs in zip(ours[1:], expected[1:], strict=True):
        assert torch.allclose(mine.float(), theirs.float(), rtol=2**-7 if dtype == torch.bfloat16 else 1e-5, atol=1e-4)
