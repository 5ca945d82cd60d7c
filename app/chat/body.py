"""The text of one message: Markdown, drawn by Qt's rich text, as tall as it needs to be.

While an answer streams in, only its last blocks are drawn again, on a timer that backs off when drawing is slow; finished blocks move into
pages that aren't touched any more. When the answer is complete everything becomes one page, so that a selection can span all of it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QSize, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import QFontMetrics, QGuiApplication, QPalette, QTextOption
from PySide6.QtWidgets import QFrame, QSizePolicy, QTextBrowser, QVBoxLayout, QWidget

from app import theme
from app.chat import markdown, numbers

_DRAW_MS = 60
_BACK_OFF = 4  # times as long as the last drawing took: at most a fifth of the time goes into drawing
_PAGE_CHARACTERS = 3000  # of finished blocks before they get a page of their own


class Body(QWidget):
    cited = Signal(int)
    link_opened = Signal(str)

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._name = name
        self._text = ""
        self._pages: list[_Page] = []
        self._frozen = 0  # characters of _text that stand in all pages but the last
        self._citations: list[dict[str, Any]] = []
        self._timer = QTimer(self, singleShot=True, interval=_DRAW_MS)
        self._timer.timeout.connect(self._draw)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        theme.current().changed.connect(self._on_theme)

    def show_text(self, text: str, citations: Sequence[dict[str, Any]] = ()) -> None:
        """The whole text at once, on one page, with the numbers of its citations where it quotes them."""
        self._timer.stop()
        self._text, self._citations, self._frozen = text, list(citations), 0
        while len(self._pages) > 1:
            self._pages.pop().deleteLater()
        self._last().show_markdown(numbers.placed(text, self._citations), self.tr("Copy code"))

    def append(self, text: str) -> None:
        """More of a text that is still coming."""
        self._text += text
        if not self._timer.isActive():
            self._timer.start()

    def finish(self) -> None:
        """The text is complete."""
        self._timer.setInterval(_DRAW_MS)
        self.show_text(self._text)

    def plain_text(self) -> str:
        """What a reader sees, for tests and screen readers."""
        return "\n".join(page.toPlainText() for page in self._pages)

    def _on_theme(self) -> None:
        self.show_text(self._text, self._citations)

    def _draw(self) -> None:
        started = time.monotonic()
        live = self._text[self._frozen :]
        if (stable := markdown.last_block_start(live) if len(live) > _PAGE_CHARACTERS else 0) >= _PAGE_CHARACTERS:
            self._last().show_markdown(live[:stable])
            self._frozen += stable
            self._pages.append(self._new_page())
            live = live[stable:]
        self._last().show_markdown(live)
        cost = time.monotonic() - started
        self._timer.setInterval(max(_DRAW_MS, round(cost * 1000 * _BACK_OFF)))

    def _last(self) -> _Page:
        if not self._pages:
            self._pages.append(self._new_page())
        return self._pages[-1]

    def _new_page(self) -> _Page:
        page = _Page(self._name, self)
        page.anchorClicked.connect(self._on_link)
        self.layout().addWidget(page)
        return page

    def _on_link(self, url: QUrl) -> None:
        target = url.toString()
        if target.startswith(markdown.CITE):
            self.cited.emit(int(target.removeprefix(markdown.CITE)))
        elif target.startswith(markdown.COPY):
            blocks = markdown.code_blocks(self._text)
            if (number := int(target.removeprefix(markdown.COPY))) < len(blocks):
                QGuiApplication.clipboard().setText(blocks[number])
        else:
            self.link_opened.emit(target)


class _Page(QTextBrowser):
    """A text browser without a viewport of its own: the transcript scrolls, not the message."""

    def __init__(self, name: str, parent: QWidget) -> None:
        super().__init__(parent, objectName="body", openLinks=False, frameShape=QFrame.Shape.NoFrame)
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.setTextInteractionFlags(Qt.TextInteractionFlag.TextBrowserInteraction)
        self.viewport().setAutoFillBackground(False)
        self.document().setDocumentMargin(0)
        self.document().documentLayout().documentSizeChanged.connect(self._fit)
        self.document().setDefaultStyleSheet(_style_sheet(self))

    def show_markdown(self, text: str, copy_words: str = "") -> None:
        self.document().setDefaultStyleSheet(_style_sheet(self))
        self.setHtml(markdown.render(text, copy_words))

    def sizeHint(self) -> QSize:
        return QSize(super().sizeHint().width(), self.height())

    def wheelEvent(self, event: object) -> None:
        event.ignore()  # type: ignore[attr-defined]  the transcript scrolls

    def loadResource(self, kind: int, name: QUrl) -> None:
        """Nothing is ever fetched for the text of a model."""
        return

    def _fit(self) -> None:
        height = self.document().size().height()
        bar = self.horizontalScrollBar()
        if bar.maximum() > 0:
            height += bar.sizeHint().height()
        self.setFixedHeight(max(QFontMetrics(self.font()).height(), round(height + 0.5)))


def _style_sheet(widget: QWidget) -> str:
    """Spacing follows the font, colours follow the palette."""
    palette = widget.palette()
    line = QFontMetrics(widget.font()).height()
    code = palette.color(QPalette.ColorRole.AlternateBase).name()
    link = palette.color(QPalette.ColorRole.Link).name()
    quiet = palette.color(QPalette.ColorRole.PlaceholderText).name()
    families = ", ".join(f"'{family}'" for family in theme.monospace().families())
    return f"""
        p {{ margin-top: 0; margin-bottom: {line // 2}px; }}
        ul, ol {{ margin-top: 0; margin-bottom: {line // 2}px; }}
        h1, h2, h3, h4 {{ margin-top: {line // 3}px; margin-bottom: {line // 3}px; }}
        h1 {{ font-size: x-large; }} h2 {{ font-size: large; }} h3, h4 {{ font-size: medium; }}
        a {{ color: {link}; text-decoration: none; }}
        code, pre {{ font-family: {families}; }}
        code {{ background-color: {code}; }}
        td.code {{ background-color: {code}; }}
        pre {{ white-space: pre-wrap; margin: 0; }}
        p.codehead {{ margin: 0; color: {quiet}; font-size: small; }}
        blockquote {{ margin-left: {line}px; color: {quiet}; }}
    """
