"""Errors a person can act on: each names the thing, the cause and the next step.

Anything else that is raised is a fault of ours and is shown as such. `kind` is a stable word for scripts (the `error.kind` of
the command line), `message` one sentence, `hint` the next step.
"""

from __future__ import annotations

import logging
import traceback
from types import TracebackType


class LongshelfError(Exception):
    """Something outside the program's control: a file, the disk, a model, a request.

    kind: stable word, e.g. "not_found"; message: one sentence; hint: what to do next, may be empty.
    """

    def __init__(self, kind: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.hint = hint

    def as_json(self) -> dict[str, str]:
        return {"kind": self.kind, "message": self.message, "hint": self.hint}


class Stopped(Exception):
    """The person asked for this work to end; what is finished is kept."""


def trace_of(error: BaseException) -> str:
    """Where an error came from, for a log that people send to others: files and lines of the program, and what kind it is.

    Python's own messages may quote what was worked on, a document's text among it; only LongshelfErrors say what they mean to.
    """
    chain: list[str] = []
    seen: BaseException | None = error
    while seen is not None:
        said = f": {seen.kind}: {seen.message}" if isinstance(seen, LongshelfError) else ""
        chain.append("".join(traceback.format_tb(seen.__traceback__)) + type(seen).__name__ + said)
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)
    return "\nfollowed by\n".join(reversed(chain))


class PrivateFormatter(logging.Formatter):
    """Log lines whose traces are `trace_of` their errors."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")

    def formatException(self, ei: tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]) -> str:
        return trace_of(ei[1]) if ei[1] is not None else ""
