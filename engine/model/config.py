"""The shape of a decoder: the numbers that its code and its stored KV depend on.

One `ModelConfig` is written at install (config.json in the model's folder) and read at every start. `identity` names those
fields that change what K and V hold; the store hashes it, so a field may be left out of it only if KV can't depend on it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
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
    {"rope_type": "linear", "factor": f}, {"rope_type": "llama3", ...}. Where only the frequencies' divisors are known (a GGUF carries
    them instead of the rule) or count (LongRoPE): {"rope_type": "divisors", "divisors": [numbers]}, inverse frequency i is divided by
    number i, and cosines and sines are multiplied by its "attention_factor" if it has one. `eos` holds every token id that ends an
    answer.

    What only some families have, off unless named: `rotary_dim`, the leading dims of a head that are rotated (0: all);
    `qkv_bias`; `qk_norm`, RMSNorm over each head of q and k before rotation; `post_norms`, RMSNorm of what attention and MLP give
    before it is added; `activation` of the gate, "silu" or "gelu_tanh"; `embedding_scale`; `attention_scale` (0: head_dim^-1/2);
    `attention_softcap` and `logit_softcap` (0: none), cap * tanh(x / cap); `layer_kinds`, "full", "sliding" (sees the last
    `sliding_window` positions, its own included; rotated plainly by `sliding_rope_theta` where that is not 0) or "nope" (not rotated)
    for each layer, empty: all full.
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
    rotary_dim: int = 0
    qkv_bias: bool = False
    qk_norm: bool = False
    post_norms: bool = False
    activation: str = "silu"
    embedding_scale: float = 1.0
    attention_scale: float = 0.0
    attention_softcap: float = 0.0
    logit_softcap: float = 0.0
    layer_kinds: tuple[str, ...] = ()
    sliding_window: int = 0
    sliding_rope_theta: float = 0.0

    def __post_init__(self) -> None:
        counts = ("layers", "hidden", "heads", "kv_heads", "head_dim", "intermediate", "vocab", "window")
        if wrong := [name for name in counts if getattr(self, name) < 1]:
            raise damaged(f"The model's config has no valid {', '.join(wrong)}.")
        if self.heads % self.kv_heads:
            raise damaged(f"The model's config has {self.heads} query heads for {self.kv_heads} KV heads: no whole groups.")
        if self.layer_kinds and len(self.layer_kinds) != self.layers:
            raise damaged(f"The model's config names the kinds of {len(self.layer_kinds)} layers and has {self.layers}.")
        if "sliding" in self.layer_kinds and self.sliding_window < 1:
            raise damaged("The model's config has sliding layers and no sliding window.")

    @property
    def group(self) -> int:
        """Query heads that share one KV head."""
        return self.heads // self.kv_heads

    @property
    def scale(self) -> float:
        """What logits of attention are multiplied by."""
        return self.attention_scale or self.head_dim**-0.5

    def kind(self, layer: int) -> str:
        """ "full", "sliding" or "nope"."""
        return self.layer_kinds[layer] if self.layer_kinds else "full"

    def window_of(self, layer: int) -> int:
        """How many positions up to its own a row of this layer sees; 0: all."""
        return self.sliding_window if self.kind(layer) == "sliding" else 0

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes of K and V of one token over all layers, in bf16. Sliding layers keep every position too: reading can then go on from
        any segment, and the files of all layers look alike."""
        return 2 * self.layers * self.kv_heads * self.head_dim * 2

    @property
    def identity(self) -> str:
        """Canonical JSON of what K and V depend on beside the weights' content; part of every segment's namespace.

        The window, the stop ids, whether embeddings are tied and the cap of logits are left out: they change no K or V. So is what a
        family doesn't have: a field added later changes no identity of a model without it.
        """
        kept = asdict(self)
        for name in ("window", "bos", "eos", "tied", "logit_softcap"):
            del kept[name]
        for known in fields(self):
            if known.name in kept and known.default is not MISSING and kept[known.name] == known.default:
                del kept[known.name]
        return json.dumps(kept, sort_keys=True, separators=(",", ":"), ensure_ascii=True)

    def as_json(self) -> dict[str, Any]:
        """The content of config.json."""
        return {"format": FORMAT, **asdict(self), "eos": list(self.eos), "rope": dict(self.rope), "layer_kinds": list(self.layer_kinds)}

    @staticmethod
    def from_json(stored: Mapping[str, Any]) -> ModelConfig:
        """Undo `as_json`. Raises LongshelfError("model_damaged") for missing or unknown fields, ("newer_home") for a newer format."""
        check_format(stored.get("format", FORMAT))
        values = {name: value for name, value in stored.items() if name != "format"}
        try:
            return ModelConfig(**{**values, "eos": tuple(values["eos"]), "layer_kinds": tuple(values.get("layer_kinds", ()))})
        except (KeyError, TypeError) as error:
            raise damaged(f"The model's config.json is damaged: {error}.") from error
