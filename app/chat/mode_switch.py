"""Exact or Fast: two radio buttons by the composer, in step with the command of the menu."""

from __future__ import annotations

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QHBoxLayout, QRadioButton, QWidget

from app.chat import modes


class ModeSwitch(QWidget):
    """fast: the command that is checked while answers are to be Fast."""

    def __init__(self, fast: QAction, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(self.tr("How to answer"))
        self.exact = self._button(modes.EXACT)
        self.fast = self._button(modes.FAST)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(self.fontMetrics().averageCharWidth())
        layout.addWidget(self.exact)
        layout.addWidget(self.fast)
        self._follow(fast.isChecked())
        fast.toggled.connect(self._follow)
        self.fast.toggled.connect(fast.setChecked)

    def _button(self, mode: str) -> QRadioButton:
        button = QRadioButton(modes.name(mode), toolTip=modes.promise(mode))
        button.setAccessibleName(self.tr("Answer: {0}").format(modes.name(mode)))
        button.setAccessibleDescription(modes.promise(mode))
        return button

    def _follow(self, fast: bool) -> None:
        (self.fast if fast else self.exact).setChecked(True)
