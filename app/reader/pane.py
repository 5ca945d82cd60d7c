"""The source pane: a document's text, the cited passages marked in it, and the list of citations to step through."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, Qt
from PySide6.QtWidgets import QComboBox, QFrame, QHBoxLayout, QLabel, QListView, QStackedWidget, QToolButton, QVBoxLayout, QWidget

from app import words
from app.commands import Commands, plain
from app.engine_client import Engine
from app.library.documents import Index
from app.mirror import Mirror, Row
from app.reader.sheets import Sheets
from app.reader.text_view import TextView


class ReaderPane(QFrame):
    def __init__(self, engine: Engine, mirror: Mirror, commands: Commands, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="pane")
        self._engine = engine
        self._mirror = mirror
        self._commands = commands
        self._sheets: Sheets | None = None
        self._wanted = ""  # id or path of the document that is on its way here
        self._shown_sheet = -1
        self._current = -1
        self.citations = Citations(mirror, self)

        self._title = QLabel(objectName="subtitle")
        self._title.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.place = QLabel(objectName="quiet", wordWrap=True)
        self.place.setAccessibleName(self.tr("Place in the document"))
        self._files = QComboBox(visible=False, accessibleName=self.tr("File"))
        self._files.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self._files.activated.connect(lambda number: self._show_sheet(number, scroll=False))
        self.text = TextView(self)
        self._list = QListView(accessibleName=self.tr("Citations"), uniformItemSizes=True, objectName="rows")
        self._list.setModel(self.citations)
        self._list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._list.setSpacing(self.fontMetrics().height() // 8)
        self._list.activated.connect(lambda index: self._go(index.row()))
        self._list.clicked.connect(lambda index: self._go(index.row()))
        hint = QLabel(
            self.tr("Click a number in an answer to see the passage here, or a document to read it."), wordWrap=True, objectName="quiet"
        )
        hint.setAlignment(Qt.AlignmentFlag.AlignCenter)
        hint.setMargin(self.fontMetrics().height())

        self._stack = QStackedWidget()
        self._stack.addWidget(hint)
        self._stack.addWidget(self._page())
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self._header())
        layout.addWidget(self._stack, 1)
        commands.next_citation.triggered.connect(lambda: self._go(self._current + 1))
        commands.previous_citation.triggered.connect(lambda: self._go(self._current - 1))
        self._say()

    def show_document(self, document: str) -> None:
        """A document from its beginning, without citations."""
        self.citations.show_rows([])
        self._current = -1
        self._fetch({"id": document})

    def show_file(self, path: str) -> None:
        """A text file that isn't in the library."""
        self.citations.show_rows([])
        self._current = -1
        self._fetch({"paths": [path]})

    def show_citations(self, citations: list[Row], current: int) -> None:
        """The citations of an answer, with one of them opened."""
        self.citations.show_rows(citations)
        self._go(current)

    def _go(self, number: int) -> None:
        """Open a citation; its document is fetched when it isn't the one on screen."""
        if not 0 <= number < self.citations.rowCount():
            return
        self._current = number
        document = str(self.citations.rows[number]["document"])
        if self._sheets is not None and self._sheets.id == document:
            self._show_passage()
        else:
            self._fetch({"id": document})

    def _fetch(self, params: Row) -> None:
        wanted = self._wanted = str(params.get("id") or params["paths"][0])
        if self._sheets is not None and self._sheets.id == wanted:
            self._shown_sheet = -1
            self._show_sheet(0)
            return

        def show(shown: Row) -> None:
            if wanted == self._wanted:  # else another document was asked for meanwhile
                self._show(Sheets(shown))

        self._engine.request("documents.read" if "paths" in params else "documents.show", params, done=show)

    def _show(self, sheets: Sheets) -> None:
        self._sheets = sheets
        self._shown_sheet = -1
        self._title.setText(sheets.title)
        self._files.clear()
        self._files.addItems([sheet.label for sheet in sheets.all])
        self._files.setVisible(len(sheets.all) > 1)
        self._stack.setCurrentIndex(1)
        if self._current >= 0:
            self._show_passage()
        else:
            self._show_sheet(0)

    def _show_passage(self) -> None:
        assert self._sheets is not None
        self._show_sheet(self._sheets.at(self.citations.rows[self._current]["start"]))

    def _show_sheet(self, number: int, scroll: bool = True) -> None:
        """Show a sheet with the passages cited in it; `scroll` brings the current one into view."""
        sheets = self._sheets
        if sheets is None or number >= len(sheets.all):
            return
        sheet = sheets.all[number]
        if number != self._shown_sheet:
            self._shown_sheet = number
            self._files.setCurrentIndex(number)
            self.text.show_text(sheets.text_of(sheet), sheet.first_line)
        here = [
            (position, row)
            for position, row in enumerate(self.citations.rows)
            if row["document"] == sheets.id and sheet.start <= row["start"] < sheet.end
        ]
        passages = [(sheets.position(sheet, row["start"]), sheets.position(sheet, row["end"])) for _, row in here]
        current = next((index for index, (position, _) in enumerate(here) if position == self._current and scroll), -1)
        self.text.mark(passages, current)
        self._say()

    def _say(self) -> None:
        count = self.citations.rowCount()
        self._list.setVisible(count > 0)
        row = self._list.sizeHintForRow(0) + 2 * self._list.spacing()
        self._list.setMaximumHeight(row * min(count, 6) + self.fontMetrics().height())
        self._commands.next_citation.setEnabled(0 <= self._current < count - 1)
        self._commands.previous_citation.setEnabled(0 < self._current < count)
        self._list.setCurrentIndex(self.citations.index(self._current) if self._current >= 0 else QModelIndex())
        if self._sheets is not None and self._current >= 0:
            self.place.setText(self._sheets.place(self.citations.rows[self._current]["start"]))
        else:
            self.place.setText("")
        self.place.setVisible(bool(self.place.text()))

    def _header(self) -> QFrame:
        header = QFrame(objectName="paneHeader")
        header.setMinimumHeight(self.fontMetrics().height() * 3)
        words_of_it = QVBoxLayout()
        words_of_it.addWidget(self._title)
        words_of_it.addWidget(self.place)
        words_of_it.addWidget(self._files)
        layout = QHBoxLayout(header)
        layout.addLayout(words_of_it, 1)
        for action in (self._commands.previous_citation, self._commands.next_citation):
            button = QToolButton(autoRaise=True, accessibleName=plain(action))
            button.setDefaultAction(action)
            button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonIconOnly)
            layout.addWidget(button, 0, Qt.AlignmentFlag.AlignTop)
        return header

    def _page(self) -> QWidget:
        page = QWidget()
        layout = QVBoxLayout(page)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.text, 4)
        layout.addWidget(self._list, 1)
        return page


class Citations(QAbstractListModel):
    """The citations of one answer: number, place and how the passage begins."""

    def __init__(self, mirror: Mirror, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._mirror = mirror
        self.rows: list[Row] = []

    def show_rows(self, rows: list[Row]) -> None:
        self.beginResetModel()
        self.rows = list(rows)
        self.endResetModel()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008  Qt's own signature
        return 0 if parent.isValid() else len(self.rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        row = self.rows[index.row()]
        quote = " ".join(str(row.get("quote") or "").split())
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            several = len({other["document"] for other in self.rows}) > 1
            title = (self._mirror.title_of(row["document"]) or str(row.get("title") or "")) if several else ""
            return f"[{row['number']}] {words.join(title, words.place(row))}: “{quote}”"
        if role == Qt.ItemDataRole.ToolTipRole:
            return quote
        return None
