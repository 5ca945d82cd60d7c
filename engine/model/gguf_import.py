"""A GGUF file read as a model of ours: its config, and its tensors under Hugging Face names, packed ones left packed.

GGUF is the single-file format of llama.cpp (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md). Its Llama files hold the rows
of q and k in the order of interleaved rotation; they are put back into halves (rotate_half), which the decoder rotates. Rows
are quantised one by one, so that they can be reordered and unpacked in runs: a model needs no room for itself in memory.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

from engine.errors import LongshelfError
from engine.model.config import ModelConfig
from engine.model.safetensors_file import Run, TensorInfo, to_bf16
from kernels.packings import PACKINGS

FAMILY = "llama"
ONE_FILE = "This version installs models of the Llama family from single GGUF files."
RUN = 1 << 23
"""Elements unpacked to float32 at once (32 MiB)."""

_OUTSIDE = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight", "output.weight": "lm_head.weight"}
_IN_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_DIVISORS = "rope_freqs.weight"
_END_OF_ANSWER = ("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|endoftext|>", "<|end_of_text|>", "<|end|>", "</s>")
_CONTROL = int(gguf.TokenType.CONTROL)


class GgufFile:
    """One opened GGUF. Every way in which a file can be wrong is a LongshelfError that names the file."""

    def __init__(self, path: Path) -> None:
        """Raises LongshelfError: "not_found", "unreadable", "not_a_model" (no GGUF), "model_damaged" (cut short or inconsistent)."""
        self.path = path
        _check_start(path)
        try:
            self._reader = gguf.GGUFReader(path)
            self.tensors = {tensor.name: tensor for tensor in self._reader.tensors}
            self._fields = self._reader.fields
            self.family = str(self.get("general.architecture", ""))
        except (ValueError, IndexError, KeyError, TypeError, OverflowError, struct.error, RecursionError) as error:
            raise self.damaged(f"it is cut short or inconsistent ({error})") from error

    def damaged(self, why: str) -> LongshelfError:
        return LongshelfError("model_damaged", f"{self.path.name} can't be used: {why}.", "Download the file again.")

    def unsupported(self, what: str) -> LongshelfError:
        return LongshelfError("model_unsupported", f"{self.path.name} {what}.", "This version runs dense models of the Llama family.")

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
        return self._token_id("eos_token_id")

    def _token_id(self, role: str) -> int | None:
        value = self.get(f"tokenizer.ggml.{role}")
        if value is not None and not isinstance(value, int):
            raise self.damaged(f"its field tokenizer.ggml.{role} is no token id")
        return value

    def read_config(self) -> ModelConfig:
        """Raises LongshelfError("model_unsupported") for another family or a variant that the decoder doesn't know."""
        if self.family != FAMILY:
            raise self.unsupported(f"is of the family {self.family!r}" if self.family else "doesn't say of which family it is")
        if self.number("expert_count", 0):
            raise self.unsupported("is a mixture of experts")
        if self.get("split.count", 1) not in (0, 1):
            raise self.unsupported("is one of several files of a split model")
        hidden, heads = int(self.number("embedding_length")), int(self.number("attention.head_count"))
        head_dim = int(self.number("attention.key_length", hidden / max(heads, 1)))
        if any(int(self.number(width, head_dim)) != head_dim for width in ("rope.dimension_count", "attention.value_length")):
            raise self.unsupported("rotates a part of each head, or has values of another width than keys")
        if "token_embd.weight" not in self.tensors:
            raise self.damaged("it has no token embeddings")
        context = int(self.number("context_length"))
        return ModelConfig(
            family=self.family,
            layers=int(self.number("block_count")),
            hidden=hidden,
            heads=heads,
            kv_heads=int(self.number("attention.head_count_kv", heads)),
            head_dim=head_dim,
            intermediate=int(self.number("feed_forward_length")),
            vocab=int(self.tensors["token_embd.weight"].shape[-1]),
            rope_theta=_shortest(self.number("rope.freq_base", 10000.0)),
            rms_eps=_shortest(self.number("attention.layer_norm_rms_epsilon")),
            tied="output.weight" not in self.tensors,
            window=min(context, int(self.number("attention.sliding_window", context))),
            bos=self._token_id("bos_token_id"),
            eos=self._stop_ids(),
            rope=self._rope(head_dim),
        )

    def _rope(self, head_dim: int) -> dict[str, Any]:
        kind = self.get(f"{self.family}.rope.scaling.type", "none")
        if _DIVISORS in self.tensors:
            divisors = np.concatenate([*_unpacked(self.tensors[_DIVISORS], None)]).reshape(-1)
            if len(divisors) != head_dim // 2 or not np.all(np.isfinite(divisors) & (divisors > 0)):
                raise self.damaged("its rotation frequencies don't fit its heads")
            return {"rope_type": "divisors", "divisors": [_shortest(value) for value in divisors]}
        if kind == "linear":
            return {"rope_type": "linear", "factor": _shortest(self.number("rope.scaling.factor"))}
        if kind != "none":
            raise self.unsupported(f"scales its positions by {kind!r}")
        return {"rope_type": "default"}

    def _stop_ids(self) -> tuple[int, ...]:
        """What the file names as ends, and the control tokens that mean an end in the templates of this family."""
        names = ("eos_token_id", "eot_token_id", "eom_token_id")
        named = [i for name in names if (i := self._token_id(name)) is not None]
        kinds = zip(self.tokens(), self.get("tokenizer.ggml.token_type", []), strict=False)
        known = [i for i, (token, kind) in enumerate(kinds) if kind == _CONTROL and token in _END_OF_ANSWER]
        return tuple(sorted({*named, *known}))

    def plan(self, config: ModelConfig) -> list[Source]:
        """All tensors that the model needs, sorted by their new names. Raises LongshelfError if one is missing, of a wrong shape,
        of an unknown type, or not a part of a dense Llama."""
        q, kv, wide = config.heads * config.head_dim, config.kv_heads * config.head_dim, config.intermediate
        shapes: dict[str, tuple[int, ...]] = {
            "attn_norm": (config.hidden,),
            "attn_q": (q, config.hidden),
            "attn_k": (kv, config.hidden),
            "attn_v": (kv, config.hidden),
            "attn_output": (config.hidden, q),
            "ffn_norm": (config.hidden,),
            "ffn_gate": (wide, config.hidden),
            "ffn_up": (wide, config.hidden),
            "ffn_down": (config.hidden, wide),
        }
        wanted: dict[str, tuple[str, tuple[int, ...]]] = {
            "token_embd.weight": (_OUTSIDE["token_embd.weight"], (config.vocab, config.hidden)),
            "output_norm.weight": (_OUTSIDE["output_norm.weight"], (config.hidden,)),
        }
        if not config.tied:
            wanted["output.weight"] = (_OUTSIDE["output.weight"], (config.vocab, config.hidden))
        for layer in range(config.layers):
            for name, shape in shapes.items():
                wanted[f"blk.{layer}.{name}.weight"] = (f"model.layers.{layer}.{_IN_LAYER[name]}.weight", shape)
        if strange := sorted(self.tensors.keys() - wanted.keys() - {_DIVISORS}):
            raise self.unsupported(f"has tensors that this version doesn't know ({', '.join(strange[:3])})")
        if missing := sorted(wanted.keys() - self.tensors.keys()):
            raise self.damaged(f"it lacks the tensors {', '.join(missing[:3])}")
        sources = []
        for old, (new, shape) in wanted.items():
            tensor = self.tensors[old]
            if tuple(int(n) for n in reversed(tensor.shape)) != shape:
                raise self.damaged(f"its tensor {old} has the shape {tensor.shape.tolist()[::-1]}, not {list(shape)}")
            _check_type(self, tensor)
            halves = {"attn_q": config.heads, "attn_k": config.kv_heads}.get(old.split(".")[-2])
            order = None if halves is None else _half_order(halves, config.head_dim)
            sources.append(_source(self, tensor, new, shape, order))
        return sorted(sources, key=lambda source: source.info.name)


