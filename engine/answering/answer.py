"""What travels while a question is answered: what was asked, what it cost, and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event
from typing import Any

from engine.answering.citations import Passage
from engine.answering.generate import Generated
from engine.answering.modes import EXACT, Mode
from engine.answering.prompt import Turn
from engine.answering.sampling import Sampling
from engine.answering.sources import Source
from engine.answering.support import Evidence


@dataclass(frozen=True)
class Asking:
    """What was asked, and how it is to be answered. parts: "auto", "all" or part numbers from 1.

    emit(event, data) tells whoever asked; stop ends the answer at the next layer.
    """

    question: str
    history: tuple[Turn, ...]
    sampling: Sampling
    max_tokens: int
    parts: str | tuple[int, ...]
    everything: bool
    emit: Callable[[str, dict[str, Any]], None]
    stop: Event
    mode: Mode = EXACT


@dataclass
class Counts:
    """What one question cost and read; the numbers of the result."""

    document_tokens_prefilled: int = 0
    prompt_tokens_prefilled: int = 0
    reused_tokens: int = 0
    routing_tokens: int = 0
    routing_bytes: int = 0
    kv_bytes_read: int = 0
    load_s: float = 0.0
    routing_s: float = 0.0
    ttft_s: float = 0.0
    decode_s: float = 0.0


@dataclass
class Answer:
    """What one reading gave: the text, where in the sources it comes from, and how well they support it.

    approximate: it was read from parts that know nothing of one another.
    """

    generated: Generated
    sources: tuple[Source, ...]
    cited: list[tuple[Source, Passage]] = field(default_factory=list)
    evidence: Evidence = field(default_factory=Evidence)
    support: float = 0.0
    supported: bool = False
    approximate: bool = False
