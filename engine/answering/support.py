"""Whether the documents hold what a question asks for: signs of it, joined into one number.

The signs are shares and know neither language nor model; how much each counts is what calibration finds for a model, on texts of our
own. An answer whose question has little support is marked as not found in the documents.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.library.words import stem, terms
from engine.model import calibration
from engine.model.installed import InstalledModel

WINDOW = 400
"""Code points within which a question's terms are looked for together: a few sentences."""

VERBATIM = 0.8
"""From this share on an answer counts as the documents' own words."""

_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Evidence:
    """coverage: share of the question's terms that stand together somewhere in what was read.

    explained: how much of the question's improbability goes when the part stands before it (below 0 if it grows).
    verbatim: share of the answer's words that stand in what was read, in runs of three or more.
    """

    coverage: float = 0.0
    explained: float = 0.0
    verbatim: float = 0.0


@dataclass(frozen=True)
class Rule:
    """A logistic rule over what reading the question showed: 1 / (1 + exp(-(bias + sum of weight x sign))); supported from `least` on."""

    weights: Mapping[str, float]
    bias: float
    least: float

    def support(self, evidence: Evidence) -> float:
        """How likely the documents hold what is asked, 0..1. An answer in their own words stands in them, whatever was asked: a summary,
        say, whose question shares no word with them."""
        total = self.bias + sum(weight * float(getattr(evidence, name)) for name, weight in self.weights.items())
        asked = 1 / (1 + math.exp(-max(-60.0, min(60.0, total))))
        return max(asked, evidence.verbatim) if evidence.verbatim >= VERBATIM else asked


RULE = Rule({"coverage": 6.66, "explained": 13.42}, -6.04, 0.5)
"""For a model that was not calibrated: what calibration found for the default one, on 120 questions about four texts of our own. Each
text judged by the rule of the other three: AUC .99, .9 of the absent refused and .05 of the present."""


def rule_of(installed: InstalledModel) -> Rule:
    """The rule that calibration found for a model, else RULE."""
    found = calibration.load(installed).support
    return Rule(**found) if found else RULE


def coverage(question: str, texts: Sequence[str]) -> float:
    """Share of a question's terms, by weight, in the place of WINDOW code points that has most of them; 1 without terms."""
    asked = terms(question)
    weights = {stem(word): 1.0 for word in asked.words} | dict(asked.pieces)
    if not weights:
        return 1.0
    return max((_most_together(weights, asked.pieces, text.lower()) for text in texts), default=0.0) / sum(weights.values())


def _most_together(weights: Mapping[str, float], pieces: Mapping[str, float], text: str) -> float:
    """The largest sum of weights of terms within one window."""
    places = [(match.start(), word) for match in _WORD.finditer(text) if (word := stem(match.group())) in weights and word not in pieces]
    for piece in pieces:
        places += [(match.start(), piece) for match in re.finditer(re.escape(piece), text)]
    places.sort()
    inside: Counter[str] = Counter()
    most = held = 0.0
    first = 0
    for place, term in places:
        held += 0 if inside[term] else weights[term]
        inside[term] += 1
        while places[first][0] < place - WINDOW:
            left = places[first][1]
            inside[left] -= 1
            held -= 0 if inside[left] else weights[left]
            first += 1
        most = max(most, held)
    return most
