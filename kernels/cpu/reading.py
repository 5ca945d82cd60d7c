"""Reading memory and nothing else: how fast that goes is what reading of keys and values is measured against."""

from __future__ import annotations

import ctypes

import torch

from kernels.cpu.library import library

PLACES = (1, 2, 4, 8)
"""At how many places of a run lines may be read in turn; which is fastest is the processor's business."""

_LINE = 64


class _Reading(ctypes.Structure):
    _fields_ = [
        ("from", ctypes.c_void_p),
        ("bytes", ctypes.c_int64),
        ("places", ctypes.c_int32),
        ("threads", ctypes.c_int32),
        ("found", ctypes.c_void_p),
    ]


def read(buffer: torch.Tensor, places: int = 4) -> int | None:
    """Every byte of a contiguous tensor with all threads: exclusive or of its words of 64 bits; None without the library."""
    size = buffer.numel() * buffer.element_size()
    if not buffer.is_contiguous() or size % _LINE or places not in PLACES:
        raise ValueError("what is read is a contiguous tensor of whole lines of 64 bytes, at 1, 2, 4 or 8 places")
    if (native := library()) is None:
        return None
    found = ctypes.c_uint64()
    native.ls_reading(ctypes.byref(_Reading(buffer.data_ptr(), size, places, torch.get_num_threads(), ctypes.addressof(found))))
    return found.value
