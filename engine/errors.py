"""Errors a person can act on: each names the thing, the cause and the next step.

Anything else that is raised is a fault of ours and is shown as such. `kind` is a stable word for scripts (the `error.kind` of
the command line), `message` one sentence, `hint` the next step.
"""

from __future__ import annotations


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
