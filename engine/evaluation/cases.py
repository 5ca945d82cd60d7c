"""What fidelity is measured on: questions of a corpus's documents, and problems whose answers are known exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path

from engine.answering.prompt import Prompts
from engine.errors import LongshelfError
from engine.evaluation import corpus
from engine.evaluation.corpus import CorpusFile
from engine.evaluation.tasks.registry import TASKS, problem
from engine.model.loaded import LoadedModel

DOCUMENT = "document"


@dataclass(frozen=True)
class Case:
    """kind: DOCUMENT or the name of a task. text: ids of it; prompt: ids behind it, up to where the answer starts; gold: ids of the
    right answer."""

    kind: str
    source: str
    language: str
    seed: int
    text: list[int]
    prompt: list[int]
    gold: list[int]


def load(folder: Path, model: LoadedModel, tokens: int, documents: int, tasks: Mapping[str, Sequence[int]]) -> list[Case]:
    """Cases with texts of at most `tokens` tokens: the first questions of so many documents, languages in turn, and of each task a
    problem for each of its seeds.

    The problems' haystacks are the corpus's documents of their language. Raises LongshelfError as `corpus.load` and `problem` do, and
    ("unreadable") for a corpus none of whose questions can be asked.
    """
    encode, prompts = model.tokenizer.encode_ids, Prompts(model.card, model.tokenizer)
    files, _ = corpus.load(folder, model.tokenizer, tokens)
    if not files:
        raise LongshelfError("unreadable", f"No question of {folder} can be asked.")

    def case(kind: str, source: str, language: str, seed: int, text: str, question: str, gold: str) -> Case:
        prompt = prompts.after_document(question, (), model.config.window)
        return Case(kind, source, language, seed, encode(text)[:tokens], prompt.opening + prompt.asking, encode(gold))

    made = []
    for file in _in_turn(files)[:documents]:
        first = file.questions[0]
        made.append(case(DOCUMENT, file.name, first.language, 0, file.text, first.question, first.answer))
    for name, seeds in tasks.items():
        language = TASKS[name].language
        haystack = [file.text for file in files if file.questions[0].language == language] or [file.text for file in files]
        for seed in seeds:
            posed = problem(name, tokens, seed, encode, haystack)
            made.append(case(name, f"{name} {seed}", language, seed, posed.text, posed.question, posed.gold))
    return made


def _in_turn(files: Sequence[CorpusFile]) -> list[CorpusFile]:
    """One file of each that ask the same, of every language in turn."""
    by_language: dict[str, dict[str, CorpusFile]] = {}
    for file in files:
        by_language.setdefault(file.questions[0].language, {}).setdefault(file.questions[0].question, file)
    turns = zip_longest(*(list(of.values()) for of in by_language.values()))
    return [file for file in chain.from_iterable(turns) if file is not None]
