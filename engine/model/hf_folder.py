"""A folder of the Hugging Face kind read as a model of ours: its JSON files, and its tensors, straight from the safetensors files.

What can't be used is named before anything is read into memory. Nothing in such a folder is ever run: no code of the model's own, and
no pickled weights, which are code too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.errors import LongshelfError
from engine.model.lfs import POINTER, lfs_pointer
from engine.model.source import steps

NEEDED = "It takes config.json, *.safetensors, and tokenizer.json or tokenizer.model."
_INDEX = "model.safetensors.index.json"
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
_PART_OF = re.compile(r"-(\d+)-of-(\d+)\.safetensors$")
_DTYPES: dict[str, np.dtype[Any]] = {"BF16": np.dtype("<u2"), "F16": np.dtype("<f2"), "F32": np.dtype("<f4")}


class Shard:
    """One safetensors file, mapped. tensors: (dtype, shape, first byte) by name."""

    def __init__(self, path: Path) -> None:
        """Raises LongshelfError("model_damaged") for a file that is cut short or no safetensors file."""
        self.path = path
        try:
            size = path.stat().st_size
            with path.open("rb") as file:
                length = int.from_bytes(file.read(8), "little")
                if length > size - 8:
                    raise ValueError(f"its header names {length} bytes and {size} are there")
                header: dict[str, Any] = json.loads(file.read(length))
            header.pop("__metadata__", None)
            self.tensors = {
                str(name): (str(entry["dtype"]), tuple(map(int, entry["shape"])), 8 + length + int(entry["data_offsets"][0]))
                for name, entry in header.items()
            }
            needed = max((8 + length + int(entry["data_offsets"][1]) for entry in header.values()), default=0)
            if needed > size:
                raise ValueError(f"it has {size:,} bytes of {needed:,}")
        except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
            raise damaged(path, f"it is cut short or damaged ({error})") from error

    def rows(self, name: str, first: int, count: int) -> Iterator[NDArray[np.float32]]:
        """Rows [first, first + count) of a tensor as float32 [rows, columns] (of a vector [numbers]), a run at a time.

        Raises LongshelfError("model_damaged") for a number that is none.
        """
        dtype, shape, start = self.tensors[name]
        columns = int(np.prod(shape[1:], dtype=np.int64))
        stored = np.memmap(self.path, _DTYPES[dtype], "r", start, (shape[0], columns))
        for low, high in steps(count, columns):
            run = stored[first + low : first + high]
            values = (run.astype(np.uint32) << 16).view(np.float32) if dtype == "BF16" else run.astype(np.float32)
            if not np.all(np.isfinite(values)):
                raise damaged(self.path, f"its tensor {name} holds numbers that are not finite")
            yield values.reshape(-1) if len(shape) == 1 else values


class HfFolder:
    """The folder. config, generation, tokenizer_config: the content of those files, {} for one that isn't there."""

    def __init__(self, path: Path) -> None:
        """Raises LongshelfError: "not_a_model", "lfs_pointer", "pickle_only", "missing_shard", "model_damaged"."""
        self.path = path
        if not (path / "config.json").is_file():
            hint = NEEDED
            if len(inside := sorted(path.glob("*.gguf"))) == 1:
                hint = f"There is a GGUF file in it: add {inside[0]}."
            raise LongshelfError("not_a_model", f"{path} has no config.json.", hint)
        for file in sorted(path.iterdir()):
            if file.is_file() and file.suffix in (".json", ".model", ".safetensors", ".jinja"):
                _check_fetched(file)
        self.config = self.json("config.json")
        self.generation = self.json("generation_config.json")
        self.tokenizer_config = self.json("tokenizer_config.json")
        self._files = self._weights_files()

    def json(self, name: str) -> dict[str, Any]:
        """The object in a JSON file of the folder, {} if there is no such file."""
        path = self.path / name
        if not path.is_file():
            return {}
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise damaged(path, f"it can't be read ({error})") from error
        if not isinstance(stored, dict):
            raise damaged(path, "it holds no object")
        return stored

    def _weights_files(self) -> list[Path]:
        """The safetensors files, all of them there. Nothing of them has been read but their first bytes."""
        index = self.json(_INDEX)
        found = {file.name for file in self.path.glob("*.safetensors")}
        if index:
            named = index.get("weight_map")
            if not isinstance(named, dict) or not all(isinstance(name, str) and Path(name).name == name for name in named.values()):
                raise damaged(self.path / _INDEX, "it names no files")
            wanted = set(named.values())
        elif "model.safetensors" in found:
            wanted = {"model.safetensors"}
        else:
            wanted = {name for name in found if _PART_OF.search(name)} or (found if len(found) == 1 else set())
            for name in list(wanted):
                if part := _PART_OF.search(name):
                    digits, count = len(part[1]), int(part[2])
                    stem = name[: part.start()]
                    wanted |= {f"{stem}-{n:0{digits}d}-of-{part[2]}.safetensors" for n in range(1, min(count, 10_000) + 1)}
        if missing := sorted(wanted - found):
            raise LongshelfError(
                "missing_shard",
                f"{len(missing)} of {len(wanted)} files with the model's weights are missing in {self.path}: {', '.join(missing[:3])}.",
                "Download the missing files into the same folder.",
            )
        if wanted:
            return [self.path / name for name in sorted(wanted)]
        if any(next(self.path.glob(pattern), None) for pattern in _PICKLES):
            raise LongshelfError(
                "pickle_only",
                f"The weights in {self.path} are pickled (.bin or .pt), which is code that would be run.",
                "Take a version of the model with safetensors files, or its GGUF.",
            )
        raise LongshelfError("not_a_model", f"There are no weights in {self.path}.", NEEDED)

    def shards(self) -> list[Shard]:
        """The weights files, opened."""
        return [Shard(file) for file in self._files]

    def stated(self, key: str) -> tuple[str, ...]:
        """What the heading of the folder's README.md says of the model: "license", "language"."""
        try:
            readme = (self.path / "README.md").read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return ()
        heading = readme.split("\n---", 1)[0] if readme.startswith("---") else ""
        found = re.search(rf"^{key}:[ \t]*(\S*)((?:\n[ \t]*- *\S+)*)", heading, re.MULTILINE)
        return tuple(re.findall(r"[\w.-]*\w", f"{found[1]} {found[2]}")) if found else ()

    def chat_template(self) -> str | None:
        """The template that stands in the folder, None if there is none."""
        file = self.path / "chat_template.jinja"
        if file.is_file():
            try:
                return file.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise damaged(file, f"it can't be read ({error})") from error
        stored = self.tokenizer_config.get("chat_template") or self.json("chat_template.json").get("chat_template")
        if isinstance(stored, list):  # several by name
            by_name = {entry.get("name"): entry.get("template") for entry in stored if isinstance(entry, dict)}
            stored = by_name.get("default")
        return stored if isinstance(stored, str) and stored else None


def damaged(path: Path, why: str) -> LongshelfError:
    return LongshelfError("model_damaged", f"{path.name} can't be used: {why}.", "Download the file again.")


def dtype_known(dtype: str) -> bool:
    """Whether a tensor of this kind can be read."""
    return dtype in _DTYPES


def _check_fetched(file: Path) -> None:
    try:
        with file.open("rb") as opened:
            start = opened.read(len(POINTER))
    except OSError as error:
        raise LongshelfError("unreadable", f"{file} can't be read: {error.strerror or error}.") from error
    if start == POINTER:
        raise lfs_pointer(file)
