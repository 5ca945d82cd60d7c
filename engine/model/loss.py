"""How well a model reads a text, from the logits that reading it can give anyway: the mean log-loss of its tokens.

Tokens differ between models and characters between scripts, so losses are compared in bits a letter: a syllable of Hangul, a kana or a Han
character counts as three letters, about what it holds (the handbook in Korean has 0.6 characters for one of the English original).
The head of a model is large; a few rows of each chunk say enough, and their logits change no K or V.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

import resources
from engine.attention.exact import Exact
from engine.attention.sequence import Rows, Tail
from engine.attention.sequence import Sequence as Read
from engine.model import weights
from engine.model.config import ModelConfig
from engine.model.decoder import CHUNK, Decoder
from engine.model.tokenizer import Tokenizer

EVERY = 32
"""One token of so many is looked at: 16 rows of a chunk, which the decoder takes without unpacking its head."""
_HANDBOOK = ("en", "ko")


@dataclass(frozen=True)
class Loss:
    """Sums over `count` tokens: their log-loss in nats, and how many letters they stand for."""

    nats: float = 0.0
    count: int = 0
    letters: int = 0

    def __add__(self, other: Loss) -> Loss:
        return Loss(self.nats + other.nats, self.count + other.count, self.letters + other.letters)

    @property
    def bits_per_letter(self) -> float:
        return self.nats / math.log(2) / max(1, self.letters)


def looked_at(tokens: int, every: int = EVERY) -> torch.Tensor:
    """Rows of a chunk whose logits are wanted: each says the token behind it, so the last row is none."""
    return torch.tensor(range(every // 2 - 1, tokens - 1, every), dtype=torch.long)


def of_rows(logits: torch.Tensor, chunk: Sequence[int], rows: torch.Tensor, tokenizer: Tokenizer) -> Loss:
    """The loss at `rows` of a chunk, whose logits [n, V] these are."""
    targets = torch.tensor(chunk)[rows + 1]
    nats = torch.logsumexp(logits, -1) - logits.gather(1, targets[:, None])[:, 0]
    return Loss(float(nats.double().sum()), len(rows), sum(letters(tokenizer.token_bytes(int(target))) for target in targets))


def letters(written: bytes) -> int:
    """Letters that the UTF-8 of a token stands for: one a character, three of scripts that write in syllables or words."""
    return sum(1 for byte in written if byte < 0x80 or byte >= 0xC0) + 2 * sum(1 for byte in written if 0xE3 <= byte < 0xF0)


def usual(folder: Path, config: ModelConfig, preamble: Sequence[int], before_layer: Callable[[], None]) -> float:
    """Bits a letter at which an installed model reads our handbook, in the language that it reads best."""
    tokenizer, decoder = Tokenizer(folder), Decoder(config, weights.load(folder, config))
    return min(_of_text(resources.handbook(language), decoder, tokenizer, preamble, before_layer) for language in _HANDBOOK)


def _of_text(path: Path, decoder: Decoder, tokenizer: Tokenizer, preamble: Sequence[int], before_layer: Callable[[], None]) -> float:
    ids = [*preamble, *tokenizer.encode_ids(path.read_text(encoding="utf-8"))][: min(CHUNK, decoder.config.window)]
    wanted = looked_at(len(ids), 4)
    wanted = wanted[wanted >= len(preamble)]
    rows = Rows([(Read((), Tail(decoder.config, decoder.dtype, len(ids))), len(ids))])
    logits = decoder.forward(torch.tensor(ids), rows, Exact(decoder.config), wanted, before_layer)
    return of_rows(logits, ids, wanted, tokenizer).bits_per_letter
