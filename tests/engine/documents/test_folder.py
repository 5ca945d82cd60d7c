"""A folder as one document: what is taken, what is left out and why, and where things are in it."""

from __future__ import annotations

import asyncio
import email
import json
import os
import shutil
import subprocess
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.documents import folder, git, walk
from engine.documents.document import Document
from engine.documents.reader import read
from engine.errors import LongshelfError, Stopped

CP949 = "// 초기화 함수를 부른다. 이것은 주석입니다.\nint main() {\n}\n".encode("cp949")


def fill(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


def taken(document: Document) -> list[str]:
    return [span.label for span in document.spans if span.kind == "file"]


def skipped(document: Document) -> dict[str, str]:
    return {each.path: each.reason for each in document.skipped}


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty git repository, with no settings of this machine's user."""
    if not shutil.which("git"):
        pytest.skip("no git")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    root = tmp_path / "repo"
    root.mkdir()
    subprocess.run(["git", "init", "-q", root], check=True)
    return root


@pytest.fixture
def no_git(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git, "is_checkout", lambda *_: False)


def test_the_standard_library_packages_read_as_one_folder(tmp_path: Path) -> None:
    for package in (json, asyncio, email):
        source = Path(package.__path__[0])
        shutil.copytree(source, tmp_path / "lib" / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    document = read(tmp_path / "lib")
    files = [span for span in document.spans if span.kind == "file"]
    assert [span.label for span in files] == sorted(span.label for span in files)
    assert {"json/decoder.py", "asyncio/events.py", "email/message.py"} <= {span.label for span in files}
    for span in files:
        assert document.text[span.start : span.end] == (tmp_path / "lib" / span.label).read_text(encoding="utf-8")
        assert document.text[: span.start].endswith(f"=== {span.label} ===\n")
    place = document.place(document.text.index('"""Simple JSON <https://json.org> decoder'))
    lines = (tmp_path / "lib/json/decoder.py").read_text(encoding="utf-8").split("\n")
    assert (place.file, place.section) == ("json/decoder.py", "json/decoder.py · class JSONDecoder")
    assert "Simple JSON <https://json.org> decoder" in lines[(place.line or 0) - 1]
    assert (document.title, document.format, document.encoding) == ("lib", "folder", None)


def test_files_stand_in_order_each_behind_its_name_with_a_blank_line_after(tmp_path: Path) -> None:
    document = read(fill(tmp_path / "p", {"b.txt": "two\n", "a/x.md": "# One"}))
    assert document.text == "=== a/x.md ===\n# One\n\n=== b.txt ===\ntwo\n\n"
    assert taken(document) == ["a/x.md", "b.txt"]


def test_what_is_no_text_or_no_use_is_skipped_with_its_reason(tmp_path: Path) -> None:
    root = fill(
        tmp_path / "p",
        {
            "main.c": CP949,
            "logo.PNG": b"\x89PNG\r\n",
            "blob.dat": bytes(range(256)) * 8,
            "empty.py": "",
            "blank.py": "\n\n",
            "big.csv": "a,b\n" * 600_000,
            "package-lock.json": "{}",
            "node_modules/x/index.js": "x",
            "__pycache__/a.pyc": b"\0",
            ".git/config": "[core]",
            "env/pyvenv.cfg": "home = /usr",
            "home/CACHEDIR.TAG": "Signature: 8a477f597d28d172789f06886806bc55\n",
        },
    )
    (root / "loop").symlink_to(root)
    (root / "passwd").symlink_to("/etc/passwd")
    os.mkfifo(root / "pipe")
    document = read(root)
    assert taken(document) == ["main.c"]
    assert skipped(document) == {
        "logo.PNG": "binary",
        "blob.dat": "binary",
        "empty.py": "empty",
        "blank.py": "empty",
        "big.csv": "too_large",
        "package-lock.json": "ignored",
        "node_modules/": "ignored",
        "__pycache__/": "ignored",
        ".git/": "ignored",
        "env/": "ignored",
        "home/": "ignored",
        "loop": "link",
        "passwd": "link",
        "pipe": "special",
    }
    assert "초기화 함수" in document.text


def test_secrets_are_left_out_and_said_so(tmp_path: Path) -> None:
    secrets = [".env", ".env.local", "id_rsa", "server.PEM", "credentials.json", ".npmrc", "deploy.key", "secrets.yml"]
    plain = [".env.example", "id_rsa.pub", "credentials.py", "secrets.py"]
    root = fill(tmp_path / "p", {name: f"content of {name}\n" for name in [*secrets, *plain]})
    fill(root, {".ssh/config": "Host x", "key.txt": "-----BEGIN RSA PRIVATE KEY-----\nMII\n"})
    document = read(root)
    assert taken(document) == sorted(plain)
    assert skipped(document) == dict.fromkeys([*secrets, ".ssh/", "key.txt"], "secret")


@pytest.mark.usefixtures("no_git")
def test_ignore_files_hold_below_them_and_the_innermost_decides(tmp_path: Path) -> None:
    root = fill(
        tmp_path / "p",
        {
            ".gitignore": b"# \xb0\xa1 comment\n*.log\n/build/\nout/\n!keep.log\n",
            "a.log": "x",
            "keep.log": "x",
            "build/b.txt": "x",
            "sub/.gitignore": "!c.log\n/d.txt\n",
            "sub/c.log": "x",
            "sub/d.txt": "x",
            "sub/build/e.txt": "x",
            "out/.gitignore": "!f.txt\n",
            "out/f.txt": "x",
            "한글/글.txt": "x",
        },
    )
    document = read(root)
    assert taken(document) == [".gitignore", "keep.log", "sub/.gitignore", "sub/build/e.txt", "sub/c.log", "한글/글.txt"]
    assert skipped(document) == {"a.log": "ignored", "build/": "ignored", "out/": "ignored", "sub/d.txt": "ignored"}


def test_a_checkout_gives_what_git_tracks_or_would_add(checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(
        checkout,
        {".gitignore": "*.log\ndist/\n", "a.py": "x", "forced.log": "x", "b.log": "x", "dist/c.js": "x", "new.txt": "x", "mine.tmp": "x"},
    )
    fill(tmp_path, {"excludes": "*.tmp\n", "gitconfig": f"[core]\n\texcludesFile = {tmp_path}/excludes\n"})
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    subprocess.run(["git", "-C", checkout, "add", "-f", "a.py", "forced.log"], check=True)
    fill(checkout, {"gone.py": "x"})
    subprocess.run(["git", "-C", checkout, "add", "gone.py"], check=True)
    (checkout / "gone.py").unlink()
    document = read(checkout)
    assert taken(document) == [".gitignore", "a.py", "forced.log", "new.txt"]
    assert skipped(document) == {"b.log": "ignored", "dist/": "ignored", "mine.tmp": "ignored"}


def test_a_folder_inside_a_checkout_follows_the_ignore_file_above(checkout: Path) -> None:
    fill(checkout, {".gitignore": "*.log\n", "sub/a.py": "x", "sub/b.log": "x"})
    assert taken(read(checkout / "sub")) == ["a.py"]


def test_a_folder_that_its_checkout_ignores_is_read_all_the_same(checkout: Path) -> None:
    fill(checkout, {".gitignore": "notes/\n", "notes/a.txt": "x"})
    assert taken(read(checkout / "notes")) == ["a.txt"]


def test_always_skipped_folders_are_skipped_even_if_tracked(checkout: Path) -> None:
    fill(checkout, {"node_modules/x.js": "x", "a.js": "x"})
    subprocess.run(["git", "-C", checkout, "add", "-A"], check=True)
    document = read(checkout)
    assert (taken(document), skipped(document)) == (["a.js"], {"node_modules/": "ignored"})


def test_a_repository_inside_a_checkout_is_read_by_its_own_rules(checkout: Path) -> None:
    fill(checkout, {"a.py": "x", "vendor/lib/b.py": "x", "vendor/lib/c.o.txt": "x", "vendor/lib/.gitignore": "c*\n"})
    subprocess.run(["git", "init", "-q", checkout / "vendor/lib"], check=True)
    assert taken(read(checkout)) == ["a.py", "vendor/lib/.gitignore", "vendor/lib/b.py"]


def test_a_submodule_that_was_not_fetched_is_empty(checkout: Path) -> None:
    fill(checkout, {"a.py": "x"})
    (checkout / "sub").mkdir()
    entry = f"160000,{'1' * 40},sub"
    subprocess.run(["git", "-C", checkout, "update-index", "--add", "--cacheinfo", entry], check=True)
    assert taken(read(checkout)) == ["a.py"]


def test_a_setting_that_would_run_a_program_is_not_followed(checkout: Path, tmp_path: Path) -> None:
    fill(checkout, {"a.py": "x"})
    hook = tmp_path / "hook"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    subprocess.run(["git", "-C", checkout, "config", "core.fsmonitor", hook], check=True)
    assert taken(read(checkout)) == ["a.py"]
    assert not (tmp_path / "ran").exists()


def test_a_tracked_folder_replaced_by_a_link_is_not_followed(checkout: Path, tmp_path: Path) -> None:
    fill(checkout, {"a.py": "x", "d/b.py": "x"})
    subprocess.run(["git", "-C", checkout, "add", "-A"], check=True)
    fill(tmp_path / "outside", {"b.py": "private"})
    shutil.rmtree(checkout / "d")
    (checkout / "d").symlink_to(tmp_path / "outside")
    document = read(checkout)
    assert "private" not in document.text
    assert (taken(document), set(skipped(document).values())) == (["a.py"], {"link"})


def test_a_checkout_without_git_is_read_by_its_ignore_files(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(checkout, {".gitignore": "*.log\n", "a.py": "x", "b.log": "x"})
    monkeypatch.setenv("PATH", "")
    assert taken(read(checkout)) == [".gitignore", "a.py"]


def test_an_unreadable_folder_is_an_error_and_one_inside_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = fill(tmp_path / "p", {"a.py": "x", "locked/b.py": "x"})
    deny_scandir(monkeypatch, "locked")
    assert skipped(read(root)) == {"locked/": "unreadable"}
    with pytest.raises(LongshelfError) as caught:
        read(root / "locked")
    assert caught.value.kind == "unreadable"


def deny_scandir(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    real: Callable[..., object] = os.scandir

    def scandir(path: str | Path) -> object:
        if Path(path).name == name:
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(walk.os, "scandir", scandir)


@pytest.mark.parametrize(("files", "words"), [({}, "is empty"), ({"a.png": b"\x89PNG", ".env": "x"}, "binary, secret")])
def test_a_folder_with_nothing_to_take_says_why(tmp_path: Path, files: dict[str, str | bytes], words: str) -> None:
    root = tmp_path / "p"
    root.mkdir()
    with pytest.raises(LongshelfError, match=words) as caught:
        read(fill(root, files))
    assert caught.value.kind == "no_text"


def test_a_name_with_a_line_break_or_bad_bytes_stays_in_its_line(tmp_path: Path) -> None:
    root = fill(tmp_path / "p", {"a\n=== x.py ===.txt": "one\n"})
    (root / os.fsdecode(b"caf\xe9.txt")).write_text("two\n")
    document = read(root)
    assert taken(document) == ["a\\n=== x.py ===.txt", "caf\\xe9.txt"]
    assert document.as_json()["text"].encode("utf-8").count(b"\n=== ") == 1


def test_names_are_composed_and_a_twin_of_the_same_content_is_told(tmp_path: Path) -> None:
    name = "민법.txt"
    root = fill(tmp_path / "p", {name: "같은 글", unicodedata.normalize("NFD", name): "같은 글"})
    if len(list(root.iterdir())) < 2:
        pytest.skip("this file system composes names")
    document = read(root)
    assert (taken(document), skipped(document)) == ([name], {name: "duplicate"})


def test_an_asked_encoding_is_for_the_files_that_are_not_utf8(tmp_path: Path) -> None:
    root = fill(tmp_path / "p", {"a.txt": "한글", "b.txt": "ÇÑ±Û".encode("latin-1")})
    assert read(root, encoding="latin-1").text == "=== a.txt ===\n한글\n\n=== b.txt ===\nÇÑ±Û\n\n"
    with pytest.raises(LongshelfError, match="klingon"):
        read(root, encoding="klingon")


def test_the_digest_depends_on_names_and_contents_of_what_was_taken(tmp_path: Path) -> None:
    def digest(files: dict[str, str | bytes]) -> str:
        shutil.rmtree(tmp_path / "p", ignore_errors=True)
        return read(fill(tmp_path / "p", files)).source_digest

    first = digest({"a.py": "x"})
    assert first == digest({"a.py": "x", "b.png": b"\x89PNG"})
    assert len({first, digest({"a.py": "y"}), digest({"b.py": "x"})}) == 3


def test_too_many_files_or_too_much_text_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = fill(tmp_path / "p", {f"{n}.txt": "text" for n in range(4)})
    monkeypatch.setattr(walk, "FILE_COUNT_LIMIT", 3)
    with pytest.raises(LongshelfError, match="more than 3 files") as caught:
        read(root)
    assert caught.value.kind == "too_large"
    monkeypatch.undo()
    monkeypatch.setattr(folder, "TEXT_LIMIT", 15)
    with pytest.raises(LongshelfError, match="of text") as caught:
        read(root)
    assert caught.value.kind == "too_large"


def test_progress_counts_files_and_stop_ends_the_walk(tmp_path: Path) -> None:
    root = fill(tmp_path / "p", {"a.txt": "x", "b.txt": "x"})
    seen: list[tuple[str, int, int]] = []
    read(root, progress=lambda *step: seen.append(step))
    assert seen == [("a.txt", 0, 2), ("b.txt", 1, 2), ("p", 2, 2)]
    with pytest.raises(Stopped):
        read(root, stop=lambda: True)
    with pytest.raises(Stopped):
        read(root, stop=lambda: len(seen) > 3, progress=lambda *step: seen.append(step))
