"""Folding a thinking model's thought out of its answer: the run <think>…</think> that some begin with, whatever the template says."""

from __future__ import annotations

OPEN, CLOSE = "<think>", "</think>"


class Thought:
    """Text of an answer as it comes, without the thought before it. A thought that is never closed leaves no answer."""

    def __init__(self) -> None:
        self._held = ""
        self._inside = False
        self._over = False
        self._after = False

    def fold(self, text: str) -> str:
        """What of the answer is known to be said now: "" while it is not clear whether a thought begins, and inside one."""
        if self._over:
            return self._begun(text)
        self._held += text
        if not self._inside:
            start = self._held.lstrip()
            if not start.startswith(OPEN):
                if start and not OPEN.startswith(start):
                    return self._end(self._held)
                return ""
            self._inside = True
        _, close, after = self._held.partition(CLOSE)
        if not close:
            return ""
        self._after = True
        return self._end(after)

    def flush(self) -> str:
        """What was held back and is no thought; at the end of the answer."""
        held, self._held = self._held, ""
        return "" if self._inside or self._over else held

    def _end(self, text: str) -> str:
        self._over, self._held = True, ""
        return self._begun(text)

    def _begun(self, text: str) -> str:
        """White space between a thought and the answer belongs to neither."""
        if self._after:
            text = text.lstrip()
            self._after = not text
        return text
