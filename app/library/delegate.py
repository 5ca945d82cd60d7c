"""Paints a row of the library: an icon for the state, the title, a quiet second line, and a thin bar while a document is being read."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QPoint, QRect, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter, QPalette
from PySide6.QtWidgets import QApplication, QLineEdit, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from app import theme
from app.library.documents import DETAIL, ICON, PROGRESS

_SIGNALS = {"ready": "good", "warning": "bad", "remembering": "attention", "paused": "attention"}


class TwoLines(QStyledItemDelegate):
    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        line = option.fontMetrics.height()
        return QSize(line * 8, round(line * 3.1))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> None:
        self.initStyleOption(option, index)
        option.text = ""
        style = option.widget.style() if option.widget else QApplication.style()
        style.drawControl(QStyle.ControlElement.CE_ItemViewItem, option, painter, option.widget)

        selected = bool(option.state & QStyle.StateFlag.State_Selected)
        title_colour = option.palette.color(QPalette.ColorRole.HighlightedText if selected else QPalette.ColorRole.Text)
        detail_colour = title_colour if selected else option.palette.color(QPalette.ColorRole.PlaceholderText)
        title_font, detail_font = _fonts(option.font)
        title_line, detail_line = QFontMetrics(title_font).height(), QFontMetrics(detail_font).height()
        gap = option.fontMetrics.height() // 2
        box = option.rect.adjusted(gap, 0, -gap, 0)
        top = box.top() + (box.height() - title_line - detail_line) // 2

        painter.save()
        icon = str(index.data(ICON))
        size = option.fontMetrics.height()
        colour = theme.signal_colour(_SIGNALS[icon]) if icon in _SIGNALS and not selected else detail_colour
        ratio = painter.device().devicePixelRatio()
        painter.drawPixmap(QPoint(box.left(), top + (title_line - size) // 2), theme.pixmap(icon, colour, size, ratio))
        left = box.left() + size + gap
        self._line(painter, QRect(left, top, box.right() - left, title_line), str(index.data()), title_font, title_colour)
        below = QRect(left, top + title_line, box.right() - left, detail_line)
        self._line(painter, below, str(index.data(DETAIL)), detail_font, detail_colour)
        if (percent := index.data(PROGRESS)) is not None:
            self._bar(
                painter,
                QRect(left, box.bottom() - gap // 2, box.right() - left, max(2, gap // 4)),
                float(percent),
                option.palette,
                selected,
            )
        painter.restore()

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QWidget:
        return QLineEdit(parent, accessibleName=self.tr("Name of the chat"))

    @staticmethod
    def _line(painter: QPainter, box: QRect, text: str, font: QFont, colour: QColor) -> None:
        painter.setFont(font)
        painter.setPen(colour)
        painter.drawText(box, Qt.AlignmentFlag.AlignVCenter, QFontMetrics(font).elidedText(text, Qt.TextElideMode.ElideRight, box.width()))

    @staticmethod
    def _bar(painter: QPainter, box: QRect, percent: float, palette: QPalette, selected: bool) -> None:
        painter.fillRect(box, palette.color(QPalette.ColorRole.Mid))
        done = QRect(box)
        done.setWidth(round(box.width() * min(percent, 100.0) / 100))
        painter.fillRect(done, palette.color(QPalette.ColorRole.HighlightedText if selected else QPalette.ColorRole.Highlight))


def _fonts(font: QFont) -> tuple[QFont, QFont]:
    title, detail = QFont(font), QFont(font)
    title.setWeight(QFont.Weight.Medium)
    detail.setPointSizeF(font.pointSizeF() * 0.9)
    return title, detail
