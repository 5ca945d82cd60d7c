"""Source code of any language: its top-level definitions as sections.

Python is parsed. Other languages go by rules for single lines that hold across them: a definition starts a line, with a word such as
class, func or CREATE TABLE, or it is a C-like function whose body opens. Types may be indented (inside a namespace); functions may not.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from pathlib import PurePath

from engine.documents.document import Span
from engine.documents.sections import Heading, nest

PARSED = 2 * 1024 * 1024
"""Code points of the largest Python file that is parsed."""

_PYTHON = {".py", ".pyi", ".pyw"}
_MARKS = {  # languages whose headings are their own, with the level in the length of the mark
    ".org": re.compile(r"^(\*{1,6})[ \t]+(.+)$", re.MULTILINE),
    ".adoc": re.compile(r"^(={1,6})[ \t]+(.+)$", re.MULTILINE),
    ".asciidoc": re.compile(r"^(={1,6})[ \t]+(.+)$", re.MULTILINE),
}
_TABLES = re.compile(r"^\[{1,2}([^\[\]\n]{1,120})\]{1,2}[ \t]*(?:[#;].*)?$", re.MULTILINE)
_TABLED = {".toml", ".ini", ".cfg", ".conf", ".service", ".editorconfig", ".gitconfig", ".desktop"}
_TEX = re.compile(r"^[ \t]*\\(part|chapter|section|subsection|subsubsection)\*?(?:\[[^\]\n]*\])?\{([^{}\n]+)", re.MULTILINE)
_TEX_LEVELS = {"part": 1, "chapter": 2, "section": 3, "subsection": 4, "subsubsection": 5}
_UNSTRUCTURED = {".json", ".jsonl", ".ndjson", ".geojson", ".ipynb", ".svg", ".xml", ".html", ".htm", ".css", ".lock", ".yaml", ".yml"}

_BEFORE = (
    "export|default|declare|pub(?:\\([^()\n]*\\))?|public|private|protected|internal|static|final|abstract|async|unsafe|extern|inline|virtual|"
    "sealed|partial|open|data|override|const|constexpr|local|case|template\\s*<[^<>\n]*>"
)
_TYPES = (
    "class|interface|struct|enum(?:[ \t]+class)?|trait|impl(?:<[^<>\n]*>)?|union|namespace|module|record|object|protocol|extension|type|"
    "contract|message|service|defmodule|mod"
)
_FUNCTIONS = r"func(?:[ \t]*\([^()\n]*\))?|function\*?|fn|fun|def|defp|defmacro|sub|subroutine|procedure|proc|macro|macro_rules!|task"
_WORDED = re.compile(
    rf"^(?P<indent>[ \t]{{0,8}})(?P<before>(?:(?:{_BEFORE})[ \t]+)*)"
    rf"(?P<what>(?P<kind>{_TYPES}|{_FUNCTIONS})[ \t]+(?P<name>[^\s(){{}}\[\];:,=<>\"'`]{{1,120}}))(?P<rest>[^\n]*)$",
    re.MULTILINE,
)
_TYPE = re.compile(_TYPES)
_ASSIGNED = re.compile(
    r"^(?:export[ \t]+)?(?:default[ \t]+)?(?:const|let|var)[ \t]+([\w$]{1,120})[^=\n]{0,200}=[ \t]*(?:async[ \t]*)?"
    r"(?:function\b|\([^()\n]*\)[^=\n]{0,80}=>|[\w$]+[ \t]*=>)",
    re.MULTILINE,
)
_CALL_OR_BODY = re.compile(r"^[A-Za-z_][^\n(;={}#\"']{0,200}\(", re.MULTILINE)
_NAME = re.compile(r"[\w~:]+$")
_NO_DEFINITION = {
    *("if", "for", "while", "switch", "return", "else", "do", "elif", "with", "try", "catch", "case", "throw", "new", "delete", "goto"),
    *("typedef", "using", "sizeof", "print", "func", "fn", "fun", "function", "def"),
}
_SQL = re.compile(
    r"^CREATE[ \t]+(?:OR[ \t]+REPLACE[ \t]+)?(?:TEMP(?:ORARY)?[ \t]+|UNIQUE[ \t]+|VIRTUAL[ \t]+|MATERIALIZED[ \t]+)?"
    r"(?:TABLE|VIEW|FUNCTION|PROCEDURE|TRIGGER|INDEX|TYPE)[ \t]+(?:IF[ \t]+NOT[ \t]+EXISTS[ \t]+)?[^\s(;]{1,120}",
    re.MULTILINE | re.IGNORECASE,
)
_LISP = re.compile(r"^\((def[\w-]*|define[\w-]*)[ \t]+\(?([^\s()]{1,120})", re.MULTILINE)


def read_spans(text: str, name: str) -> list[Span]:
    """Section spans of a source file; `name` tells the language."""
    return nest(headings(text, name), len(text))


def headings(text: str, name: str) -> list[Heading]:
    """Definitions in order, labelled as they are written: `class JSONDecoder`, `def loads`, `func (s *Server) Run`."""
    suffix = PurePath(name).suffix.lower()
    if suffix in _PYTHON or (text.startswith("#!") and "python" in text.partition("\n")[0]):
        found = _python(text)
        return found if found is not None else _by_lines(text)
    if mark := _MARKS.get(suffix):
        return [Heading(len(match[1]), match[2], match.start()) for match in mark.finditer(text)]
    if suffix in _TABLED:
        return [Heading(1, f"[{match[1]}]", match.start()) for match in _TABLES.finditer(text)]
    if suffix == ".tex":
        return [Heading(_TEX_LEVELS[match[1]], match[2], match.start()) for match in _TEX.finditer(text)]
    return [] if suffix in _UNSTRUCTURED else _by_lines(text)


def _python(text: str) -> list[Heading] | None:
    """By Python's own parser; None if this is no Python that it knows. Nothing is run."""
    if len(text) > PARSED:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the person's code, such as invalid escapes
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    starts = [0, *(match.end() for match in re.finditer("\n", text)), len(text)]
    found: list[Heading] = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            word = {ast.ClassDef: "class", ast.FunctionDef: "def", ast.AsyncFunctionDef: "async def"}[type(node)]
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            found.append(Heading(1, f"{word} {node.name}", starts[first - 1], starts[node.end_lineno or node.lineno]))
    return found


