"""What is shown over the window while files hover above it: what will happen, how many they are and how big."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QLabel, QVBoxLayout, QWidget

from app import words
from app.adding import Count


class DropOverlay(QFrame):
    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, objectName="overlay", visible=False)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._what = QLabel(objectName="title", alignment=Qt.AlignmentFlag.AlignCenter, wordWrap=True)
        self._size = QLabel(objectName="quiet", alignment=Qt.AlignmentFlag.AlignCenter)
        layout = QVBoxLayout(self)
        layout.addStretch(1)
        layout.addWidget(self._what)
        layout.addWidget(self._size)
        layout.addStretch(1)
        self._count: Count | None = None

    def show_for(self, paths: list[Path]) -> None:
        folders = sum(path.is_dir() for path in paths)
        files = len(paths) - folders
        named = [self.tr("%Ln file(s)", "", files) if files else "", self.tr("%n folder(s)", "", folders) if folders else ""]
        self._what.setText(self.tr("Drop to add {0}").format(" + ".join(filter(None, named))))
        self._size.setText(self.tr("Counting…"))
        self._end_count()
        self._count = Count(paths, self)
        self._count.counted.connect(self._on_counted)
        self._count.start()
        self.setGeometry(self.parentWidget().rect())
        self.raise_()
        self.show()

    def put_away(self) -> None:
        self._end_count()
        self.hide()

    def text(self) -> str:
        return f"{self._what.text()}\n{self._size.text()}"

    def _on_counted(self, files: int, total: int, complete: bool) -> None:
        text = words.join(self.tr("%Ln file(s)", "", files), words.size(total))
        self._size.setText(text if complete else self.tr("more than {0}").format(text))

    def _end_count(self) -> None:
        if self._count is not None:
            self._count.requestInterruption()
            self._count.wait()
            self._count = None
