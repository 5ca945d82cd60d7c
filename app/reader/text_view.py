"""A read-only text with line numbers, in which passages are marked and scrolled to."""

from __future__ import annotations

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPalette, QResizeEvent, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QTextEdit, QWidget

from app import theme

Passage = tuple[int, int]  # [start, end) in UTF-16 units


class TextView(QPlainTextEdit):
    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="source", readOnly=True, frameShape=QFrame.Shape.NoFrame)
        self.setAccessibleName(self.tr("Text of the document"))
        self.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard)
        self._first_line = 1
        self._passages: list[Passage] = []
        self._current = -1
        self._gutter = _Gutter(self)
        self.blockCountChanged.connect(lambda _: self._make_room())
        self.updateRequest.connect(self._on_update)
        theme.current().changed.connect(self._mark)

    def show_text(self, text: str, first_line: int = 1) -> None:
        self._first_line = first_line
        self._passages, self._current = [], -1
        self.setPlainText(text)
        self._make_room()
        self._mark()

    def mark(self, passages: list[Passage], current: int) -> None:
        """Mark the passages, the current one strongly, and bring that one to the middle. `current` is -1 for none."""
        self._passages, self._current = passages, current
        self._mark()
        if current >= 0:
            start, end = passages[current]
            cursor = self.textCursor()
            cursor.setPosition(end)
            self.setTextCursor(cursor)
            cursor.setPosition(start)
            self.setTextCursor(cursor)
            self.centerCursor()

    def marked_text(self) -> str:
        """The text of the current passage, as it is marked."""
        if self._current < 0:
            return ""
        return self._cursor(self._passages[self._current]).selectedText().replace("\u2029", "\n")

    def gutter_width(self) -> int:
        digits = len(str(self._first_line + self.blockCount()))
        return self.fontMetrics().horizontalAdvance("9") * (max(digits, 3) + 2)

    def paint_gutter(self, event: QPaintEvent) -> None:
        painter = QPainter(self._gutter)
        painter.fillRect(event.rect(), self.palette().color(QPalette.ColorRole.Window))
        painter.setPen(self.palette().color(QPalette.ColorRole.PlaceholderText))
        painter.setFont(self.font())
        block = self.firstVisibleBlock()
        top = self.blockBoundingGeometry(block).translated(self.contentOffset()).top()
        right = self._gutter.width() - self.fontMetrics().horizontalAdvance("9")
        while block.isValid() and top <= event.rect().bottom():
            box = QRect(0, round(top), right, self.fontMetrics().height())
            if block.isVisible() and box.bottom() >= event.rect().top():
                painter.drawText(box, Qt.AlignmentFlag.AlignRight, str(self._first_line + block.blockNumber()))
            top += self.blockBoundingRect(block).height()
            block = block.next()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        box = self.contentsRect()
        self._gutter.setGeometry(QRect(box.left(), box.top(), self.gutter_width(), box.height()))

    def _make_room(self) -> None:
        self.setViewportMargins(self.gutter_width(), 0, 0, 0)
        box = self.contentsRect()
        self._gutter.setGeometry(QRect(box.left(), box.top(), self.gutter_width(), box.height()))

    def _on_update(self, rect: QRect, scrolled: int) -> None:
        if scrolled:
            self._gutter.scroll(0, scrolled)
        else:
            self._gutter.update(0, rect.y(), self._gutter.width(), rect.height())

    def _mark(self) -> None:
        selections = []
        for number, passage in enumerate(self._passages):
            selection = QTextEdit.ExtraSelection()
            colour = self.palette().color(QPalette.ColorRole.Highlight)
            colour.setAlpha(120 if number == self._current else 45)
            form = QTextCharFormat()
            form.setBackground(colour)
            selection.format = form
            selection.cursor = self._cursor(passage)
            selections.append(selection)
        self.setExtraSelections(selections)

    def _cursor(self, passage: Passage) -> QTextCursor:
        last = self.document().characterCount() - 1
        cursor = QTextCursor(self.document())
        cursor.setPosition(min(passage[0], last))
        cursor.setPosition(min(passage[1], last), QTextCursor.MoveMode.KeepAnchor)
        return cursor


class _Gutter(QWidget):
    """The strip with the line numbers."""

    def __init__(self, view: TextView) -> None:
        super().__init__(view)
        self._view = view
        self.setAccessibleName(self.tr("Line numbers"))

    def sizeHint(self) -> QSize:
        return QSize(self._view.gutter_width(), 0)

    def paintEvent(self, event: QPaintEvent) -> None:
        self._view.paint_gutter(event)

    def wheelEvent(self, event: object) -> None:
        event.ignore()  # type: ignore[attr-defined]
