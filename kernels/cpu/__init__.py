"""The native CPU kernels, called through ctypes."""

from kernels.cpu.attention import FEW, BlockList, attend
from kernels.cpu.library import instruction_sets, native, use_instruction_set
from kernels.cpu.weights import After, Before, Matrix, after, before, linear, unpack

__all__ = [
    "FEW",
    "After",
    "Before",
    "BlockList",
    "Matrix",
    "after",
    "attend",
    "before",
    "instruction_sets",
    "linear",
    "native",
    "unpack",
    "use_instruction_set",
]
