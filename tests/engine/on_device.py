"""The device on which placing is tested: the GPU where there is one, else Triton's interpreter."""

from __future__ import annotations

import pytest

pytest.importorskip("triton")

import torch

from engine.placement import Device, device

KIND = "cuda" if torch.cuda.is_available() else "interpret"


def there() -> Device:
    return device(KIND)
