"""Definitions in source code, by parser for Python and by rules for the rest."""

from __future__ import annotations

import pytest

from engine.documents import code
from engine.documents.formats import format_of


def labels(text: str, name: str) -> list[str]:
    return [span.label for span in code.read_spans(text, name)]


def test_python_sections_start_at_the_decorator_and_end_with_the_body() -> None:
    text = "import x\n\n@cache\ndef f():\n    return '''\ndef no(): pass\n'''\n\nX = 1\n\n\n"
    text += "class A(B):\n    def m(self): ...\n\nasync def g(): ...\n"
    found = code.read_spans(text, "a.py")
    assert [span.label for span in found] == ["def f", "class A", "async def g"]
    assert text[found[0].start : found[0].end] == "@cache\ndef f():\n    return '''\ndef no(): pass\n'''\n"


def test_python_that_does_not_parse_goes_by_lines() -> None:
    assert labels("def f(x):\n    print 'hi'\n\nclass B:\n    pass\n", "old.py") == ["def f", "class B"]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.go", "type Server struct {\n}\n\nfunc (s *Server) Run() {\n}\n", ["type Server", "func (s *Server) Run"]),
        (
            "a.rs",
            "pub struct P<T> {}\nimpl<T> P<T> {\n    pub fn new() {}\n}\npub(crate) fn go() {\n}\n",
            ["struct P", "impl<T> P", "fn go"],
        ),
        ("a.ts", "export default class App {\n  render() {\n  }\n}\nexport const f = (a) => {\n};\n", ["class App", "function f"]),
        ("a.cs", "namespace N {\n    public class Foo {\n        int Baz() {}\n    }\n}\n", ["namespace N", "class Foo"]),
        (
            "a.c",
            "static int helper(int);\nstruct bar {\n};\nint\nmain(int argc,\n     char **argv)\n{\n  if (x) {\n  }\n}\n",
            ["struct bar", "main()"],
        ),
        ("a.rb", "module Foo\n  class Bar\n    def baz\n    end\n  end\nend\n", ["module Foo", "class Bar"]),
        ("a.sql", "CREATE TABLE IF NOT EXISTS foo (\n x int\n);\n", ["CREATE TABLE IF NOT EXISTS foo"]),
        ("a.sh", "foo() {\n echo\n}\nfunction bar {\n}\n", ["foo()", "function bar"]),
        ("a.scm", "(define (bar y)\n y)\n", ["(define bar"]),
        ("a.toml", "[project]\nname = 1\n[[tool.x]]\n", ["[project]", "[tool.x]"]),
        ("a.tex", "\\section{One}\ntext\n\\subsection*{Two}\n", ["One", "Two"]),
        ("a.json", '{"class Foo": 1}\n', []),
    ],
)
def test_definitions_of_other_languages_are_found(name: str, text: str, expected: list[str]) -> None:
    assert labels(text, name) == expected


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("a.PY", "x", "code"),
        ("Makefile", "all:\n", "code"),
        ("CMakeLists.txt", "project(x)\n", "code"),
        ("run", "#!/bin/sh\n", "code"),
        ("requirements.txt", "x\n", "text"),
        ("NOTES", "x\n", "text"),
        ("chapter.draft", "x\n", "text"),
        ("README.MD", "x\n", "markdown"),
        ("a.zig", "x\n", "code"),
    ],
)
def test_a_name_tells_the_format(name: str, text: str, kind: str) -> None:
    assert format_of(name, text) == kind
