"""The tasks by name, and making a problem of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.errors import LongshelfError
from engine.evaluation.tasks import counting, needles, relations, variables
from engine.evaluation.tasks.problem import Encode, Problem, Wanted


@dataclass(frozen=True)
class Task:
    """level: what a problem has unless another is asked for; levels: the highest. haystack: its text is made of given documents."""

    make: Callable[[Wanted], Problem]
    level: int
    levels: int
    language: str = "en"
    haystack: bool = False


TASKS: dict[str, Task] = {
    "needle": Task(needles.needle, 1, 1, "en", haystack=True),
    "needle_ko": Task(needles.needle, 1, 1, "ko", haystack=True),
    "needle_keys": Task(needles.needle_keys, 32, 1024, "en", haystack=True),
    "needle_keys_ko": Task(needles.needle_keys, 32, 1024, "ko", haystack=True),
    "needle_values": Task(needles.needle_values, 4, 64, "en", haystack=True),
    "needle_values_ko": Task(needles.needle_values, 4, 64, "ko", haystack=True),
    "needle_queries": Task(needles.needle_queries, 4, 64, "en", haystack=True),
    "needle_queries_ko": Task(needles.needle_queries, 4, 64, "ko", haystack=True),
    "variables": Task(variables.variables, 4, 32, "en", haystack=True),
    "variables_ko": Task(variables.variables, 4, 32, "ko", haystack=True),
    "common_words": Task(counting.common_words, 5, 20),
    "frequent_words": Task(counting.frequent_words, 3, 6),
    "relations": Task(relations.relations, 4, 64),
}


def problem(name: str, tokens: int, seed: int, encode: Encode, haystack: Sequence[str] = (), level: int | None = None) -> Problem:
    """A problem of the task `name` whose text has exactly `tokens` tokens; the same arguments give the same problem anywhere.

    encode: as documents are encoded. haystack: texts for the tasks that hide something among sentences. Raises LongshelfError("usage")
    for an unknown task or level, too few tokens for it, or a haystack with no sentence that can be used.
    """
    task = TASKS.get(name)
    if task is None:
        raise LongshelfError("usage", f'There is no task "{name}".', f"Tasks: {', '.join(TASKS)}.")
    level = task.level if level is None else level
    if not 1 <= level <= task.levels:
        raise LongshelfError("usage", f'"{name}" has no level {level}.', f"Choose a level from 1 to {task.levels}.")
    return task.make(Wanted(name, task.language, level, tokens, seed, encode, haystack))
