"""Loading the native library; each of its kernels has its meaning in `kernels.reference`.

The library takes its OpenMP symbols from the runtime that torch has loaded: one pool of threads for both. A second runtime would
have workers of its own on the same cores: no difference where two cores are idle, 1.3 times the time a token where they are busy.
A missing library is slower, never broken: `native()` says which it is.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from pathlib import Path

import torch

_ABI = 11
_SUFFIX = {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")


@functools.cache
def library() -> ctypes.CDLL | None:
    """The library, or None where there is none that fits, or LONGSHELF_NATIVE=0 asks to do without."""
    path = Path(__file__).with_name("liblongshelf_cpu" + _SUFFIX)
    if os.environ.get("LONGSHELF_NATIVE") == "0" or not path.exists():
        return None
    try:
        _share_openmp()
        loaded = ctypes.CDLL(str(path))
        if loaded.ls_abi() != _ABI:
            return None
    except OSError:
        return None
    for name in ("ls_isa", "ls_isa_name"):
        getattr(loaded, name).restype = ctypes.c_char_p
    return loaded


def _share_openmp() -> None:
    """Make the OpenMP runtime inside torch visible to libraries loaded after it."""
    folders = [Path(torch.__file__).parent / "lib", Path(torch.__file__).parent.parent / "torch.libs"]
    patterns = ("libgomp*.so*", "libiomp5*", "libomp*")
    found = [path for folder in folders for pattern in patterns for path in sorted(folder.glob(pattern))]
    if found:
        ctypes.CDLL(str(found[0]), mode=ctypes.RTLD_GLOBAL)
    elif sys.platform.startswith("linux"):
        ctypes.CDLL("libgomp.so.1", mode=ctypes.RTLD_GLOBAL)


def native() -> str | None:
    """Name of the instruction set in use ("baseline", "avx2", "avx512"), or None where the torch fallback runs."""
    loaded = library()
    return loaded.ls_isa().decode() if loaded else None


def instruction_sets() -> list[str]:
    """Those that this library and this processor both have, plainest first; empty without the library."""
    loaded = library()
    names: list[str] = []
    while loaded and (name := loaded.ls_isa_name(len(names))) is not None:
        names.append(name.decode())
    return names


def use_instruction_set(name: str) -> None:
    """Use one of `instruction_sets()` from now on, in the whole process."""
    loaded = library()
    if loaded is None or not loaded.ls_use_isa(name.encode()):
        raise ValueError(f"this processor has no {name}; it has {instruction_sets()}")
