"""The messages of the open branch, under one another. The view follows what comes in only if it was at the bottom."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QGridLayout, QPushButton, QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from app import theme
from app.chat.conversation import MessageId
from app.chat.message import MessageView


class Transcript(QWidget):
    following_changed = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._following = True
        self._views: list[MessageView] = []
        self._page = QWidget(objectName="transcriptPage")
        self._page.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Maximum)
        self._column = QVBoxLayout(self._page)
        self._column.setSpacing(self.fontMetrics().height())
        self._column.addStretch(1)
        self._area = QScrollArea(objectName="transcript", widgetResizable=True, frameShape=QFrame.Shape.NoFrame)
        self._area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._area.setAccessibleName(self.tr("Chat"))
        self._area.setWidget(self._page)
        self._bar = self._area.verticalScrollBar()
        self._bar.rangeChanged.connect(self._on_range)
        self._bar.valueChanged.connect(self._on_value)

        self.latest_button = QPushButton(self.tr("Jump to the latest"), visible=False)
        theme.current().wear(self.latest_button, "down")
        self.latest_button.clicked.connect(self.jump_to_latest)
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.addWidget(self._area, 0, 0)
        grid.addWidget(self.latest_button, 0, 0, Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignBottom)

    @property
    def following(self) -> bool:
        return self._following

    @property
    def views(self) -> list[MessageView]:
        return list(self._views)

    def view_of(self, message: MessageId) -> MessageView | None:
        return next((view for view in self._views if view.message.id == message), None)

    def show_views(self, views: list[MessageView]) -> None:
        """Replace all messages, and go to the end of them."""
        for view in self._views:
            self._column.removeWidget(view)
            view.hide()
            view.deleteLater()
        self._views = []
        for view in views:
            self.add(view)
        self.jump_to_latest()

    def add(self, view: MessageView) -> None:
        self._views.append(view)
        self._column.insertWidget(self._column.count() - 1, view)

    def jump_to_latest(self) -> None:
        self._set_following(True)
        self._bar.setValue(self._bar.maximum())

    def _on_range(self, minimum: int, maximum: int) -> None:
        if self._following:
            self._bar.setValue(maximum)
        self._show_button()

    def _on_value(self, value: int) -> None:
        """Only a move by hand comes here with the end out of sight: what is appended doesn't move the bar."""
        self._set_following(value >= self._bar.maximum() - self.fontMetrics().height())

    def _set_following(self, following: bool) -> None:
        if following != self._following:
            self._following = following
            self.following_changed.emit(following)
        self._show_button()

    def _show_button(self) -> None:
        self.latest_button.setVisible(not self._following and self._bar.maximum() > 0)