def _by_lines(text: str) -> list[Heading]:
    found = {heading.start: heading for heading in _c_like(text)}
    for match in _WORDED.finditer(text):
        is_type = bool(_TYPE.fullmatch(match["kind"]))
        indent = len(match["indent"].expandtabs(4))
        # A declaration ends in a semicolon; an indented function is a method; `type x` in prose has no body.
        if (indent and not is_type) or match["rest"].rstrip().endswith((";", ",", ".")):
            continue
        found[match.start()] = Heading(1 + indent, match["what"], match.start())
    for match in _ASSIGNED.finditer(text):
        found.setdefault(match.start(), Heading(1, f"function {match[1]}", match.start()))
    for match in _SQL.finditer(text):
        found[match.start()] = Heading(1, match[0], match.start())
    for match in _LISP.finditer(text):
        found[match.start()] = Heading(1, f"({match[1]} {match[2]}", match.start())
    return [found[start] for start in sorted(found)]


def _c_like(text: str) -> Iterator[Heading]:
    """Functions of C and its kin: at the start of a line a name with arguments, whose brackets close before a body opens."""
    for match in _CALL_OR_BODY.finditer(text):
        before = match[0][:-1].rstrip()
        name = _NAME.search(before)
        if not name or before.split(None, 1)[0] in _NO_DEFINITION:
            continue
        after = text[match.end() : match.end() + 1000]
        arguments, brace, _ = after.partition("{")
        if brace and ";" not in arguments and arguments.count(")") == arguments.count("(") + 1 and "=" not in arguments.rpartition(")")[2]:
            yield Heading(1, f"{name[0]}()", match.start())
