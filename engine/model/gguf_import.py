"""A GGUF file read as a model of ours: its config, and its tensors under Hugging Face names, packed ones left packed.

GGUF is the single-file format of llama.cpp (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md). Some families' files hold the rows
of q and k in the order of interleaved rotation; they are put back into halves (rotate_half), which the decoder rotates. Rows are
quantised one by one, so that they can be chosen, reordered and unpacked in runs: a model needs no room for itself in memory.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

from engine.errors import LongshelfError
from engine.model.config import ModelConfig
from engine.model.families import unsupported
from engine.model.gguf_config import ROPE_TENSORS, config_of
from engine.model.lfs import POINTER, lfs_pointer
from engine.model.safetensors_file import Run, TensorInfo
from engine.model.source import RUN, Source, packed, plain
from engine.model.tensor_names import Take, takes_from_gguf
from kernels.packings import PACKINGS

TAKEN = "Models are added from a GGUF file, or from a folder with config.json, safetensors files and a tokenizer."
SPLIT = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$")
"""How the name of one of several files ends."""
Chosen = range | NDArray[np.intp]
"""Rows of a stored tensor, in the order in which they are wanted."""
_END_OF_ANSWER = ("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|endoftext|>", "<|end_of_text|>", "<|end|>", "<end_of_turn>", "</s>")
_CONTROL = int(gguf.TokenType.CONTROL)


class GgufFile:
    """One opened GGUF, in one file or split into several. Every way in which it can be wrong is a LongshelfError that names the file."""

    def __init__(self, path: Path) -> None:
        """path: the file, or any file of a split one, whose first holds the metadata.

        Raises LongshelfError: "not_found", "unreadable", "not_a_model" (no GGUF), "missing_shard", "lfs_pointer", "model_damaged"
        (cut short or inconsistent).
        """
        files = _files(path)
        self.path = files[0]
        try:
            readers = [_reader(file) for file in files]
            self.tensors = {tensor.name: tensor for reader in readers for tensor in reader.tensors}
            self._fields = readers[0].fields
            self.family = str(self.get("general.architecture", ""))
        except (ValueError, IndexError, KeyError, TypeError, OverflowError, struct.error, RecursionError) as error:
            raise self.damaged(f"it is cut short or inconsistent ({error})") from error
        if (count := self.get("split.count", 1)) not in (0, len(files)):
            message = f"{self.path.name} is one of {count} files of a split model."
            raise LongshelfError("missing_shard", message, "Give all of them the names they had (…-00001-of-00003.gguf), in one folder.")

    def damaged(self, why: str) -> LongshelfError:
        return LongshelfError("model_damaged", f"{self.path.name} can't be used: {why}.", "Download the file again.")

    def unsupported(self, what: str) -> LongshelfError:
        return unsupported(f"{self.path.name} {what}.")

    def get(self, key: str, default: Any = None) -> Any:
        """The metadata value `key`: number, text, or a list of them."""
        field = self._fields.get(key)
        try:
            return default if field is None else field.contents()
        except ValueError as error:  # text that is no UTF-8
            raise self.damaged(f"its field {key} is unreadable") from error

    def number(self, key: str, default: float | None = None) -> float:
        """The number at FAMILY.key. Raises LongshelfError("model_damaged") if it is missing or no number."""
        value = self.get(f"{self.family}.{key}", default)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise self.damaged(f"its field {self.family}.{key} is {'missing' if value is None else 'not a number'}")
        return value

    def tokens(self) -> list[str]:
        """The vocabulary: index = id."""
        return self._tokens

    @cached_property
    def _tokens(self) -> list[str]:
        tokens = self.get("tokenizer.ggml.tokens", [])
        if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
            raise self.damaged("its vocabulary is no list of tokens")
        return tokens

    def end_of_text(self) -> int | None:
        """The token id that the file itself names as the end."""
        return self.token_id("eos_token_id")

    def token_id(self, role: str) -> int | None:
        """The token id that the file names for a role ("bos_token_id"), None if it names none."""
        value = self.get(f"tokenizer.ggml.{role}")
        if value is not None and not isinstance(value, int):
            raise self.damaged(f"its field tokenizer.ggml.{role} is no token id")
        return value

    def read_config(self) -> ModelConfig:
        """Raises LongshelfError("model_unsupported") for another family or a variant that the decoder doesn't know."""
        return config_of(self)

    def vector(self, name: str) -> NDArray[np.float32]:
        """The numbers of a tensor of one dim. Raises LongshelfError("model_damaged") if it is missing."""
        if name not in self.tensors:
            raise self.damaged(f"it lacks the tensor {name}")
        return np.concatenate([*_unpacked(self.tensors[name], range(1))]).reshape(-1)

    def stop_ids(self) -> tuple[int, ...]:
        """What the file names as ends, and the control tokens that mean an end in the templates of these families."""
        names = ("eos_token_id", "eot_token_id", "eom_token_id")
        named = [i for name in names if (i := self.token_id(name)) is not None]
        kinds = zip(self.tokens(), self.get("tokenizer.ggml.token_type", []), strict=False)
        known = [i for i, (token, kind) in enumerate(kinds) if kind == _CONTROL and token in _END_OF_ANSWER]
        return tuple(sorted({*named, *known}))

    def plan(self, config: ModelConfig, pack: str | None = None) -> list[Source]:
        """All tensors that the model needs, sorted by their new names. Raises LongshelfError if one is missing, of a wrong shape,
        of an unknown type, or not a part of its family. pack: how to pack matrices that aren't packed."""
        takes = takes_from_gguf(config)
        wanted = {take.source for take in takes}
        if strange := sorted(self.tensors.keys() - wanted - ROPE_TENSORS):
            raise self.unsupported(f"has tensors that this version doesn't know ({', '.join(strange[:3])})")
        if missing := sorted(wanted - self.tensors.keys()):
            raise self.damaged(f"it lacks the tensors {', '.join(missing[:3])}")
        sources = []
        for take in takes:
            tensor, shape = self.tensors[take.source], (take.source_rows, *take.shape[1:])
            if tuple(int(n) for n in reversed(tensor.shape)) != shape:
                raise self.damaged(f"its tensor {take.source} has the shape {tensor.shape.tolist()[::-1]}, not {list(shape)}")
            _check_type(self, tensor)
            sources.append(_source(self, tensor, take, pack))
        return sorted(sources, key=lambda source: source.info.name)


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


