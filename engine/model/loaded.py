"""A model in memory, with everything that reading and asking need of it."""

from __future__ import annotations

import platform

import torch

from engine.model import weights
from engine.model.config import ModelConfig
from engine.model.decoder import Decoder
from engine.model.identity import namespace
from engine.model.installed import InstalledModel
from engine.model.tokenizer import Tokenizer
from engine.store.format import SegmentHeader
from engine.threads import threads_in_use
from engine.version import VERSION
from kernels import cpu


class LoadedModel:
    """One installed model, its weights in memory. Raises LongshelfError("model_damaged") where its files aren't what was installed.

    All of them are read for that (0.1 s for 100 MB): a flipped bit in a weight would give wrong answers, and stored KV its name.
    """

    def __init__(self, installed: InstalledModel) -> None:
        installed.verify_once()
        self.installed = installed
        self.name = installed.name
        self.card = installed.card
        self.config: ModelConfig = installed.config
        self.decoder = Decoder(installed.config, weights.load(installed.folder, installed.config))
        self.tokenizer: Tokenizer = installed.tokenizer()
        self.namespace = namespace(installed)

    def segment_header(self, parent: str, start: int, tokens: int) -> SegmentHeader:
        c = self.config
        return SegmentHeader(self.namespace, parent, start, tokens, c.layers, c.kv_heads, c.head_dim, "bfloat16", self.provenance)

    @property
    def provenance(self) -> dict[str, str]:
        """Kept with each segment and shown; never a reason for a miss."""
        return {
            "longshelf": VERSION,
            "model": self.name,
            "device": "cpu",
            "isa": cpu.native() or "torch",
            "machine": platform.machine(),
            "threads": str(threads_in_use()),
            "torch": str(torch.__version__),
        }
