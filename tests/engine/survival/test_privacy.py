"""Nothing leaves the machine, and nothing of a document or a question is left where it doesn't belong."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from engine.home import Home
from engine.shelf import Call
from tests.engine.books import PART, chapter
from tests.engine.survival.whole import shelf_of

REPO = Path(__file__).parents[3]
CANARY = "The heron of Quillmere sold eleven violet umbrellas"
ASKED = "Which umbrellas did the Quillmere heron sell at dusk"
WORDS = ("Quillmere", "umbrellas")

JOB = """
import sys
from engine.cli import main
home, source = sys.argv[1:3]
for words in (
    ["add", source, "--part-tokens", "{part}"],
    ["list"],
    ["show", source],
    ["ask", source, "{asked}", "--max-tokens", "6"],
    ["ask", source, "{asked}", "--parts", "1,2", "--max-tokens", "4", "--json"],
    ["chats", "list"],
    ["doctor", "--deep"],
    ["gc"],
    ["paths"],
    ["remove", source, "--keep-text"],
):
    assert main(["--home", home, *words]) == 0, words
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "letters.txt"
    path.write_text(f"{chapter(1)}{CANARY}.\n\n{chapter(2)}", encoding="utf-8")
    return path


def command(home: Home, source: Path) -> list[str]:
    return [sys.executable, "-c", JOB.format(part=PART, asked=ASKED), str(home.root), str(source)]


@pytest.mark.skipif(shutil.which("strace") is None, reason="no strace")
def test_the_whole_job_opens_no_socket_to_the_internet(tiny_home: Home, source: Path, tmp_path: Path) -> None:
    log = tmp_path / "sockets"
    traced = ["strace", "-f", "-qq", "-e", "trace=%network", "-o", str(log)]
    done = subprocess.run([*traced, *command(tiny_home, source)], cwd=REPO, capture_output=True, text=True, check=False)
    if done.returncode != 0 and "ptrace" in done.stderr.lower():
        pytest.skip("may not trace processes here")
    assert done.returncode == 0, done.stderr
    calls = log.read_text(encoding="utf-8", errors="replace")
    assert "AF_UNIX" in calls  # the engine's own socket: it was watched
    assert [line for line in calls.splitlines() if re.search(r"\bAF_(?!UNIX\b)\w+|\bPF_(?!LOCAL\b|UNIX\b)\w+", line)] == []


def leaks(folder: Path, but: tuple[str, ...] = ()) -> list[str]:
    """Files under a folder that hold words of the canary, as text or as UTF-16, but those whose path begins as `but` says."""
    needles = [form for word in WORDS for form in (word.encode(), word.lower().encode(), word.encode("utf-16-le"))]
    found = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        if not name.startswith(but) and any(needle in path.read_bytes() for needle in needles):
            found.append(name)
    return found


KEPT = ("catalog.", "texts/", "chats/")
"""Where documents and chats are kept; segments hold token ids, which is no text but may be read as such where a token is a letter."""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, watched."""
    (folder := tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def test_document_and_question_are_left_in_no_log_and_no_temporary_file(tiny_home: Home, source: Path, temporary: Path) -> None:
    done = subprocess.run(command(tiny_home, source), cwd=REPO, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not any(word in done.stderr for word in WORDS)
    assert leaks(tiny_home.root, KEPT) == []
    assert leaks(temporary) == []
    assert leaks(tiny_home.root)  # or the words would not be found anywhere


FAULTS = """
import importlib, os, sys
from engine.cli import main
home, source, asked = sys.argv[1:4]
def fail(*arguments, **named):
    raise ValueError(f"a mistake about {arguments!r} {named!r} " + open(source, encoding="utf-8").read())
for module, name in (
    ("engine.reading.queue", "assign_parts"),
    ("engine.reading.memory", "remember_part"),
    (None, None),
    ("engine.answering.reader", "generate"),
    ("engine.answering.reader", "cite"),
):
    if module:
        module = importlib.import_module(module)
        whole = getattr(module, name)
        setattr(module, name, fail)
    main(["--home", home, "add", source])
    main(["--home", home, "ask", source, asked, "--max-tokens", "4"])
    main(["--home", home, "ask", asked, source])
    if module:
        setattr(module, name, whole)
sys.stderr.flush()
os.abort()
"""


def test_mistakes_of_ours_are_logged_without_what_they_were_about(tiny_home: Home, source: Path, temporary: Path) -> None:
    words = [sys.executable, "-X", "faulthandler", "-c", FAULTS, str(tiny_home.root), str(source), ASKED]
    done = subprocess.run(words, cwd=REPO, capture_output=True, text=True, check=False)
    assert done.returncode == -6
    assert "Fatal Python error" in done.stderr
    assert CANARY not in done.stderr
    log = tiny_home.log.read_text(encoding="utf-8")
    assert log.count("ValueError") >= 4
    assert leaks(tiny_home.root, KEPT) == []
    assert leaks(temporary) == []


def test_the_home_is_nobody_else_s(tiny_home: Home, source: Path) -> None:
    before = os.umask(0)
    try:
        with shelf_of(Home(tiny_home.root.with_name("open")).open()) as shelf:
            shelf.call("documents.add", {"paths": [str(source)], "read": False}, Call())
            root = shelf.home.root
    finally:
        os.umask(before)
    assert root.stat().st_mode & 0o077 == 0
    assert [path for path in (root / "texts", root / "segments", root / "models") if path.stat().st_mode & 0o077] == []
