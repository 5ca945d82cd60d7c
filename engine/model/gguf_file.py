"""A GGUF file, opened: what its metadata says, its vocabulary, and its tensors by name.

GGUF is the single-file format of llama.cpp (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md). Tensors are mapped: none is read
before it is asked for.
"""

from __future__ import annotations

import math
import re
import struct
from functools import cached_property
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

from engine.errors import LongshelfError
from engine.model.families import unsupported
from engine.model.lfs import POINTER, lfs_pointer

TAKEN = "Models are added from a GGUF file, or from a folder with config.json, safetensors files and a tokenizer."
SPLIT = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$")
"""How the name of one of several files ends."""
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

    def vector(self, name: str) -> NDArray[np.float32]:
        """The numbers of a tensor of one dim. Raises LongshelfError("model_damaged") if it is missing."""
        if name not in self.tensors:
            raise self.damaged(f"it lacks the tensor {name}")
        tensor = self.tensors[name]
        numbers = gguf.quants.dequantize(np.atleast_2d(tensor.data)[:1], tensor.tensor_type)
        return np.ascontiguousarray(numbers, dtype=np.float32).reshape(-1)

    def stop_ids(self) -> tuple[int, ...]:
        """What the file names as ends, and the control tokens that mean an end in the templates of these families."""
        names = ("eos_token_id", "eot_token_id", "eom_token_id")
        named = [i for name in names if (i := self.token_id(name)) is not None]
        kinds = zip(self.tokens(), self.get("tokenizer.ggml.token_type", []), strict=False)
        known = [i for i, (token, kind) in enumerate(kinds) if kind == _CONTROL and token in _END_OF_ANSWER]
        return tuple(sorted({*named, *known}))


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
