"""Bring the .ts files up to date with the code: `python -m resources.translations`.

New sentences come in as unfinished, those that are gone from the code go out, translations are kept. Contexts are Qt's: the class for
`self.tr(…)`, the first argument for `translate(…)`. (Qt's own lupdate loses the class after some calls in Python.)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

ROOT = Path(__file__).parent.parent.parent
LANGUAGES = ("en", "ko")


class Sentence(NamedTuple):
    context: str
    source: str
    plural: bool


def sentences() -> list[Sentence]:
    """Every sentence of the window, in a stable order."""
    found = {sentence for file in (ROOT / "app").rglob("*.py") for sentence in _in(ast.parse(file.read_text(encoding="utf-8")), "")}
    return sorted(found)


def known(language: str) -> dict[tuple[str, str], list[str]]:
    """What is translated already: (context, source) → its forms."""
    result: dict[tuple[str, str], list[str]] = {}
    file = path(language)
    if file.exists():
        for context in ElementTree.parse(file).getroot().iter("context"):
            for message in context.iter("message"):
                translation = message.find("translation")
                if translation is not None and translation.get("type") != "unfinished":
                    forms = [form.text or "" for form in translation.iter("numerusform")] or [translation.text or ""]
                    result[context.findtext("name", ""), message.findtext("source", "")] = forms
    return result


def path(language: str) -> Path:
    return Path(__file__).parent / f"longshelf_{language}.ts"


def update(language: str) -> int:
    """Write the file of a language anew; returns how many sentences are unfinished. English has only the plurals."""
    translated = known(language)
    root = ElementTree.Element("TS", version="2.1", language=language, sourcelanguage="en")
    contexts: dict[str, ElementTree.Element] = {}
    unfinished = 0
    for sentence in sentences():
        if language == "en" and not sentence.plural:
            continue
        if sentence.context not in contexts:
            contexts[sentence.context] = ElementTree.SubElement(root, "context")
            ElementTree.SubElement(contexts[sentence.context], "name").text = sentence.context
        message = ElementTree.SubElement(contexts[sentence.context], "message", {"numerus": "yes"} if sentence.plural else {})
        ElementTree.SubElement(message, "source").text = sentence.source
        forms = translated.get((sentence.context, sentence.source))
        translation = ElementTree.SubElement(message, "translation", {} if forms else {"type": "unfinished"})
        unfinished += forms is None
        if sentence.plural:
            for form in forms or [""] * (2 if language == "en" else 1):
                ElementTree.SubElement(translation, "numerusform").text = form
        elif forms:
            translation.text = forms[0]
    ElementTree.indent(root, "  ")
    text = ElementTree.tostring(root, encoding="unicode")
    path(language).write_text(f'<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE TS>\n{text}\n', encoding="utf-8")
    return unfinished


def _in(node: ast.AST, context: str) -> Iterator[Sentence]:
    if isinstance(node, ast.ClassDef):
        context = node.name
    if isinstance(node, ast.Call):
        texts = [argument.value for argument in node.args if isinstance(argument, ast.Constant) and isinstance(argument.value, str)]
        name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id if isinstance(node.func, ast.Name) else ""
        if name == "tr" and isinstance(node.func, ast.Attribute) and texts:
            yield Sentence(context, texts[0], len(node.args) == 3)
        elif name in ("translate", "_translate", "tr") and len(texts) >= 2:
            yield Sentence(texts[0], texts[1], len(node.args) == 4)
    for child in ast.iter_child_nodes(node):
        yield from _in(child, context)


if __name__ == "__main__":
    for language in LANGUAGES:
        print(f"{path(language).name}: {update(language)} unfinished")
