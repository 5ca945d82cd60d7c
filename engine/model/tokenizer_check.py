"""What every tokenizer must do before its model is installed: a wrong one gives plausible ids and a confused model."""

from __future__ import annotations

from collections.abc import Callable

from engine.errors import LongshelfError
from engine.model.tokenizer import Tokenizer

_SAMPLES = (
    "It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want of a wife.",
    "나는 바다를 보았다. 2026년 3월 1일, 맑음.\n\n“봄이다!”",
    'def f(x: int) -> str:\n\treturn f"{x:>8}"  # café, naïve, ½ 🙂\n    if x != 0x1F: pass\r\n',
)


def check(tokenizer: Tokenizer, damaged: Callable[[str], LongshelfError]) -> None:
    """Special tokens are recognised in a template and nowhere else, and texts come back. Raises `damaged(why)`."""
    for special in sorted(tokenizer.special_ids):
        name = tokenizer.name(special)
        if tokenizer.encode_template(name) != [special]:
            raise damaged(f"its special token {name} isn't recognised")
        if not tokenizer.special_ids.isdisjoint(tokenizer.encode_ids(f"{name} {name}\n{name}")):
            raise damaged(f"plain text can become its special token {name}")
    for sample in _SAMPLES if tokenizer.bytewise else _SAMPLES[:1]:
        if tokenizer.decode(tokenizer.encode_ids(sample)) != sample:
            raise damaged(f"its tokenizer doesn't give back {sample[:24]!r}")
