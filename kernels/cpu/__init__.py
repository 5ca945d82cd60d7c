"""The native CPU kernels, called through ctypes."""

from kernels.cpu.attention import FEW, BlockList, attend
from kernels.cpu.bulk import ACTIVATIONS, add_norm, gated, split_heads
from kernels.cpu.library import instruction_sets, native, use_instruction_set
from kernels.cpu.weights import After, Before, Matrix, after, before, linear, linear_many, multiplies_many, unpack

__all__ = [
    "ACTIVATIONS",
    "FEW",
    "After",
    "Before",
    "BlockList",
    "Matrix",
    "add_norm",
    "after",
    "attend",
    "before",
    "gated",
    "instruction_sets",
    "linear",
    "linear_many",
    "multiplies_many",
    "native",
    "split_heads",
    "unpack",
    "use_instruction_set",
]
