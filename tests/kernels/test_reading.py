"""Reading memory reads every byte of it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from kernels.cpu import reading
from tests.kernels.attention_case import needs_library

RUN = 1 << 19


@needs_library
@pytest.mark.parametrize("places", reading.PLACES)
@pytest.mark.parametrize("size", [64, 8 * 64, RUN, 3 * RUN + 5 * 64], ids=str)
def test_every_word_is_read_once(isa: str, size: int, places: int) -> None:
    words = torch.randint(-(2**63), 2**63 - 1, (size // 8,), generator=torch.Generator().manual_seed(size))
    assert reading.read(words, places) == int(np.bitwise_xor.reduce(words.numpy().view(np.uint64)))


@pytest.mark.parametrize("buffer", [torch.zeros(7), torch.zeros(16, 32)[:, :16]], ids=["half a line", "scattered"])
def test_what_is_no_run_of_lines_is_refused(buffer: torch.Tensor) -> None:
    with pytest.raises(ValueError, match="whole lines"):
        reading.read(buffer)
