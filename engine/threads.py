"""How many threads work: one number for torch and for the native library.

The library takes its threads from torch's OpenMP runtime (see `kernels.cpu`), so setting torch's number sets both. Default: the
processors this process may use, less one where there are more than two, so that the window stays smooth.
"""

from __future__ import annotations

import os


def default_threads() -> int:
    """Processors this process may run on, less one for the rest of the machine where there are more than two."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    return max(1, available - 1) if available > 2 else available


_in_use: int | None = None


def use_threads(count: int | None = None) -> int:
    """Set the number for the calling thread, which is the one that runs the model, and give it; None is the default."""
    import torch

    global _in_use
    _in_use = count or default_threads()
    torch.set_num_threads(_in_use)
    return _in_use


def threads_in_use() -> int:
    """What the model runs with, whichever thread asks: torch keeps a number for each."""
    import torch

    return _in_use or torch.get_num_threads()
