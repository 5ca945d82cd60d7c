"""Keep a home of this version: `python -m tests.homes.make` writes tests/homes/VERSION.zip, which every later version must open.

Run once when a version is released; a home that is there is never written again. It holds a tiny random model, three documents that were
read, one that is only kept as text, and two chats, one of them over two documents together, which are a stored join.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from engine import settings
from engine.home import Home
from engine.model.install import install_model
from engine.shelf import Call, Shelf
from engine.version import VERSION
from tests.engine.model import tiny_gguf

Row = dict[str, Any]

FOLDER = Path(__file__).parent
PART = 96
LAMPS = "CHAPTER 1\n\nLamp 1 is kept by Ward1001. Lamp 2 is kept by Ward1002.\n\nCHAPTER 2\n\nLamp 3 is kept by Ward1003 at night.\n"
DOORS = "Door 1 is opened by Hand2001. Door 2 is opened by Hand2002.\n"
GATES = "Gate 1 is shut by Hand3001.\n"
NOTES = "Nobody has read this yet: 아직 아무도 읽지 않았다.\n"
LEFT_OUT = ("engine.lock", "engine.sock", "engine.log", "writer.lock", "ballast", ".lock")


def make(folder: Path = FOLDER) -> Path:
    """Write the home and what it holds into one file; gives its path."""
    target = folder / f"{VERSION}.zip"
    room = Path(tempfile.mkdtemp(prefix="longshelf-home-"))
    try:
        home = Home(room / "home").open()
        values = tiny_gguf.tensors()
        values["token_embd.weight"][: len(tiny_gguf.SPECIALS)] = 0  # tied: an answer never ends by itself
        install_model(home, tiny_gguf.write(room / "tiny.gguf", values, llama__context_length=1024))
        settings.change(home, {"threads": 1})
        held = _fill(home, room)
        _pack(home, held, target)
    finally:
        shutil.rmtree(room)
    return target


def _fill(home: Home, room: Path) -> Row:
    """Use the home as a person would; gives what it holds then."""
    shelf = Shelf(home)
    try:
        for name, text, read in (("lamps", LAMPS, True), ("doors", DOORS, True), ("gates", GATES, True), ("notes", NOTES, False)):
            path = room / f"{name}.txt"
            path.write_text(text, encoding="utf-8")
            shelf.call("documents.add", {"paths": [str(path)], "part_tokens": PART, "read": read}, Call())
        for documents in (["lamps"], ["doors", "gates"]):
            shelf.call("ask", {"documents": documents, "question": "Who keeps it?", "max_tokens": 8}, Call())
        shelf.library.catalog.back_up_daily()
        return held(shelf)
    finally:
        shelf.close()


def held(shelf: Shelf) -> Row:
    """What a home holds, as its clients see it, but for names of folders of the machine it was made on."""
    documents = shelf.call("documents.list", {}, Call())["documents"]
    chats = shelf.call("chats.list", {}, Call())["chats"]
    return {
        "documents": [{name: row[name] for name in ("id", "title", "format", "state", "tokens", "parts", "bytes")} for row in documents],
        "texts": {row["title"]: shelf.call("documents.show", {"id": row["id"]}, Call())["text"] for row in documents},
        "chats": sorted((_chat(shelf, chat["id"]) for chat in chats), key=lambda chat: str(chat["id"])),
    }


def _chat(shelf: Shelf, chat_id: str) -> Row:
    shown = shelf.call("chats.show", {"id": chat_id}, Call())
    messages = [{name: message[name] for name in ("id", "role", "text", "status")} for message in shown["messages"]]
    quotes = [citation["quote"] for message in shown["messages"] for citation in message["citations"]]
    return {"id": shown["id"], "title": shown["title"], "documents": shown["documents"], "messages": messages, "quotes": quotes}


def _pack(home: Home, held: Row, target: Path) -> None:
    with zipfile.ZipFile(target, "x", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("held.json", json.dumps(held, ensure_ascii=False, indent=1, sort_keys=True))
        for path in sorted(home.root.rglob("*")):
            if path.is_file() and path.name not in LEFT_OUT:
                packed.write(path, Path("home") / path.relative_to(home.root))


def unpack(packed: Path, folder: Path) -> tuple[Home, Row]:
    """A kept home in `folder`, and what it held when it was made."""
    with zipfile.ZipFile(packed) as archive:
        archive.extractall(folder)
    return Home(folder / "home"), json.loads((folder / "held.json").read_text(encoding="utf-8"))


if __name__ == "__main__":
    sys.stdout.write(f"{make()}\n")
