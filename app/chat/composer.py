"""Where questions are typed. Enter sends, Shift+Enter breaks the line, and a half-composed Hangul syllable is committed before sending.

Enter may arrive while the input method still holds a syllable that the text doesn't have yet (its preedit). For Hangul, people expect
Enter to commit and send; for Japanese and Chinese, Enter chooses a candidate and belongs to the input method alone.
"""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QMimeData, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QFocusEvent, QGuiApplication, QInputMethodEvent, QKeyEvent
from PySide6.QtWidgets import QApplication, QFrame, QPlainTextEdit, QSizePolicy, QWidget

_MOST_LINES = 8
_HANGUL = (("\u1100", "\u11ff"), ("\u3130", "\u318f"), ("\ua960", "\ua97f"), ("\uac00", "\ud7ff"))


class Composer(QPlainTextEdit):
    submitted = Signal(str)
    files_pasted = Signal(list)  # of Path
    focus_changed = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, frameShape=QFrame.Shape.NoFrame, tabChangesFocus=True)
        self.setAccessibleName(self.tr("Question"))
        self.setPlaceholderText(self.tr("Ask about these documents…"))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self.document().documentLayout().documentSizeChanged.connect(lambda _: self.updateGeometry())

    def sizeHint(self) -> QSize:
        """As tall as its text, from one line to a few."""
        lines = min(max(self.document().size().height(), 1), _MOST_LINES)  # a plain text document measures itself in lines
        height = (lines + 0.5) * self.fontMetrics().lineSpacing() + 2 * self.document().documentMargin()
        return QSize(super().sizeHint().width(), round(height + 0.5))

    def minimumSizeHint(self) -> QSize:
        return QSize(self.fontMetrics().averageCharWidth() * 20, self.sizeHint().height())

    def submit(self) -> None:
        """Send what is typed, once the input method has given up what it holds. The text stays until its receiver clears it."""
        preedit = self.preedit()
        if not preedit:
            self._emit()
        elif _is_hangul(preedit):
            QGuiApplication.inputMethod().commit()
            QTimer.singleShot(0, self, self._commit_and_emit)

    def preedit(self) -> str:
        """What the input method is composing at the cursor, not yet part of the text."""
        layout = self.textCursor().block().layout()
        return layout.preeditAreaText() if layout is not None else ""

    def keyPressEvent(self, event: QKeyEvent) -> None:
        enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if enter and not event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier:
            self.submit()
            event.accept()
        else:
            super().keyPressEvent(event)

    def insertFromMimeData(self, source: QMimeData) -> None:
        """Pasted files are documents to add, not text."""
        paths = [Path(url.toLocalFile()) for url in source.urls() if url.isLocalFile()]
        if paths:
            self.files_pasted.emit(paths)
        else:
            self.insertPlainText(source.text())

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        return source.hasText() or source.hasUrls()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.focus_changed.emit(True)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.focus_changed.emit(False)

    def _commit_and_emit(self) -> None:
        if pending := self.preedit():  # an input method that didn't answer `commit`: put the syllable in its place ourselves
            event = QInputMethodEvent("", [])
            event.setCommitString(pending)
            QApplication.sendEvent(self, event)
            QGuiApplication.inputMethod().reset()
        self._emit()

    def _emit(self) -> None:
        if text := self.toPlainText().strip():
            self.submitted.emit(text)


def _is_hangul(text: str) -> bool:
    return all(any(first <= character <= last for first, last in _HANGUL) for character in text)