@dataclass(frozen=True)
class Source:
    """One tensor of the model to be: `runs()` gives its rows in order, a run at a time."""

    info: TensorInfo
    runs: Callable[[], Iterator[Run]]


def _source(file: GgufFile, tensor: gguf.ReaderTensor, name: str, shape: tuple[int, ...], order: NDArray[np.intp] | None) -> Source:
    """Vectors become float32, blocks that the kernels know stay as they are, any other matrix becomes bf16."""
    packing = PACKINGS.get(tensor.tensor_type.name.lower())
    if len(shape) == 2 and packing is not None:
        info = TensorInfo(f"{name}.{packing.name}", (shape[0], packing.row_bytes(shape[1])), "U8")
        return Source(info, lambda: _blocks(file, tensor, order))
    dtype = "F32" if len(shape) == 1 else "BF16"
    return Source(TensorInfo(name, shape, dtype), lambda: _numbers(file, tensor, order, dtype))


def _numbers(file: GgufFile, tensor: gguf.ReaderTensor, order: NDArray[np.intp] | None, dtype: str) -> Iterator[Run]:
    for values in _unpacked(tensor, order):
        _check_finite(file, tensor, values)
        yield values if dtype == "F32" else to_bf16(values)


def _blocks(file: GgufFile, tensor: gguf.ReaderTensor, order: NDArray[np.intp] | None) -> Iterator[Run]:
    for rows in _rows(tensor, order):
        _check_finite(file, tensor, gguf.quants.dequantize(rows, tensor.tensor_type))
        yield rows


