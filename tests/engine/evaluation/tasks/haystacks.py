"""Texts to hide needles in, and the vocabularies that their tokens are counted in."""

from __future__ import annotations

from engine.evaluation.tasks.registry import TASKS

_CARGO = ("barley", "slate", "lamp oil", "wool", "glass")
_CARGO_KO = ("보리", "등유", "유리", "양털", "돌판")


def _paragraphs(lines: list[str]) -> str:
    return "\n\n".join("\n".join(lines[first : first + 5]) for first in range(0, len(lines), 5))


ENGLISH = _paragraphs([f"On day {n} the ferry brought {n % 9 + 2} crates of {_CARGO[n % 5]} to the island." for n in range(1, 40)])
KOREAN = _paragraphs([f"{n}일째 되던 날 배가 섬으로 {_CARGO_KO[n % 5]} {n % 9 + 2}상자를 실어 왔다." for n in range(1, 40)])


def haystack(name: str) -> list[str]:
    """The documents that a task of this name is given."""
    task = TASKS[name]
    return [{"en": ENGLISH, "ko": KOREAN}[task.language]] if task.haystack else []
