"""The text around a question. Everything here stands after the document, so that changing it never costs reading again.

The model's own chat template gives the pieces between turns (fixed at install); this file adds a rule between document and
question. Questions and answers are encoded as plain text: a special token's name inside them is just characters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from engine.errors import LongshelfError
from engine.model.card import Card
from engine.model.tokenizer import Tokenizer

_RULE = "\n\n---\n\n"
"""Stands between document and question, whatever the language.

Six wordier instructions were measured beside it: on 23 questions with the right part given, the default model named the answer 9
times behind the bare rule, 4 to 7 times behind instructions to be brief and to stay with the text."""

_NOTES = {
    "en": "Notes taken from different parts of a document, each answering the question:\n",
    "ko": "한 문서의 여러 부분에서 질문에 답한 메모:\n",
}


@dataclass(frozen=True)
class Turn:
    """An earlier question of the conversation and its answer."""

    question: str
    answer: str


@dataclass(frozen=True)
class Prompt:
    """Token ids of what always follows a document, and of conversation and question, up to where the answer starts."""

    opening: list[int]
    asking: list[int]

    def __len__(self) -> int:
        return len(self.opening) + len(self.asking)


class Prompts:
    """Makes the token ids that follow a chain."""

    def __init__(self, card: Card, tokenizer: Tokenizer) -> None:
        self._encode = tokenizer.encode_ids
        self._window = card.window
        self._open_answer = list(card.after_document.ids)
        self._next_question = [*card.turns.assistant_close.ids, *card.turns.user_open.ids]
        self._open_next_answer = list(card.turns.user_close_assistant_open.ids)

    def after_document(self, question: str, history: Sequence[Turn], room: int, for_answer: int = 0) -> Prompt:
        """Opening, conversation and question, up to where the answer starts.

        room: tokens that the window has left. Earliest turns are left out where they would leave an answer fewer than `for_answer` of
        it; raises LongshelfError("too_long") where even the question alone doesn't fit.
        """
        for kept in range(len(history) + 1):
            prompt = self._prompt("", question, history[kept:])
            if len(prompt) <= (room - for_answer if kept < len(history) else room):
                return prompt
        raise LongshelfError(
            "too_long",
            f"The question is {len(self._plain(question))} tokens long; beside this part of the document"
            f" {max(0, room)} fit into the model's window of {self._window}.",
            "Shorten the question, or add the long text as a document of its own.",
        )

    def least(self, question: str) -> int:
        """Tokens that the question alone takes behind a document."""
        return len(self._prompt("", question, ()))

    def question_probe(self, question: str) -> tuple[list[int], list[int]]:
        """(ids before the question, ids of the question) for measuring how likely a question is after a part."""
        return self._plain("\n\n질문:" if is_korean(question) else "\n\nQuestion:"), self._plain(" " + question)

    def notes(self, question: str, answers: Sequence[str]) -> Prompt:
        """A question put to the answers that several parts gave, in place of a document."""
        listed = "".join(f"{n}. {answer.strip()}\n" for n, answer in enumerate(answers, 1))
        return self._prompt(_NOTES["ko" if is_korean(question) else "en"] + listed, question, ())

    def _plain(self, text: str) -> list[int]:
        """Ids of text that goes on behind other text."""
        return self._encode(text, begins=False)

    def _prompt(self, before: str, question: str, history: Sequence[Turn]) -> Prompt:
        turns = [*history, Turn(question, "")]
        ids = self._plain(turns[0].question) + self._open_answer
        for earlier, turn in pairwise(turns):
            ids += self._plain(earlier.answer) + self._next_question + self._plain(turn.question) + self._open_next_answer
        return Prompt(self._plain(before + _RULE), ids)


def is_korean(text: str) -> bool:
    """Whether a text has Hangul syllables."""
    return any("가" <= character <= "힣" for character in text)
