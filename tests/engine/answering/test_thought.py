"""A thought before an answer is folded away, however its characters come."""

from __future__ import annotations

import pytest

from engine.answering.thought import Thought


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("<think>\nHe asks who.\n</think>\n\nElizabeth.", "Elizabeth."),
        ("<think></think>\n\nOne\n\ntwo", "One\n\ntwo"),
        ("\n<think>a</think> b", "b"),
        ("Elizabeth.", "Elizabeth."),
        ("<thin ice> melts", "<thin ice> melts"),
        ("<th", "<th"),
        (" x <think>y</think>", " x <think>y</think>"),
        ("<think>never closed", ""),
        ("", ""),
    ],
)
@pytest.mark.parametrize("step", [1, 3, 100])
def test_the_answer_is_what_stands_behind_the_thought(said: str, answer: str, step: int) -> None:
    thought = Thought()
    told = [thought.fold(said[at : at + step]) for at in range(0, len(said), step)]
    assert "".join(told) + thought.flush() == answer


def test_an_answer_without_a_thought_is_told_at_once() -> None:
    thought = Thought()
    assert [thought.fold(piece) for piece in ("Eli", "za", " beth")] == ["Eli", "za", " beth"]
