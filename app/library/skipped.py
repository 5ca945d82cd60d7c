"""What was left out of a document, grouped by reason."""

from __future__ import annotations

from itertools import groupby

from PySide6.QtCore import Qt
from PySide6.QtGui import QStandardItem, QStandardItemModel
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QLabel, QTreeView, QVBoxLayout, QWidget

from app import words
from app.mirror import Row


class SkippedDialog(QDialog):
    def __init__(self, row: Row, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(self.tr("Skipped in “{0}”").format(row.get("title")))
        self._summary = QLabel(self.tr("%Ln file(s) were skipped.", "", row.get("skipped_count") or 0), wordWrap=True)
        self.model = QStandardItemModel(self)
        self._tree = QTreeView(headerHidden=True, accessibleName=self.windowTitle(), editTriggers=QTreeView.EditTrigger.NoEditTriggers)
        self._tree.setModel(self.model)
        self._tree.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.reject)
        layout = QVBoxLayout(self)
        layout.addWidget(self._summary)
        layout.addWidget(self._tree, 1)
        layout.addWidget(buttons)
        self.resize(self.fontMetrics().averageCharWidth() * 80, self.fontMetrics().height() * 24)

    def fill(self, skipped: list[Row]) -> None:
        """`skipped`: [{path, reason}], as the engine tells it."""
        self.model.clear()
        reasons = words.reasons()
        by_reason = groupby(sorted(skipped, key=lambda item: (item["reason"], item["path"])), key=lambda item: item["reason"])
        for reason, items in by_reason:
            files = [QStandardItem(str(item["path"])) for item in items]
            group = QStandardItem(f"{reasons.get(reason, reason)} ({words.number(len(files))})")
            group.appendRows(files)
            self.model.appendRow(group)
        if self.model.rowCount() <= 3:
            self._tree.expandAll()
