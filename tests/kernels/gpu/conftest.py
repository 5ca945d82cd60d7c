"""Where there is no GPU, the kernels run in Triton's interpreter; that has to be said before triton is loaded."""

from __future__ import annotations

import os

import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"
