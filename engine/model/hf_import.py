"""The tensors of a Hugging Face folder under our names: what a family fuses is taken apart, what it leaves out of its norms is added."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from engine.errors import LongshelfError
from engine.model.config import ModelConfig
from engine.model.families import SUPPORTED
from engine.model.hf_folder import HfFolder, Shard, damaged, dtype_known
from engine.model.source import Numbers, Source, packed, plain
from engine.model.tensor_names import Take, takes_from_hf, text_name

_UNUSED = ("rotary_emb.inv_freq", "masked_bias", "attn.bias")
"""Ends of tensor names that old checkpoints hold and nobody reads."""


def sources(folder: HfFolder, config: ModelConfig, pack: str | None) -> list[Source]:
    """All tensors that the model needs, sorted by their new names.

    Raises LongshelfError("model_damaged") if one is missing or of a wrong shape, ("model_unsupported") for one that isn't known.
    """
    places = {text: (shard, stored) for shard in folder.shards() for stored in shard.tensors if (text := text_name(stored)) is not None}
    takes = takes_from_hf(config)
    known = {take.source for take in takes} | ({"lm_head.weight"} if config.tied else set())
    if strange := sorted(name for name in places if name not in known and not name.endswith(_UNUSED)):
        what = f"{folder.path.name} has tensors that this version doesn't know ({', '.join(strange[:3])})."
        raise LongshelfError("model_unsupported", what, SUPPORTED)
    if missing := sorted({take.source for take in takes} - places.keys()):
        raise damaged(folder.path, f"it lacks the tensors {', '.join(missing[:3])}")
    made = [_source(take, *places[take.source], pack) for take in takes]
    return sorted(made, key=lambda source: source.info.name)


def special_text(folder: HfFolder, role: str) -> str:
    """How the tokenizer writes the token with a role ("bos_token"), "" where it has none."""
    for stored in (folder.tokenizer_config, folder.json("special_tokens_map.json")):
        token = stored.get(role)
        if isinstance(token, dict):
            token = token.get("content")
        if isinstance(token, str):
            return token
    return ""


def _source(take: Take, shard: Shard, stored: str, pack: str | None) -> Source:
    dtype, shape, _ = shard.tensors[stored]
    if shape != (take.source_rows, *take.shape[1:]):
        raise damaged(shard.path, f"its tensor {stored} has the shape {list(shape)}, not {[take.source_rows, *take.shape[1:]]}")
    if not dtype_known(dtype):
        message = f"{shard.path.name} holds {stored} as {dtype}, which this version can't read."
        raise LongshelfError("model_unsupported", message, "Take the model in bf16, float16 or float32, or its GGUF.")
    numbers = _numbers(take, shard, stored)
    return plain(take.name, take.shape, numbers) if pack is None else packed(take.name, take.shape, numbers, pack)


def _numbers(take: Take, shard: Shard, stored: str) -> Numbers:
    def runs() -> Iterator[NDArray[np.float32]]:
        for run in shard.rows(stored, take.first, take.shape[0]):
            yield run + np.float32(take.plus) if take.plus else run

    return runs