def _files(path: Path) -> list[Path]:
    """The file itself, or all files of the split one that it belongs to, in order."""
    part = SPLIT.search(path.name)
    if part is None:
        return [path]
    stem, count = path.name[: part.start()], int(part[2])
    files = [path.with_name(f"{stem}-{n:05d}-of-{part[2]}.gguf") for n in range(1, count + 1)]
    if missing := [file.name for file in files if not file.is_file()]:
        raise LongshelfError(
            "missing_shard",
            f"{len(missing)} of the {count} files of this GGUF are missing in {path.parent}: {', '.join(missing[:3])}.",
            "Download the missing files into the same folder.",
        )
    return files


def _reader(path: Path) -> gguf.GGUFReader:
    _check_start(path)
    return gguf.GGUFReader(path)


def _check_start(path: Path) -> None:
    try:
        with path.open("rb") as file:
            start = file.read(24)
    except FileNotFoundError as error:
        raise LongshelfError("not_found", f"There is no file {path}.") from error
    except OSError as error:
        raise LongshelfError("unreadable", f"{path} can't be read: {error.strerror or error}.") from error
    if start == POINTER[: len(start)] and start:
        raise lfs_pointer(path)
    if start[:4] != b"GGUF":
        raise LongshelfError("not_a_model", f"{path.name} is not a GGUF file.", TAKEN)
    # A damaged count would have the reader loop for hours.
    if len(start) < 24 or max(struct.unpack("<QQ", start[8:])) > 1_000_000:
        raise LongshelfError("model_damaged", f"{path.name} can't be used: its header is damaged.", "Download the file again.")
