"""A model on its way into this home: from a file or folder, or downloaded; then measured, where that is quick.

It goes on when the dialog that began it is closed, so it belongs to the window.
"""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app import words
from app.engine_client import Engine, Reply
from app.mirror import Row
from engine.errors import LongshelfError

MEASURE_WITHIN_S = 180
"""A model is measured right after it is installed where that is expected to take no longer."""


class Installing(QObject):
    """One at a time. `error` is why the last one failed, `installed` the name of the last one that is there."""

    changed = Signal()
    failed = Signal(object)  # LongshelfError
    downloading = Signal(bool)

    def __init__(self, engine: Engine, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._reply: Reply | None = None
        self._path: Path | None = None
        self._pack: str | None = None
        self.stage, self.done, self.total = "", 0, 0
        self.error: LongshelfError | None = None
        self.installed = ""
        self.measured = True  # what is known of that one is no guess

    @property
    def busy(self) -> bool:
        return self._reply is not None

    def add(self, path: Path, pack: str | None = None, template: str | None = None) -> None:
        """Install a GGUF file, or a folder from Hugging Face. pack: how to pack its weights; template: "plain" for none of its own."""
        self._path, self._pack = path, pack
        self._begin("models.add", {"path": str(path.absolute()), "pack": pack, "template": template}, self.tr("Looking at the files"))

    def add_without_template(self) -> None:
        """Once more what was refused because it has no chat template."""
        if self._path is not None:
            self.add(self._path, self._pack, "plain")

    def fetch(self, name: str) -> None:
        """Download a model; this goes online."""
        self.downloading.emit(True)
        self._begin("models.fetch", {"name": name}, self.tr("Starting the download…"))

    def stop(self) -> None:
        if self._reply is not None:
            self._reply.stop()

    def amount(self) -> str:
        """What is being done, and how much of it is done."""
        of_bytes = self.total > 1
        return words.join(self.stage, f"{words.size(self.done)} / {words.size(self.total)}" if of_bytes else "")

    def _begin(self, method: str, params: Row, stage: str) -> None:
        self.error, self.installed, self.measured = None, "", True
        self.stage, self.done, self.total = stage, 0, 0
        self._reply = self._engine.request(method, params, done=self._on_installed, failed=self._on_failed, event=self._on_progress)
        self.changed.emit()

    def _on_progress(self, name: str, data: Row) -> None:
        if name == "progress" and (stage := words.install_stage(str(data.get("stage")))):
            self.stage, self.done, self.total = stage, data.get("done") or 0, data.get("total") or 0
            self.changed.emit()

    def _on_installed(self, result: Row) -> None:
        self.downloading.emit(False)
        row: Row = next((row for row in result.get("models") or [] if row["name"] == result.get("name")), {})
        self.installed = str(result.get("name") or "")
        if row and not row.get("trial"):
            self._measure(bool(row.get("fits")))
        else:
            self._end()

    def _measure(self, fits: bool) -> None:
        """What calibrating can tell of the model that was just installed; of the trial model it is known."""
        self.measured = False
        if fits:
            self.stage, self.done, self.total = self.tr("Measuring how the model reads"), 0, 0
            params = {"name": self.installed, "within_s": MEASURE_WITHIN_S}
            self._reply = self._engine.request("models.calibrate", params, done=self._on_measured, failed=lambda _: self._end())
            self.changed.emit()
        else:
            self._end()

    def _on_measured(self, result: Row) -> None:
        self.measured = "found" in result
        self._end()

    def _on_failed(self, error: LongshelfError) -> None:
        self.downloading.emit(False)
        self.error = error
        self._end()
        self.failed.emit(error)

    def _end(self) -> None:
        self._reply = None
        self.changed.emit()
