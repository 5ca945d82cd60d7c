"""The tensors of a GGUF file under Hugging Face names, packed ones left packed.

Some families' files hold the rows of q and k in the order of interleaved rotation; they are put back into halves (rotate_half), which the
decoder rotates. Rows are quantised one by one, so that they can be chosen, reordered and unpacked in runs: a model needs no room for
itself in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

from engine.errors import LongshelfError
from engine.model.config import ModelConfig
from engine.model.gguf_config import ROPE_TENSORS
from engine.model.gguf_file import GgufFile
from engine.model.safetensors_file import Run, TensorInfo
from engine.model.source import RUN, Source, packed, plain
from engine.model.tensor_names import Take, takes_from_gguf
from kernels.packings import PACKINGS

Chosen = range | NDArray[np.intp]
"""Rows of a stored tensor, in the order in which they are wanted."""


def sources(file: GgufFile, config: ModelConfig, pack: str | None) -> list[Source]:
    """All tensors that the model needs, sorted by their new names. pack: how to pack matrices that aren't packed.

    Raises LongshelfError("model_damaged") if one is missing or of a wrong shape, ("model_unsupported") for one that isn't known or is of
    an unknown type.
    """
    takes = takes_from_gguf(config)
    wanted = {take.source for take in takes}
    if strange := sorted(file.tensors.keys() - wanted - ROPE_TENSORS):
        raise file.unsupported(f"has tensors that this version doesn't know ({', '.join(strange[:3])})")
    if missing := sorted(wanted - file.tensors.keys()):
        raise file.damaged(f"it lacks the tensors {', '.join(missing[:3])}")
    made = []
    for take in takes:
        tensor, shape = file.tensors[take.source], (take.source_rows, *take.shape[1:])
        if tuple(int(n) for n in reversed(tensor.shape)) != shape:
            raise file.damaged(f"its tensor {take.source} has the shape {tensor.shape.tolist()[::-1]}, not {list(shape)}")
        _check_type(file, tensor)
        made.append(_source(file, tensor, take, pack))
    return sorted(made, key=lambda source: source.info.name)


def _source(file: GgufFile, tensor: gguf.ReaderTensor, take: Take, pack: str | None) -> Source:
    """Blocks that the kernels know stay as they are; anything else becomes plain numbers, or is packed as `pack` says."""
    packing, rows = PACKINGS.get(tensor.tensor_type.name.lower()), _chosen(take)
    if len(take.shape) == 2 and packing is not None:
        info = TensorInfo(f"{take.name}.{packing.name}", (take.shape[0], packing.row_bytes(take.shape[1])), "U8")
        return Source(info, lambda: _blocks(file, tensor, rows))

    def numbers() -> Iterator[NDArray[np.float32]]:
        for values in _unpacked(tensor, rows):
            _check_finite(file, tensor, values)
            yield values

    return plain(take.name, take.shape, numbers) if pack is None else packed(take.name, take.shape, numbers, pack)


def _blocks(file: GgufFile, tensor: gguf.ReaderTensor, rows: Chosen) -> Iterator[Run]:
    for run in _rows(tensor, rows):
        _check_finite(file, tensor, gguf.quants.dequantize(run, tensor.tensor_type))
        yield run


def _check_finite(file: GgufFile, tensor: gguf.ReaderTensor, values: NDArray[np.float32]) -> None:
    if not np.all(np.isfinite(values)):
        raise file.damaged(f"its tensor {tensor.name} holds numbers that are not finite")


def _unpacked(tensor: gguf.ReaderTensor, rows: Chosen) -> Iterator[NDArray[np.float32]]:
    """float32 [rows, columns] in runs of rows."""
    for run in _rows(tensor, rows):
        yield np.ascontiguousarray(gguf.quants.dequantize(run, tensor.tensor_type), dtype=np.float32)


def _rows(tensor: gguf.ReaderTensor, rows: Chosen) -> Iterator[NDArray[Any]]:
    """The chosen stored rows in runs; a vector is one row."""
    packed = tensor.data.reshape(1, -1) if tensor.data.ndim == 1 else tensor.data
    step = max(1, RUN // int(tensor.shape[0]))
    for start in range(0, len(rows), step):
        run = rows[start : start + step]
        yield packed[run.start : run.stop] if isinstance(run, range) else packed[run]


def _chosen(take: Take) -> Chosen:
    """Which rows of its source a tensor is, in order."""
    if len(take.shape) == 1:
        return range(1)
    if take.interleaved:
        return _half_order(take.interleaved, take.shape[0] // take.interleaved)
    return range(take.first, take.first + take.shape[0])


def _half_order(heads: int, head_dim: int) -> NDArray[np.intp]:
    """For each row in half-split order, its place in the interleaved order: pairs (2i, 2i + 1) become (i, i + head_dim / 2)."""
    return np.arange(heads * head_dim).reshape(heads, head_dim // 2, 2).swapaxes(1, 2).reshape(-1)


def _check_type(file: GgufFile, tensor: gguf.ReaderTensor) -> None:
    try:
        gguf.quants.dequantize(tensor.data.reshape(-1, tensor.data.shape[-1])[:1], tensor.tensor_type)
    except NotImplementedError as error:
        message = f"{file.path.name} packs {tensor.name} as {tensor.tensor_type.name}, which this version can't unpack."
        raise LongshelfError("model_unsupported", message, "Take a file packed as Q8_0, Q4_K_M, F16 or BF16.") from error
