"""Every command with its key and what it does, for F1."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence, QStandardItem, QStandardItemModel
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QHeaderView, QTableView, QVBoxLayout, QWidget

from app.commands import Commands, plain


class ShortcutsDialog(QDialog):
    def __init__(self, commands: Commands, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(self.tr("Keyboard shortcuts"))
        model = QStandardItemModel(0, 3, self)
        model.setHorizontalHeaderLabels([self.tr("Key"), self.tr("Command"), self.tr("What it does")])
        rows = [
            ("Enter", self.tr("Send"), self.tr("Send the question")),
            ("Shift+Enter", self.tr("New line"), self.tr("Break the line in a question")),
        ]
        rows += [
            (
                action.shortcut().toString(QKeySequence.SequenceFormat.NativeText),
                plain(action),
                action.statusTip(),
            )
            for action in commands.all()
            if not action.shortcut().isEmpty()
        ]
        for row in rows:
            model.appendRow([QStandardItem(text) for text in row])
        table = QTableView(accessibleName=self.windowTitle(), showGrid=False, editTriggers=QTableView.EditTrigger.NoEditTriggers)
        table.setModel(model)
        table.setSelectionBehavior(QTableView.SelectionBehavior.SelectRows)
        table.verticalHeader().hide()
        table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        table.horizontalHeader().setStretchLastSection(True)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.reject)
        layout = QVBoxLayout(self)
        layout.addWidget(table)
        layout.addWidget(buttons)
        self.resize(self.fontMetrics().averageCharWidth() * 100, self.fontMetrics().height() * 26)
