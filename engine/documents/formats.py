"""Which reader a file belongs to: plain text, Markdown or source code. Told by its name, then by its first line."""

from __future__ import annotations

import re
from functools import cache
from pathlib import PurePath

TEXT, MARKDOWN, CODE, FOLDER = "text", "markdown", "code", "folder"

_MARKDOWN = {".md", ".markdown", ".mdown", ".mkdn", ".mkd", ".mdx", ".qmd", ".rmd"}
_PROSE = {"", ".txt", ".text", ".rst", ".rest", ".log", ".csv", ".tsv", ".tab", ".srt", ".vtt", ".eml", ".nfo", ".me", ".1st"}
_CODE = {".jsonl", ".ndjson", ".ipynb", ".geojson", ".lock", ".env", ".example"}


def format_of(name: str, text: str) -> str:
    """TEXT, MARKDOWN or CODE. Names are compared without regard to case; a file of no known kind is plain text."""
    suffix = PurePath(name).suffix.lower()
    if suffix in _MARKDOWN:
        return MARKDOWN
    if PurePath(name).name in _code_names():
        return CODE
    if suffix in _PROSE:
        return CODE if text.startswith("#!") and not suffix else TEXT
    return CODE if suffix in _CODE or suffix in _code_suffixes() or text.startswith("#!") else TEXT


@cache
def _code_globs() -> tuple[str, ...]:
    from pygments.lexers import get_all_lexers  # type: ignore[import-untyped]  # late: not needed until a file is read

    return tuple(glob for _, _, globs, _ in get_all_lexers(plugins=False) for glob in globs)


@cache
def _code_suffixes() -> frozenset[str]:
    """Suffixes of the several hundred languages Pygments knows, lower case."""
    return frozenset(glob[1:].lower() for glob in _code_globs() if re.fullmatch(r"\*\.[\w+#-]+", glob)) - _PROSE - _MARKDOWN


@cache
def _code_names() -> frozenset[str]:
    """Whole names such as Makefile or CMakeLists.txt."""
    return frozenset(glob for glob in _code_globs() if "*" not in glob and "[" not in glob) - {"todo.txt"}
