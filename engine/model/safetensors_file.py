"""Writing weights tensor by tensor, and the digest that names their content.

The format is safetensors (https://huggingface.co/docs/safetensors): a length, a JSON header, then raw tensors. Its own library
wants all tensors in memory at once; a model may be larger than that, so the file is written here as rows come.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import blake3
import numpy as np
from numpy.typing import NDArray

from engine.model.config import damaged

Bf16 = NDArray[np.uint16]
"""bf16 numbers as their 16 bits."""
Run = Bf16 | NDArray[np.float32] | NDArray[np.uint8]
"""Some rows of a tensor, as its dtype asks."""
_NUMPY = {"BF16": "<u2", "F32": "<f4", "U8": "u1"}


@dataclass(frozen=True)
class TensorInfo:
    """dtype as safetensors names it: "BF16", "F32" or, for packed blocks, "U8"."""

    name: str
    shape: tuple[int, ...]
    dtype: str = "BF16"

    @property
    def bytes(self) -> int:
        return np.dtype(_NUMPY[self.dtype]).itemsize * int(np.prod(self.shape, dtype=np.int64))


def to_bf16(values: NDArray[np.float32]) -> Bf16:
    """Round finite float32 to the nearest bf16, ties to even."""
    bits = values.view(np.uint32)
    rounded = bits + (((bits >> np.uint32(16)) & np.uint32(1)) + np.uint32(0x7FFF))
    return (rounded >> np.uint32(16)).astype(np.uint16)


def write(path: Path, tensors: Iterable[tuple[TensorInfo, Iterable[Run]]], infos: list[TensorInfo]) -> str:
    """Write tensors, each given as runs of rows. `infos` lists all of them, in the order of `tensors`, sorted by
    name. Gives the weights digest (see `digest`)."""
    header: dict[str, Any] = {}
    end = 0
    for info in infos:
        header[info.name] = {"dtype": info.dtype, "shape": list(info.shape), "data_offsets": [end, end + info.bytes]}
        end += info.bytes
    encoded = json.dumps(header, separators=(",", ":")).encode()
    encoded += b" " * (-(8 + len(encoded)) % 64)  # tensors start on a cache line
    hasher = blake3.blake3(max_threads=blake3.blake3.AUTO)
    with path.open("wb") as file:
        file.write(len(encoded).to_bytes(8, "little") + encoded)
        for info, runs in tensors:
            _hash_heading(hasher, info.name, info.dtype, info.shape)
            written = 0
            for run in runs:
                raw = np.ascontiguousarray(run, dtype=_NUMPY[info.dtype]).view(np.uint8).reshape(-1)
                file.write(raw.data)
                hasher.update(raw.data)
                written += raw.nbytes
            if written != info.bytes:
                raise RuntimeError(f"tensor {info.name} came with {written} bytes, not the {info.bytes} that its shape says")
    return hasher.hexdigest()


def digest(path: Path) -> str:
    """blake3 hex of the content of all tensors: for each, sorted by name, a line "name dtype shape" and its bytes.

    Reads the whole file. Raises LongshelfError("model_damaged") if it isn't a whole safetensors file.
    """
    hasher = blake3.blake3(max_threads=blake3.blake3.AUTO)
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as content:
            for name, dtype, shape, start, end in _entries(content):
                _hash_heading(hasher, name, dtype, shape)
                with content[start:end] as raw:
                    hasher.update(raw)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise damaged(f"{path} is damaged: {error}.") from error
    return hasher.hexdigest()


def _entries(content: memoryview) -> Iterator[tuple[str, str, tuple[int, ...], int, int]]:
    base = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(bytes(content[8:base]))
    for name in sorted(header.keys() - {"__metadata__"}):
        entry = header[name]
        start, end = (base + int(offset) for offset in entry["data_offsets"])
        if not base <= start <= end <= len(content):
            raise ValueError(f"tensor {name} lies outside the file")
        yield name, str(entry["dtype"]), tuple(int(n) for n in entry["shape"]), start, end


def _hash_heading(hasher: blake3.blake3, name: str, dtype: str, shape: tuple[int, ...]) -> None:
    hasher.update(f"{name} {dtype} {'x'.join(map(str, shape))}\n".encode())
