"""The native CPU kernels, called through ctypes."""

from kernels.cpu.attention import BlockList, attend
from kernels.cpu.library import instruction_sets, native, use_instruction_set
from kernels.cpu.linear import unpack

__all__ = ["BlockList", "attend", "instruction_sets", "native", "unpack", "use_instruction_set"]
