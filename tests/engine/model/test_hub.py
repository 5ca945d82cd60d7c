"""Fetching from a Hugging Face Hub, on a server of this machine that speaks the few requests it takes."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from engine.cli import main
from engine.errors import LongshelfError, Stopped
from engine.home import Home
from engine.model import hub
from engine.model.install import fetch, install_model
from engine.model.installed import Models
from tests.engine.model import tiny_folder

COMMIT = "c" * 40


class Server(ThreadingHTTPServer):
    """Has one model, "org/Tiny". asked: the files that were asked for, with the byte at which each answer began."""

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.folder = folder
        self.asked: list[tuple[str, int]] = []
        self.status = 200


class Answer(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *words: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if self.server.status != 200:
            gated = {"X-Error-Code": "GatedRepo"} if self.server.status == 403 else {}
            self._send(self.server.status, b"", gated)
        elif re.fullmatch(r"/api/models/org/Tiny(/revision/.*)?", path):
            files = [{"rfilename": file.name, "size": file.stat().st_size} for file in sorted(self.server.folder.iterdir())]
            self._send(200, json.dumps({"id": "org/Tiny", "sha": COMMIT, "siblings": files}).encode(), {})
        elif found := re.fullmatch(rf"/org/Tiny/resolve/{COMMIT}/(.+)", path):
            self._send_file(self.server.folder / found[1])
        else:
            self._send(404, b"", {"X-Error-Code": "RepoNotFound"})

    def _send_file(self, file: Path) -> None:
        content = file.read_bytes()
        start = int(re.sub(r"\D", "", self.headers.get("Range", "0").partition("-")[0]) or 0)
        if self.command == "GET":
            self.server.asked.append((file.name, start))
        headers = {"ETag": f'"{hashlib.sha256(content).hexdigest()}"', "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"}
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        self._send(206 if start else 200, content[start:], headers)

    def _send(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    folder = tiny_folder.write(tmp_path / "there", "Qwen3")
    (folder / "pytorch_model.bin").write_bytes(b"pickle")
    (folder / "modeling_tiny.py").write_text("raise SystemExit")
    (folder / "LICENSE").write_text("MIT")
    serving = Server(folder)
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{serving.server_port}")
    thread = threading.Thread(target=serving.serve_forever, args=(0.01,))
    thread.start()
    yield serving
    serving.shutdown()
    thread.join()
    serving.server_close()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home").open()


def test_a_model_is_downloaded_and_installed_without_pickles_or_code(server: Server, home: Home) -> None:
    seen: dict[str, tuple[int, int]] = {}
    name = fetch(home, "org/Tiny", lambda stage, done, total: seen.__setitem__(stage, (done, total)))
    model = Models(home).open(name)
    assert (name, model.card.family, model.card.source) == ("tiny", "qwen3", f"Hugging Face org/Tiny {COMMIT[:12]}")
    assert {file for file, _ in server.asked}.isdisjoint({"pytorch_model.bin", "modeling_tiny.py"})
    assert list(seen) == ["download", "tokenizer", "convert", "done"]
    assert all(done == total > 0 for done, total in seen.values())
    assert (model.folder / "LICENSE").read_text() == "MIT"
    assert not list((home.cache / "downloads").iterdir())
    asked = len(server.asked)
    assert fetch(home, "org/Tiny") == "tiny"  # installed: nothing is asked for again
    assert len(server.asked) == asked


def test_a_download_that_was_stopped_goes_on_with_what_is_missing(server: Server, home: Home) -> None:
    with pytest.raises(Stopped):
        fetch(home, "org/Tiny", stop=lambda: any(file == "model.safetensors" for file, _ in server.asked))
    assert Models(home).names() == []
    before = [file for file, _ in server.asked]
    server.asked.clear()
    fetch(home, "org/Tiny")
    assert {file for file, _ in server.asked}.isdisjoint(set(before) - {"model.safetensors"})


def test_what_would_be_downloaded_is_said_before(server: Server, home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--home", str(home.root), "models", "fetch", "org/Tiny", "--pack", "q8_0"]) == 0
    printed = capsys.readouterr()
    size = (server.folder / "model.safetensors").stat().st_size
    assert f"{size / 1000:.1f} KB  model.safetensors" in printed.err
    assert "in 6 files" in printed.err
    assert "tiny is installed" in printed.out
    assert Models(home).open().card.weights == "q8_0"


def test_a_name_that_another_model_has_is_not_taken_for_it(server: Server, home: Home) -> None:
    install_model(home, server.folder, "tiny")
    with pytest.raises(LongshelfError) as caught:
        fetch(home, "org/Tiny")
    assert caught.value.kind == "exists"


@pytest.mark.parametrize(("status", "kind"), [(404, "unknown_model"), (403, "gated"), (500, "download_failed")])
def test_what_the_hub_refuses_is_explained(server: Server, home: Home, status: int, kind: str) -> None:
    server.status = status if status != 404 else 200
    with pytest.raises(LongshelfError) as caught:
        fetch(home, "org/Unknown" if status == 404 else "org/Tiny")
    assert caught.value.kind == kind


def test_a_model_of_pickles_alone_is_refused_before_anything_is_downloaded(server: Server, home: Home) -> None:
    (server.folder / "model.safetensors").unlink()
    with pytest.raises(LongshelfError, match="no safetensors files") as caught:
        fetch(home, "org/Tiny")
    assert (caught.value.kind, server.asked) == ("not_a_model", [])


def test_without_a_network_it_says_so(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(LongshelfError) as caught:
        hub.listing("org/Tiny")
    assert (caught.value.kind, "online" in caught.value.hint) == ("no_network", True)