def _check_finite(file: GgufFile, tensor: gguf.ReaderTensor, values: NDArray[np.float32]) -> None:
    if not np.all(np.isfinite(values)):
        raise file.damaged(f"its tensor {tensor.name} holds numbers that are not finite")


def _unpacked(tensor: gguf.ReaderTensor, order: NDArray[np.intp] | None) -> Iterator[NDArray[np.float32]]:
    """float32 [rows, columns] in runs of rows."""
    for rows in _rows(tensor, order):
        yield np.ascontiguousarray(gguf.quants.dequantize(rows, tensor.tensor_type), dtype=np.float32)


def _rows(tensor: gguf.ReaderTensor, order: NDArray[np.intp] | None) -> Iterator[NDArray[Any]]:
    """Stored rows in runs; `order` says which comes next."""
    packed = tensor.data.reshape(1, -1) if tensor.data.ndim == 1 else tensor.data
    step = max(1, RUN // int(tensor.shape[0]))
    for start in range(0, len(packed), step):
        yield packed[start : start + step] if order is None else packed[order[start : start + step]]


def _half_order(heads: int, head_dim: int) -> NDArray[np.intp]:
    """For each row in half-split order, its place in the interleaved order: pairs (2i, 2i + 1) become (i, i + head_dim / 2)."""
    return np.arange(heads * head_dim).reshape(heads, head_dim // 2, 2).swapaxes(1, 2).reshape(-1)


def _check_type(file: GgufFile, tensor: gguf.ReaderTensor) -> None:
    try:
        gguf.quants.dequantize(tensor.data.reshape(-1, tensor.data.shape[-1])[:1], tensor.tensor_type)
    except NotImplementedError as error:
        message = f"{file.path.name} packs {tensor.name} as {tensor.tensor_type.name}, which this version can't unpack."
        raise LongshelfError("model_unsupported", message, "Take a file packed as Q8_0, Q4_K_M, F16 or BF16.") from error


def _check_start(path: Path) -> None:
    try:
        with path.open("rb") as file:
            start = file.read(24)
    except FileNotFoundError as error:
        raise LongshelfError("not_found", f"There is no file {path}.") from error
    except OSError as error:
        raise LongshelfError("unreadable", f"{path} can't be read: {error.strerror or error}.") from error
    if start[:4] != b"GGUF":
        raise LongshelfError("not_a_model", f"{path.name} is not a GGUF file.", ONE_FILE)
    # A damaged count would have the reader loop for hours.
    if len(start) < 24 or max(struct.unpack("<QQ", start[8:])) > 1_000_000:
        raise LongshelfError("model_damaged", f"{path.name} can't be used: its header is damaged.", "Download the file again.")


def _shortest(value: float) -> float:
    """The float32 in the file as the shortest decimal that names it (1e-05, not 9.999999747378752e-06)."""
    return float(str(np.float32(value)))
