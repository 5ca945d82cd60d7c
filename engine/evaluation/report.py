"""What every measurement gives: raw rows of each repeat, and figures made from them by one rule.

A figure that compares is a ratio of medians within one run, its sides measured in turn, so that a machine that slows down slows both.
"""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Report:
    """{name, machine, settings, seeds, rows, figures}; `add` appends a row."""

    name: str
    settings: dict[str, Any] = field(default_factory=dict)
    seeds: list[int] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)

    def add(self, **values: Any) -> None:
        self.rows.append(values)

    def median(self, value: str, **where: Any) -> float:
        """Median of a column over the rows that match and have it."""
        matching = (row for row in self.rows if all(row.get(name) == wanted for name, wanted in where.items()))
        return float(statistics.median(row[value] for row in matching if value in row))

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "machine": machine(),
            "settings": self.settings,
            "seeds": self.seeds,
            "rows": self.rows,
            "figures": {name: round(value, 4) for name, value in self.figures.items()},
        }


def machine() -> dict[str, Any]:
    import torch

    from engine.threads import threads_in_use
    from kernels import cpu

    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": threads_in_use(),
        "native": cpu.native() or "none (torch fallback)",
        "python": platform.python_version(),
        "torch": str(torch.__version__),
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def timed(work: Callable[[], object]) -> float:
    """Seconds that `work` takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def auc(positive: Sequence[float], negative: Sequence[float]) -> float | None:
    """Area under the ROC curve: how often a positive scores above a negative, ties counting half; None where there is no pair."""
    if not positive or not negative:
        return None
    won = sum((p > n) + 0.5 * (p == n) for p in positive for n in negative)
    return won / (len(positive) * len(negative))
