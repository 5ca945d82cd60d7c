"""The documents of the library as a list model, newest first. A title and an honest second line for each; the delegate paints them."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, QSortFilterProxyModel, Qt

from app import words
from app.mirror import Mirror, Row

Index = QModelIndex | QPersistentModelIndex
ID, DETAIL, ICON, PROGRESS, ROW = (Qt.ItemDataRole.UserRole + number for number in range(5))

_ICONS = {"ready": "ready", "queued": "queued", "reading": "remembering", "remembering": "remembering", "paused": "paused"}


class Documents(QAbstractListModel):
    def __init__(self, mirror: Mirror, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._mirror = mirror
        self._ids: list[str] = []
        mirror.documents_changed.connect(self._on_changed)
        self._on_changed(list(mirror.documents.values()))

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008  Qt's own signature
        return 0 if parent.isValid() else len(self._ids)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        row = self._mirror.documents[self._ids[index.row()]]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return row.get("title") or ""
            case Qt.ItemDataRole.AccessibleTextRole:
                return f"{row.get('title')}, {words.state(row)}"
            case Qt.ItemDataRole.ToolTipRole:
                return "\n".join(filter(None, (str(row.get("path") or ""), words.state(row), words.poorly_hint(row))))
        if role == ID:
            return row["id"]
        if role == DETAIL:
            return words.state(row)
        if role == ICON:
            return _ICONS.get(str(row.get("state")), "warning")
        if role == PROGRESS:
            return row.get("percent") if row.get("state") in ("remembering", "paused") else None
        if role == ROW:
            return row
        return None

    def index_of(self, document: str) -> QModelIndex:
        return self.index(self._ids.index(document)) if document in self._ids else QModelIndex()

    def _on_changed(self, rows: list[Row]) -> None:
        """New rows go to the top; a changed one is repainted alone, so that selection and scrolling stay put."""
        for row in sorted(rows, key=lambda row: row.get("added_at") or 0):
            document = str(row["id"])
            if row.get("removed"):
                if document in self._ids:
                    position = self._ids.index(document)
                    self.beginRemoveRows(QModelIndex(), position, position)
                    self._ids.pop(position)
                    self.endRemoveRows()
            elif document in self._ids:
                index = self.index(self._ids.index(document))
                self.dataChanged.emit(index, index)
            else:
                self.beginInsertRows(QModelIndex(), 0, 0)
                self._ids.insert(0, document)
                self.endInsertRows()


class TitleFilter(QSortFilterProxyModel):
    """The documents whose title or path holds what was typed, in their own order."""

    def __init__(self, source: Documents, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._wanted = ""
        self.setSourceModel(source)

    def search(self, text: str) -> None:
        self.beginFilterChange()
        self._wanted = text.strip().casefold()
        self.endFilterChange(QSortFilterProxyModel.Direction.Rows)

    def filterAcceptsRow(self, source_row: int, source_parent: Index) -> bool:
        row: Row = self.sourceModel().index(source_row, 0, source_parent).data(ROW)
        return self._wanted in f"{row.get('title')}\n{row.get('path')}".casefold()
