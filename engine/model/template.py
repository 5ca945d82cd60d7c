"""A model's own chat template, cut into the pieces that stand around documents, questions and answers.

The template (Jinja, run in a sandbox) is rendered once, at install, with marks where text will stand. What lies between the marks is
fixed from then on: the preamble before a document can be kept as KV, and a chat goes on by appending ids.
Dates are fixed, so that the preamble of a model never changes.
"""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass
from typing import Any, NoReturn

import jinja2
import jinja2.ext
import jinja2.sandbox

from engine.errors import LongshelfError

INSTRUCT = "Take an instruct (chat) version of the model."

PLAIN = (
    "{{ bos_token }}{% for message in messages %}"
    "{% if message.role == 'user' %}{{ 'Text:\n\n' if loop.first else 'Question:\n\n' }}{{ message.content }}\n\nAnswer:\n\n"
    "{% elif message.role == 'assistant' %}{{ message.content }}{{ eos_token }}\n\n"
    "{% endif %}{% endfor %}"
)
"""For models without a template of their own: texts, questions and answers under plain headings."""

_TODAY = datetime.datetime(2024, 7, 26)
_SYSTEM, _FIRST, _ANSWER, _SECOND = "LSMARKSYSTEM", "LSMARKFIRST", "LSMARKANSWER", "LSMARKSECOND"


@dataclass(frozen=True)
class TemplatePieces:
    """Texts around the turns, special tokens written by name.

    A chat is: preamble, document and question, after_document, answer, then for every further question assistant_close, user_open,
    question, user_close_assistant_open, answer. `system` is the system message that the template brings by itself, if it does.
    """

    preamble: str
    after_document: str
    user_open: str
    user_close_assistant_open: str
    assistant_close: str
    system: str | None


class ChatTemplate:
    """Raises LongshelfError("model_unsupported") wherever a template can't be compiled, rendered or cut."""

    def __init__(self, source: str, bos: str, eos: str) -> None:
        # The settings of transformers, for which templates are written.
        room = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols])
        room.filters["tojson"] = lambda value, indent=None: json.dumps(value, ensure_ascii=False, indent=indent)
        room.globals.update(raise_exception=_refuse, strftime_now=_TODAY.strftime, date_string=_TODAY.strftime("%d %b %Y"))
        self._fixed: dict[str, Any] = {"bos_token": bos, "eos_token": eos, "enable_thinking": False}
        try:
            self._template = room.from_string(source)
        except jinja2.TemplateError as error:
            raise _unsupported(str(error)) from error

    def render(self, messages: list[dict[str, str]], open_answer: bool) -> str:
        """The text of a chat; `open_answer` adds what stands before the assistant's answer."""
        try:
            return self._template.render(messages=messages, add_generation_prompt=open_answer, **self._fixed)
        except (jinja2.TemplateError, ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
            raise _unsupported(str(error)) from error

    def pieces(self) -> TemplatePieces:
        """Cut the template; the pieces put together are its own text of a chat of two questions.

        One difference is allowed: thinking models open an answer with a closed thought that they leave out of past answers. In our chats it
        stays, as it was read.
        """
        first, answer, second = _message("user", _FIRST), _message("assistant", _ANSWER), _message("user", _SECOND)
        preamble, after_document = _cut(self.render([first], open_answer=True), _FIRST)
        whole = self.render([first, answer, second], open_answer=True)
        head, rest = _cut(whole, _FIRST)
        rest = _cut(rest, _ANSWER)[1]
        between, close = _cut(rest, _SECOND)
        assistant_close = _cut(self.render([first, answer], open_answer=False), _ANSWER)[1]
        if head != preamble or not between.startswith(assistant_close):
            raise _unsupported("a second question changes what stands before it")
        return TemplatePieces(
            preamble=preamble,
            after_document=after_document,
            user_open=between.removeprefix(assistant_close),
            user_close_assistant_open=close,
            assistant_close=assistant_close,
            system=self._own_system(preamble),
        )

    def _own_system(self, preamble: str) -> str | None:
        """What the preamble says where a system message given by us would stand."""
        try:
            given = self.render([_message("system", _SYSTEM), _message("user", _FIRST)], open_answer=True)
            before, after = _cut(_cut(given, _FIRST)[0], _SYSTEM)
        except LongshelfError:
            return None  # this template takes no system message
        fits = len(preamble) > len(before) + len(after) and preamble.startswith(before) and preamble.endswith(after)
        return preamble[len(before) : len(preamble) - len(after)] if fits else None


def _message(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def _cut(text: str, mark: str) -> tuple[str, str]:
    if text.count(mark) != 1:
        raise _unsupported("it doesn't write each message once")
    before, _, after = text.partition(mark)
    return before, after


def _refuse(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


def _unsupported(why: str) -> LongshelfError:
    return LongshelfError("model_unsupported", f"The model's chat template can't be used: {why}.", INSTRUCT)
