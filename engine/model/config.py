"""The shape of a decoder: the numbers that its code and its stored KV depend on.

One `ModelConfig` is written at install (config.json in the model's folder) and read at every start. `identity` names those
fields that change what K and V hold; the store hashes it, so a field may be left out of it only if KV can't depend on it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from engine.errors import LongshelfError

FORMAT = 1
"""Version of the JSON files in a model's folder; a newer one is refused."""


def damaged(message: str) -> LongshelfError:
    """The error for an installed model whose files are not what was installed."""
    return LongshelfError("model_damaged", message, "Remove the model and install it again.")


def check_format(stored: int) -> None:
    """Raises LongshelfError("newer_home") for the format of a later version."""
    if stored > FORMAT:
        raise LongshelfError(
            "newer_home", "This model was installed by a newer Longshelf.", "Update Longshelf, or install the model again."
        )


@dataclass(frozen=True)
class ModelConfig:
    """What the decoder needs to know about one model. Counts are of elements, positions of tokens.

    `rope` is the Hugging Face rope dictionary kept verbatim: {"rope_type": "default"} for plain rotation by `rope_theta`,
    {"rope_type": "linear", "factor": f}, {"rope_type": "llama3", ...}. A GGUF carries the frequencies' divisors instead of
    the rule behind them: {"rope_type": "divisors", "divisors": [head_dim / 2 numbers]}, inverse frequency i is divided by
    number i. `eos` holds every token id that ends an answer.
    """

    family: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    rope_theta: float
    rms_eps: float
    tied: bool
    window: int
    bos: int | None
    eos: tuple[int, ...]
    rope: Mapping[str, Any] = field(default_factory=lambda: {"rope_type": "default"}, hash=False)

    def __post_init__(self) -> None:
        counts = ("layers", "hidden", "heads", "kv_heads", "head_dim", "intermediate", "vocab", "window")
        if wrong := [name for name in counts if getattr(self, name) < 1]:
            raise damaged(f"The model's config has no valid {', '.join(wrong)}.")
        if self.heads % self.kv_heads:
            raise damaged(f"The model's config has {self.heads} query heads for {self.kv_heads} KV heads: no whole groups.")

    @property
    def group(self) -> int:
        """Query heads that share one KV head."""
        return self.heads // self.kv_heads

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes of K and V of one token over all layers, in bf16."""
        return 2 * self.layers * self.kv_heads * self.head_dim * 2

    @property
    def identity(self) -> str:
        """Canonical JSON of what K and V depend on beside the weights' content; part of every segment's namespace.

        The window, the stop ids and whether embeddings are tied are left out: they change no K or V.
        """
        kept = asdict(self)
        for name in ("window", "bos", "eos", "tied"):
            del kept[name]
        return json.dumps(kept, sort_keys=True, separators=(",", ":"), ensure_ascii=True)

    def as_json(self) -> dict[str, Any]:
        """The content of config.json."""
        return {"format": FORMAT, **asdict(self), "eos": list(self.eos), "rope": dict(self.rope)}

    @staticmethod
    def from_json(stored: Mapping[str, Any]) -> ModelConfig:
        """Undo `as_json`. Raises LongshelfError("model_damaged") for missing or unknown fields, ("newer_home") for a newer format."""
        check_format(stored.get("format", FORMAT))
        values = {name: value for name, value in stored.items() if name != "format"}
        try:
            return ModelConfig(**{**values, "eos": tuple(values["eos"])})
        except (KeyError, TypeError) as error:
            raise damaged(f"The model's config.json is damaged: {error}.") from error
