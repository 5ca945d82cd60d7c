"""The line at the bottom: “Offline · ready”, or what is happening."""

from __future__ import annotations

from PySide6.QtWidgets import QLabel, QStatusBar, QWidget

from app import words
from app.mirror import Mirror


class StatusLine(QStatusBar):
    def __init__(self, mirror: Mirror, parent: QWidget | None = None) -> None:
        super().__init__(parent, sizeGripEnabled=False)
        self._mirror = mirror
        self._downloading = False
        self._reading = ""
        self._label = QLabel()
        self._label.setIndent(self.fontMetrics().averageCharWidth())
        self.addWidget(self._label, 1)
        mirror.status_changed.connect(lambda _: self._say())
        mirror.documents_changed.connect(lambda _: self._say())
        self._say()

    def set_downloading(self, downloading: bool) -> None:
        """The one thing that uses the network: it is said while it does."""
        self._downloading = downloading
        self._say()

    def set_reading(self, name: str) -> None:
        """The file whose text is being read and that has no row yet; "" for none."""
        self._reading = name
        self._say()

    def text(self) -> str:
        return self._label.text()

    def _say(self) -> None:
        text = self._words()
        if text != self._label.text():
            self._label.setText(text)
            self._label.setAccessibleName(text)

    def _words(self) -> str:
        match self._mirror.status.get("state"):
            case "starting":
                return self.tr("Starting the engine…")
            case "lost":
                return self.tr("The engine is not running")
        if self._downloading:
            return self.tr("Downloading a model: the network is used until this is done")
        doing = self.tr("answering") if self._mirror.status.get("state") == "answering" else ""
        if self._mirror.status.get("state") == "loading":
            doing = self.tr("loading the model")
        if self._reading:
            doing = words.join(doing, self.tr("reading {0}").format(self._reading))
        return words.join(self.tr("Offline"), words.join(doing, self._remembering()) or self.tr("ready"))

    def _remembering(self) -> str:
        rows = [row for row in self._mirror.documents.values() if words.is_working(row)]
        for row in rows:
            if row.get("state") != "queued":
                more = self.tr("%n more waiting", "", len(rows) - 1) if len(rows) > 1 else ""
                return words.join(f"{row.get('title')}: {words.state(row)}", more)
        return ""
