"""The chats as a list model, latest first; while something is searched, the chats the engine found."""

from __future__ import annotations

import datetime
from typing import Any

from PySide6.QtCore import QAbstractListModel, QLocale, QModelIndex, QObject, Qt, QTimer

from app import words
from app.engine_client import Engine
from app.library.documents import DETAIL, ICON, ID, ROW, Index
from app.mirror import Mirror, Row

_SEARCH_MS = 200  # after the last key


class Chats(QAbstractListModel):
    def __init__(self, engine: Engine, mirror: Mirror, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._mirror = mirror
        self._query = ""
        self._rows: list[Row] = []
        self._timer = QTimer(self, singleShot=True, interval=_SEARCH_MS)
        self._timer.timeout.connect(self._ask)
        mirror.chats_changed.connect(self._on_changed)
        mirror.documents_changed.connect(self._on_titles)
        self._show(list(mirror.chats.values()))

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008  Qt's own signature
        return 0 if parent.isValid() else len(self._rows)

    def flags(self, index: Index) -> Qt.ItemFlag:
        return super().flags(index) | Qt.ItemFlag.ItemIsEditable

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        row = self._rows[index.row()]
        match role:
            case Qt.ItemDataRole.DisplayRole | Qt.ItemDataRole.EditRole:
                return row.get("title") or self.tr("New chat")
            case Qt.ItemDataRole.AccessibleTextRole:
                return f"{row.get('title')}, {self._detail(row)}"
        return {ID: row["id"], DETAIL: self._detail(row), ICON: "chat", ROW: row}.get(role)

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        title = str(value).strip()
        if role != Qt.ItemDataRole.EditRole or not title:
            return False
        row = self._rows[index.row()]
        row["title"] = title
        self._engine.request("chats.rename", {"id": row["id"], "title": title})
        self.dataChanged.emit(index, index)
        return True

    def search(self, text: str) -> None:
        """Show only the chats in which `text` stands; "" shows all."""
        self._query = text.strip()
        self._timer.start()

    def index_of(self, chat: str) -> QModelIndex:
        return next((self.index(number) for number, row in enumerate(self._rows) if row["id"] == chat), QModelIndex())

    def _detail(self, row: Row) -> str:
        titles = row.get("document_titles") or [self._mirror.title_of(document) for document in row.get("documents") or []]
        return words.join(_when(row.get("updated_at") or row.get("created_at")), ", ".join(filter(None, titles)))

    def _ask(self) -> None:
        query = self._query
        if not query:
            self._show(list(self._mirror.chats.values()))
            return

        def found(result: Row) -> None:
            if query == self._query:  # else a later search is on its way
                self._show(result.get("chats", []))

        self._engine.request("chats.list", {"query": query}, done=found)

    def _on_changed(self, rows: list[Row]) -> None:
        if self._query:
            self._ask()
        else:
            self._show(list(self._mirror.chats.values()))

    def _on_titles(self, rows: list[Row]) -> None:
        if self._rows:
            self.dataChanged.emit(self.index(0), self.index(len(self._rows) - 1))

    def _show(self, rows: list[Row]) -> None:
        rows = sorted(rows, key=lambda row: row.get("updated_at") or 0, reverse=True)
        if [row["id"] for row in rows] == [row["id"] for row in self._rows]:
            self._rows = rows
            self._on_titles(rows)
            return
        self.beginResetModel()
        self._rows = rows
        self.endResetModel()


def _when(moment: float | None) -> str:
    if not moment:
        return ""
    then = datetime.datetime.fromtimestamp(moment)
    locale = QLocale()
    if then.date() == datetime.date.today():
        return locale.toString(then.time(), QLocale.FormatType.ShortFormat)
    return locale.toString(then.date(), QLocale.FormatType.ShortFormat)
