"""A model in memory, with everything that reading and asking need of it."""

from __future__ import annotations

import platform
from collections.abc import Sequence

import torch

from engine.attention.exact import Exact
from engine.model import weights
from engine.model.config import ModelConfig
from engine.model.decoder import Decoder
from engine.model.identity import namespace
from engine.model.installed import InstalledModel
from engine.model.tokenizer import Tokenizer
from engine.placement import Placement
from engine.store.format import SegmentHeader
from engine.threads import threads_in_use
from engine.version import VERSION
from kernels import cpu


class LoadedModel:
    """One installed model, its weights in memory or on a device, one of `placement.DEVICES`.

    Raises what `Placement` raises, and LongshelfError("model_damaged") where its files aren't what was installed.

    All of them are read for that (0.1 s for 100 MB): a flipped bit in a weight would give wrong answers, and stored KV its name.
    """

    def __init__(self, installed: InstalledModel, device: str = "cpu") -> None:
        installed.verify_once()
        self.installed = installed
        self.name = installed.name
        self.card = installed.card
        self.config: ModelConfig = installed.config
        self.placement = Placement(device, installed.config, installed.card.weights_bytes, installed.card.weights != "bf16")
        self.decoder = Decoder(installed.config, weights.load(installed.folder, installed.config, self.placement.weights_on))
        self.tokenizer: Tokenizer = installed.tokenizer()
        self.namespace = namespace(installed)

    def segment_header(self, parent: str, start: int, tokens: int) -> SegmentHeader:
        c = self.config
        return SegmentHeader(self.namespace, parent, start, tokens, c.layers, c.kv_heads, c.head_dim, "bfloat16", self.provenance)

    def runs_on(self, device: str) -> bool:
        """Whether it runs where that, one of `placement.DEVICES`, would have it run."""
        return device in (self.placement.device.kind, self.placement.asked)

    def exact(self, watch_layers: Sequence[int] = ()) -> Exact:
        """What reads everything of a sequence, where this model's things lie."""
        return self.placement.exact(watch_layers)

    @property
    def provenance(self) -> dict[str, str]:
        """Kept with each segment and shown; never a reason for a miss."""
        return {
            "longshelf": VERSION,
            "model": self.name,
            "device": self.placement.device.kind,
            "isa": cpu.native() or "torch",
            "machine": platform.machine(),
            "threads": str(threads_in_use()),
            "torch": str(torch.__version__),
        }
