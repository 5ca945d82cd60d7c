"""Whether the documents support an answer: signs of it, joined into one number.

The signs come from what answering computes anyway; none knows the language of the text.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Evidence:
    """verbatim: share of the answer's words that stand in what was read, in runs of three or more."""

    verbatim: float = 0.0
