"""The figures of one answer, behind Details: what was read, what it cost, how fast it went. A figure the engine didn't give isn't shown."""

from __future__ import annotations

from html import escape
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QFrame, QLabel, QVBoxLayout, QWidget

from app import theme, words
from app.chat import modes

Row = dict[str, Any]


class Details(QFrame):
    def __init__(self, meta: Row, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="details")
        self.setAccessibleName(self.tr("Figures of this answer"))
        self._meta = meta
        self._table = QLabel(textFormat=Qt.TextFormat.RichText, wordWrap=True)
        self._table.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard)
        QVBoxLayout(self).addWidget(self._table)
        theme.current().changed.connect(self._show)
        self._show()

    def _show(self) -> None:
        quiet = self.palette().color(QPalette.ColorRole.PlaceholderText).name()
        rows = "".join(
            f'<tr><td style="color: {quiet}; padding-right: 1em">{escape(name)}</td><td>{escape(value)}</td></tr>'
            for name, value in self.figures(self._meta)
        )
        self._table.setText(f"<table cellpadding='2'>{rows}</table>")

    def figures(self, meta: Row) -> list[tuple[str, str]]:
        """Name and value of each figure in `meta`, the result of an ask."""
        count, seconds = words.number, self._seconds
        rows = [
            (self.tr("Model"), meta.get("model"), str),
            (self.tr("Mode"), meta.get("mode"), modes.name),
            (self.tr("Parts read"), self._parts(meta), str),
            (self.tr("Document tokens read again"), meta.get("document_tokens_prefilled"), count),
            (self.tr("Tokens from memory"), meta.get("reused_tokens"), count),
            (self.tr("Tokens of question and chat"), meta.get("prompt_tokens_prefilled"), count),
            (self.tr("Tokens answered"), meta.get("generated_tokens"), count),
            (self.tr("First token after"), meta.get("ttft_s"), seconds),
            (self.tr("Memory opened in"), meta.get("load_s"), seconds),
            (self.tr("Parts chosen in"), meta.get("routing_s"), seconds),
            (self.tr("Answered in"), meta.get("decode_s"), seconds),
            (self.tr("Speed"), meta.get("tokens_per_s"), lambda value: self.tr("{0} tokens/s").format(words.number(value, 1))),
            (self.tr("Memory read"), meta.get("kv_bytes_read"), words.size),
            (self.tr("Draft accepted"), meta.get("acceptance_rate"), lambda value: words.percent(value * 100)),
            (self.tr("Memory read for each word"), meta.get("rows_read_fraction") if meta.get("mode") == modes.FAST else None, words.share),
            (self.tr("Error measured"), modes.error_of(meta), words.share),
            (self.tr("Device"), words.join(str(meta.get("device") or ""), str(meta.get("dtype") or "")), str),
        ]
        return [(name, form(value)) for name, value, form in rows if value not in (None, "")]

    def _parts(self, meta: Row) -> str:
        if meta.get("parts_total") is None:
            return ""
        return self.tr("{0} of {1}").format(words.number(len(meta.get("parts_read") or [])), words.number(meta["parts_total"]))

    def _seconds(self, value: float) -> str:
        return self.tr("{0} s").format(words.number(value, 2 if value < 10 else 1))
