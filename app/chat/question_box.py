"""The foot of the chat: a line about the next question, the composer in its frame, which mode and model will answer, and Send or Stop."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QToolButton, QVBoxLayout, QWidget

from app import theme
from app.chat.composer import Composer
from app.chat.mode_switch import ModeSwitch
from app.commands import Commands, plain
from app.mirror import Row


class QuestionBox(QWidget):
    cancelled = Signal()  # the link in the hint was followed

    def __init__(self, commands: Commands, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._commands = commands
        self._told = "", ""
        self.composer = Composer(self)
        self._hint = QLabel(objectName="quiet", wordWrap=True, visible=False)
        self._hint.setTextInteractionFlags(Qt.TextInteractionFlag.LinksAccessibleByMouse | Qt.TextInteractionFlag.LinksAccessibleByKeyboard)
        self._hint.linkActivated.connect(lambda _: self.cancelled.emit())
        self._trade = QLabel(objectName="quiet", wordWrap=True, visible=False)
        self.switch = ModeSwitch(commands.fast)
        self._model = QLabel(objectName="quiet", alignment=Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self._model.setMinimumWidth(self.fontMetrics().averageCharWidth() * 4)  # a long name gives way in a narrow window
        self._badge = QLabel(self.tr("trial model"), objectName="badge", visible=False)
        self._button = QToolButton(autoRaise=True)
        self._button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonIconOnly)

        frame = QFrame(objectName="composer")
        row = QHBoxLayout()
        row.setSpacing(self.fontMetrics().averageCharWidth())
        row.addWidget(self.switch)
        row.addStretch(1)
        for widget in (self._model, self._badge, self._button):
            row.addWidget(widget)
        inside = QVBoxLayout(frame)
        inside.setSpacing(0)
        inside.addWidget(self.composer)
        inside.addLayout(row)
        layout = QVBoxLayout(self)
        layout.addWidget(self._hint)
        layout.addWidget(self._trade)
        layout.addWidget(frame)
        self.composer.focus_changed.connect(lambda focused: _mark_focus(frame, focused))
        theme.current().changed.connect(self._show_told)  # its link carries its colour
        self.set_busy(False)

    def set_busy(self, busy: bool) -> None:
        """While an answer comes, the button stops it."""
        wanted, other = (self._commands.stop, self._commands.send) if busy else (self._commands.send, self._commands.stop)
        self._button.removeAction(other)
        self._button.setDefaultAction(wanted)
        self._button.setAccessibleName(plain(wanted))

    def show_model(self, model: Row) -> None:
        """The row of the model that will answer; an empty one when none is installed."""
        self._model.setText(str(model.get("name") or ""))
        self._model.setToolTip(self._model.text())
        self._badge.setVisible(bool(model.get("trial")))

    def tell(self, text: str, link: str = "") -> None:
        """One quiet line above the composer; with `link`, these words stand at its end and can be followed. "" hides it."""
        self._told = text, link
        self._show_told()

    def _show_told(self) -> None:
        text, link = self._told
        colour = self.palette().link().color().name()
        self._hint.setText(f'{text} <a href="#" style="color: {colour}">{link}</a>' if link else text)
        self._hint.setVisible(bool(text))

    def hint(self) -> str:
        return self._hint.text()

    def show_trade(self, text: str) -> None:
        """What the chosen mode trades, in a sentence; "" for a mode that trades nothing."""
        self._trade.setText(text)
        self._trade.setVisible(bool(text))

    def trade(self) -> str:
        return self._trade.text()


def _mark_focus(frame: QFrame, focused: bool) -> None:
    """The frame shows the focus of the composer inside it; a style sheet has to be told."""
    frame.setProperty("focused", focused)
    theme.polish(frame)
