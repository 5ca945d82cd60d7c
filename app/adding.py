"""Adding documents: from paths however they came (dialog, drop, clipboard, command line) to the engine's queue, without ever blocking."""

from __future__ import annotations

import os
from pathlib import Path

from PySide6.QtCore import QMimeData, QObject, QThread, Signal

from app.engine_client import Engine
from app.mirror import Row
from engine.errors import LongshelfError

_MOST_FILES = 20_000  # after so many, counting ends with "more than"


class Adder(QObject):
    added = Signal(list)  # ids, in the order given
    reading = Signal(str)  # name of the file whose text is being read, "" when that is over
    trouble = Signal(object)  # LongshelfError

    def __init__(self, engine: Engine, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._engine = engine

    def add(self, paths: list[Path]) -> None:
        """Queue these files and folders; their rows tell the rest."""
        missing = [path for path in paths if not path.exists()]
        if missing:
            message = self.tr("{0} was not found.").format(missing[0])
            self.trouble.emit(LongshelfError("not_found", message, self.tr("Check whether it was moved or deleted.")))
        if there := [str(path.absolute()) for path in paths if path not in missing]:
            self._engine.request(
                "documents.add", {"paths": there, "wait": False}, done=self._on_added, failed=self._on_failed, event=self._on_event
            )

    def _on_event(self, name: str, data: Row) -> None:
        if name == "progress" and data.get("state") == "reading":
            self.reading.emit(str(data.get("title") or ""))

    def _on_added(self, result: Row) -> None:
        self.reading.emit("")
        rows = result.get("documents", [])
        for row in rows:
            if error := row.get("error"):  # one bad file fails alone
                self.trouble.emit(LongshelfError(error["kind"], error["message"], error["hint"]))
        self.added.emit([str(row["id"]) for row in rows if row.get("id")])

    def _on_failed(self, error: LongshelfError) -> None:
        self.reading.emit("")
        self.trouble.emit(error)


def paths_in(data: QMimeData) -> list[Path]:
    """The local files named in a drop or on the clipboard: as URLs, or as lines of text that are paths."""
    paths = [Path(url.toLocalFile()) for url in data.urls() if url.isLocalFile()]
    if not paths and data.hasText():
        lines = (line.strip().strip("\"'") for line in data.text().splitlines())
        paths = [Path(line).expanduser() for line in lines if line.startswith(("/", "~", "\\\\")) or line[1:3] == ":\\"]
    return paths


class Count(QThread):
    """Counts files and bytes below some paths, aside from the window."""

    counted = Signal(int, "qlonglong", bool)  # files, bytes, and whether that is all of them

    def __init__(self, paths: list[Path], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._paths = paths

    def run(self) -> None:
        files = total = 0
        waiting = [str(path) for path in self._paths]
        while waiting and files < _MOST_FILES and not self.isInterruptionRequested():
            path = waiting.pop()
            try:
                if os.path.isdir(path) and not os.path.islink(path):
                    waiting.extend(entry.path for entry in os.scandir(path))
                else:
                    total += os.stat(path).st_size
                    files += 1
            except OSError:
                continue  # what can't be looked at is told when it is added
        self.counted.emit(files, total, not waiting)
