"""Weights as the decoder uses them: matrices of one layer that read the same input stand below one another.

Read from model.safetensors under Hugging Face's names; a packed matrix has its layout behind the name ("….weight.q4_1", uint8). Mapped,
so that two processes share the pages of what isn't copied. Norms are float32: a few numbers, and some families add one to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from engine.model.config import ModelConfig, damaged
from engine.model.linear import Linear, Scratch
from kernels.packings import PACKINGS, Band, plain, unpack

HERE = torch.device("cpu")


@dataclass(frozen=True)
class Layer:
    """One decoder layer; norms are [E] float32, those of heads [D]. None: the family has none."""

    attention_norm: torch.Tensor
    qkv: Linear  # [(Hq + 2 Hkv) D, E]
    out: Linear  # [E, Hq D]
    mlp_norm: torch.Tensor
    gate: Linear  # [F, E]
    up: Linear  # [F, E]
    down: Linear  # [E, F]
    q_norm: torch.Tensor | None = None
    k_norm: torch.Tensor | None = None
    post_attention_norm: torch.Tensor | None = None
    post_mlp_norm: torch.Tensor | None = None


@dataclass(frozen=True)
class Weights:
    embedding: Linear  # [V, E]
    layers: tuple[Layer, ...]
    norm: torch.Tensor  # [E] float32
    head: Linear  # [V, E]; the embedding itself where they are tied
    dtype: torch.dtype  # of activations in bulk, and of K and V
    device: torch.device = HERE
    apart: bool = False  # they lie on a device with kernels of its own, all but the embedding, whose rows are brought over


@contextmanager
def opened(path: Path) -> Iterator[Callable[[str], torch.Tensor | None]]:
    """A lookup of the tensors in a safetensors file. Raises LongshelfError("model_damaged") if it can't be read."""
    try:
        with safe_open(path, framework="pt") as file:
            names = frozenset(file.keys())
            yield lambda name: file.get_tensor(name) if name in names else None
    except (OSError, SafetensorError) as error:
        raise damaged(f"The model's weights {path} can't be read: {error}.") from error


def state(path: Path) -> dict[str, torch.Tensor]:
    """All tensors of a weights file under Hugging Face's names, matrices unpacked to bf16: for comparisons and exports."""
    with safe_open(path, framework="pt") as file:
        found = {}
        for stored in file.keys():  # noqa: SIM118  (no dict)
            name, _, layout = stored.rpartition(".")
            tensor = file.get_tensor(stored)
            found[name if layout in PACKINGS else stored] = unpack(PACKINGS[layout], tensor) if layout in PACKINGS else tensor
    return found


def load(folder: Path, config: ModelConfig, device: torch.device | None = None) -> Weights:
    """Weights of an installed model. Raises LongshelfError("model_damaged") for a missing or misshapen tensor."""
    with opened(folder / "model.safetensors") as tensor:
        return build(tensor, config, torch.bfloat16, device)


def build(
    tensor: Callable[[str], torch.Tensor | None], config: ModelConfig, dtype: torch.dtype, device: torch.device | None = None
) -> Weights:
    """Weights from a lookup by name that gives None for what there isn't; plain matrices become `dtype`.

    device: where kernels.gpu runs them; None: here, by the processor.
    """
    c, scratch = config, Scratch()
    make: Callable[[list[Band], int, torch.Tensor | None], Linear] = partial(_linear_here, scratch)
    if device is not None:
        from engine.model.linear_on_device import LinearOnDevice

        make = partial(LinearOnDevice, device)

    def found(name: str, *shape: int) -> torch.Tensor:
        value = tensor(name)
        if value is None:
            raise damaged(f"The model's tensor {name} is missing.")
        if tuple(value.shape) != shape:
            raise damaged(f"The model's tensor {name} is {list(value.shape)}, not {list(shape)}.")
        return value

    def band(name: str, rows: int, columns: int) -> Band:
        for packing in PACKINGS.values():
            if columns % packing.elements == 0 and (packed := tensor(f"{name}.{packing.name}")) is not None:
                if tuple(packed.shape) != (rows, packing.row_bytes(columns)):
                    raise damaged(f"The model's packed tensor {name} is {list(packed.shape)}: not {rows} rows of {columns} numbers.")
                return Band(packing, packed)
        return plain(found(name, rows, columns).to(dtype))

    def linear(columns: int, *named: tuple[str, int], bias: bool = False) -> Linear:
        bands = [band(f"{name}.weight", rows, columns) for name, rows in named]
        biases = torch.cat([found(f"{name}.bias", rows).float() for name, rows in named]) if bias else None
        return make(bands, columns, biases)

    def norm(name: str, size: int = c.hidden) -> torch.Tensor:
        return found(f"{name}.weight", size).float().to(device or HERE)

    layers = []
    for n in range(c.layers):
        at = f"model.layers.{n}"
        attention, mlp = f"{at}.self_attn", f"{at}.mlp"
        kv = c.kv_heads * c.head_dim
        heads = ((f"{attention}.q_proj", c.heads * c.head_dim), (f"{attention}.k_proj", kv), (f"{attention}.v_proj", kv))
        layers.append(
            Layer(
                attention_norm=norm(f"{at}.input_layernorm"),
                qkv=linear(c.hidden, *heads, bias=c.qkv_bias),
                out=linear(c.heads * c.head_dim, (f"{attention}.o_proj", c.hidden)),
                mlp_norm=norm(f"{at}.{'pre_feedforward' if c.post_norms else 'post_attention'}_layernorm"),
                gate=linear(c.hidden, (f"{mlp}.gate_proj", c.intermediate)),
                up=linear(c.hidden, (f"{mlp}.up_proj", c.intermediate)),
                down=linear(c.intermediate, (f"{mlp}.down_proj", c.hidden)),
                q_norm=norm(f"{attention}.q_norm", c.head_dim) if c.qk_norm else None,
                k_norm=norm(f"{attention}.k_norm", c.head_dim) if c.qk_norm else None,
                post_attention_norm=norm(f"{at}.post_attention_layernorm") if c.post_norms else None,
                post_mlp_norm=norm(f"{at}.post_feedforward_layernorm") if c.post_norms else None,
            )
        )
    embedding = Linear([band("model.embed_tokens.weight", c.vocab, c.hidden)], c.hidden, scratch)
    if c.tied:
        head = embedding if device is None else make(list(embedding.bands), c.hidden, None)
    else:
        head = linear(c.hidden, ("lm_head", c.vocab))
    return Weights(embedding, tuple(layers), norm("model.norm"), head, dtype, device or HERE, device is not None)


def _linear_here(scratch: Scratch, bands: list[Band], columns: int, bias: torch.Tensor | None) -> Linear:
    return Linear(bands, columns, scratch, bias)
