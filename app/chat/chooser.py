"""Which documents a question is about: one, several or all. A button that says it, over a list to tick."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import (
    QAbstractItemModel,
    QAbstractListModel,
    QEvent,
    QModelIndex,
    QObject,
    QPoint,
    QSize,
    QSortFilterProxyModel,
    Qt,
    Signal,
)
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QFrame,
    QLineEdit,
    QListView,
    QSizePolicy,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app import theme, words
from app.library.documents import ID, Index
from app.mirror import Mirror, Row


class Chooser(QToolButton):
    changed = Signal()

    def __init__(self, mirror: Mirror, parent: QWidget | None = None) -> None:
        super().__init__(parent, autoRaise=True)
        self._mirror = mirror
        self._chosen: list[str] = []
        self._all = False
        self._whole = ""
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.setAccessibleName(self.tr("Documents the question is about"))
        self.setToolTip(self.tr("Choose the documents the question is about"))
        theme.current().wear(self, "document")
        self.clicked.connect(self.open_list)
        mirror.documents_changed.connect(self._on_documents)
        self._popup = _Popup(self, mirror)
        self._say()

    @property
    def documents(self) -> list[str]:
        """Ids of the chosen documents; empty when all are asked."""
        return [] if self._all else list(self._chosen)

    @property
    def all(self) -> bool:
        return self._all

    def choose(self, documents: list[str], all: bool = False) -> None:
        known = [document for document in documents if document in self._mirror.documents]
        if (known, all) != (self._chosen, self._all):
            self._chosen, self._all = known, all
            self._say()
            self.changed.emit()

    def open_list(self) -> None:
        self._popup.show_under(self)

    def _on_documents(self, rows: list[Row]) -> None:
        if any(row.get("removed") for row in rows):
            self.choose(self._chosen, self._all)
        self._say()

    def _say(self) -> None:
        titles = [self._mirror.title_of(document) for document in self._chosen]
        if self._all:
            text = self.tr("All documents")
        elif not titles:
            text = self.tr("Choose documents")
        elif len(titles) == 1:
            text = titles[0]
        else:
            text = self.tr("{0} and %n more", "", len(titles) - 1).format(titles[0])
        self._whole = f"{text} ▾"
        self.setStatusTip(", ".join(titles))
        self._fit()
        self.updateGeometry()

    def sizeHint(self) -> QSize:
        """As wide as the whole text, up to a line; when there is less room, the text is shortened in its middle."""
        most = self.fontMetrics().averageCharWidth() * 60
        whole = self.fontMetrics().horizontalAdvance(self._whole) + self.fontMetrics().averageCharWidth()  # widths are rounded
        return QSize(min(whole, most) + self._aside(), super().sizeHint().height())

    def minimumSizeHint(self) -> QSize:
        return QSize(self.fontMetrics().averageCharWidth() * 10 + self._aside(), super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        room = max(self.width() - self._aside(), 0)
        self.setText(self.fontMetrics().elidedText(self._whole, Qt.TextElideMode.ElideMiddle, room))

    def _aside(self) -> int:
        """Width of the icon and the space around it."""
        return self.iconSize().width() + self.fontMetrics().averageCharWidth() * 4


class _Popup(QFrame):
    def __init__(self, chooser: Chooser, mirror: Mirror) -> None:
        super().__init__(chooser, Qt.WindowType.Popup, frameShape=QFrame.Shape.StyledPanel, objectName="chooserPopup")
        self._chooser = chooser
        self.setAccessibleName(self.tr("Documents the question is about"))
        self._everything = QCheckBox(self.tr("All documents"))
        self._everything.toggled.connect(self._on_all)
        self._filter = QLineEdit(placeholderText=self.tr("Search"), accessibleName=self.tr("Search documents"), clearButtonEnabled=True)
        self._model = _Ticks(chooser, mirror, self)
        shown = QSortFilterProxyModel(self, filterCaseSensitivity=Qt.CaseSensitivity.CaseInsensitive)
        shown.setSourceModel(self._model)
        self._filter.textChanged.connect(shown.setFilterFixedString)
        self._list = QListView(accessibleName=self.tr("Documents"), uniformItemSizes=True)
        self._list.setModel(shown)
        self._list.setItemDelegate(_WholeRow(self._list))
        self._list.activated.connect(self.hide)
        layout = QVBoxLayout(self)
        for widget in (self._filter, self._everything, self._list):
            layout.addWidget(widget)

    def show_under(self, button: QWidget) -> None:
        self._everything.setChecked(self._chooser.all)
        self._filter.clear()
        self._model.refresh()
        self.setFixedWidth(max(button.width(), self.fontMetrics().averageCharWidth() * 45))
        self.move(button.mapToGlobal(QPoint(0, button.height())))
        self.show()
        self._list.setFocus()
        if not self._list.currentIndex().isValid():
            self._list.setCurrentIndex(self._list.model().index(0, 0))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.hide()
        else:
            super().keyPressEvent(event)

    def _on_all(self, checked: bool) -> None:
        self._list.setEnabled(not checked)
        self._chooser.choose(self._model.chosen, checked)


class _WholeRow(QStyledItemDelegate):
    """A click anywhere in the row ticks it; the space bar is Qt's own."""

    def editorEvent(self, event: QEvent, model: QAbstractItemModel, option: QStyleOptionViewItem, index: Index) -> bool:
        if event.type() is not QEvent.Type.MouseButtonRelease:
            return super().editorEvent(event, model, option, index)
        ticked = index.data(Qt.ItemDataRole.CheckStateRole) is Qt.CheckState.Checked
        return model.setData(index, Qt.CheckState.Unchecked if ticked else Qt.CheckState.Checked, Qt.ItemDataRole.CheckStateRole)


class _Ticks(QAbstractListModel):
    """Every document with a tick, ready ones and those being read: the chosen ones first when the list is opened."""

    def __init__(self, chooser: Chooser, mirror: Mirror, parent: QObject) -> None:
        super().__init__(parent)
        self._chooser = chooser
        self._mirror = mirror
        self._ids: list[str] = []
        self.chosen: list[str] = []

    def refresh(self) -> None:
        self.beginResetModel()
        self.chosen = list(self._chooser.documents) or self.chosen
        rows = sorted(self._mirror.documents.values(), key=lambda row: (row["id"] not in self.chosen, -(row.get("added_at") or 0)))
        self._ids = [row["id"] for row in rows if words.is_askable(row) or words.is_working(row) or row.get("state") == "paused"]
        self.endResetModel()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008  Qt's own signature
        return 0 if parent.isValid() else len(self._ids)

    def flags(self, index: Index) -> Qt.ItemFlag:
        return Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsUserCheckable

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        document = self._ids[index.row()]
        row = self._mirror.documents.get(document, {})
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return words.join(str(row.get("title") or ""), "" if row.get("state") == "ready" else words.state(row))
            case Qt.ItemDataRole.CheckStateRole:
                return Qt.CheckState.Checked if document in self.chosen else Qt.CheckState.Unchecked
        return document if role == ID else None

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        if role != Qt.ItemDataRole.CheckStateRole:
            return False
        document = self._ids[index.row()]
        ticked = Qt.CheckState(value) is Qt.CheckState.Checked
        self.chosen = [other for other in self.chosen if other != document] + ([document] if ticked else [])
        self.dataChanged.emit(index, index)
        self._chooser.choose(self.chosen, self._chooser.all)
        return True
