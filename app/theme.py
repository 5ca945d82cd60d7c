"""How the window looks: palettes for light and dark, the style sheet, icons that follow the palette, and fonts that know Hangul.

On Linux the Fusion style wears our palettes; elsewhere the platform's own style and colours are kept and only the scheme is chosen. The
style sheet names palette roles, never colours.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

from PySide6.QtCore import QByteArray, QObject, QSize, Qt, Signal
from PySide6.QtGui import QAction, QColor, QFont, QFontDatabase, QGuiApplication, QIcon, QPainter, QPalette, QPixmap
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QAbstractButton, QApplication, QWidget

import resources

RESOURCES = Path(resources.__file__).parent
_HANGUL_FAMILIES = ("Noto Sans KR", "Noto Sans CJK KR", "Malgun Gothic", "Apple SD Gothic Neo", "NanumGothic")
_MONOSPACE_HANGUL_FAMILIES = ("Noto Sans Mono CJK KR", "D2Coding", "NanumGothicCoding")
_SCHEMES = {"light": Qt.ColorScheme.Light, "dark": Qt.ColorScheme.Dark, "system": Qt.ColorScheme.Unknown}

_LIGHT = {
    "Window": "#f3f1ec", "WindowText": "#22252a", "Base": "#fdfcfa", "AlternateBase": "#f0ede6", "Text": "#22252a",
    "PlaceholderText": "#666970", "Button": "#eae7e0", "ButtonText": "#22252a", "BrightText": "#ffffff",
    "Link": "#1b626b", "LinkVisited": "#1b626b", "Accent": "#1f6b74", "Highlight": "#1f6b74",
    "HighlightedText": "#ffffff", "ToolTipBase": "#fdfcfa", "ToolTipText": "#22252a", "Light": "#ffffff",
    "Midlight": "#e4e1d9", "Mid": "#c9c5bb", "Dark": "#a5a199", "Shadow": "#7d7a73",
}  # fmt: skip
_DARK = {
    "Window": "#212327", "WindowText": "#e4e2dc", "Base": "#1a1c1f", "AlternateBase": "#26282c", "Text": "#e4e2dc",
    "PlaceholderText": "#9a9a96", "Button": "#2d3035", "ButtonText": "#e4e2dc", "BrightText": "#ffffff",
    "Link": "#79c4c4", "LinkVisited": "#79c4c4", "Accent": "#5aabae", "Highlight": "#2f7f86",
    "HighlightedText": "#ffffff", "ToolTipBase": "#2d3035", "ToolTipText": "#e4e2dc", "Light": "#3a3d43",
    "Midlight": "#34373c", "Mid": "#44474d", "Dark": "#141518", "Shadow": "#0c0d0f",
}  # fmt: skip
_SIGNALS = {"good": ("#2c7a4b", "#7cc796"), "attention": ("#96600d", "#e0b05c"), "bad": ("#b3362e", "#ee8d84")}


class Theme(QObject):
    """Applies a scheme to the application and tells views to repaint what they drew themselves."""

    changed = Signal()

    def __init__(self, application: QApplication, setting: str = "system") -> None:
        super().__init__(application)
        self._application = application
        self._setting = setting
        self._refreshers: list[Callable[[], None]] = []
        if sys.platform.startswith("linux"):
            application.setStyle("Fusion")
        application.setFont(with_hangul(application.font()))
        application.setWindowIcon(QIcon(str(RESOURCES / "icons" / "longshelf.svg")))
        application.styleHints().colorSchemeChanged.connect(lambda _: self.use(self._setting))
        self.use(setting)

    def use(self, setting: str) -> None:
        """Wear "light", "dark", or what the system asks for. Takes effect at once."""
        self._setting = setting
        hints = self._application.styleHints()
        blocked = hints.blockSignals(True)
        hints.setColorScheme(_SCHEMES[setting])
        hints.blockSignals(blocked)
        dark = setting == "dark" or (setting == "system" and hints.colorScheme() is Qt.ColorScheme.Dark)
        if sys.platform.startswith("linux"):
            self._application.setPalette(_palette(_DARK if dark else _LIGHT))
        self._application.setStyleSheet((RESOURCES / "style" / "longshelf.qss").read_text(encoding="utf-8"))
        _draw.cache_clear()
        for refresh in list(self._refreshers):
            refresh()
        self.changed.emit()

    def wear(self, target: QAction | QAbstractButton, name: str) -> None:
        """Give an action or button an icon, now and after each change of the palette."""

        def refresh() -> None:
            target.setIcon(icon(name))

        self._refreshers.append(refresh)
        target.destroyed.connect(lambda: self._refreshers.remove(refresh) if refresh in self._refreshers else None)
        refresh()


def current() -> Theme:
    """The application's theme; made on first use, so that a single widget can be shown alone."""
    application = QApplication.instance()
    assert isinstance(application, QApplication), "there is no application yet"
    return application.findChild(Theme) or Theme(application)


def is_dark() -> bool:
    palette = QGuiApplication.palette()
    return palette.color(QPalette.ColorRole.Base).lightness() < palette.color(QPalette.ColorRole.Text).lightness()


def signal_colour(name: str) -> QColor:
    """ "good", "attention" or "bad", readable on the current base. Colour is never the only sign: an icon and words say the same."""
    return QColor(_SIGNALS[name][is_dark()])


def icon(name: str) -> QIcon:
    palette = QGuiApplication.palette()
    result = QIcon()
    for mode, group in ((QIcon.Mode.Normal, QPalette.ColorGroup.Active), (QIcon.Mode.Disabled, QPalette.ColorGroup.Disabled)):
        for pixels in (16, 24, 32, 48, 64):
            result.addPixmap(_draw(name, palette.color(group, QPalette.ColorRole.ButtonText).name(), pixels), mode)
    return result


def pixmap(name: str, colour: QColor, points: int, ratio: float) -> QPixmap:
    """An icon in one colour for painting: `points` wide, sharp at the given device pixel ratio."""
    drawn = QPixmap(_draw(name, colour.name(), round(points * ratio)))
    drawn.setDevicePixelRatio(ratio)
    return drawn


@cache
def _draw(name: str, colour: str, pixels: int) -> QPixmap:
    source = (RESOURCES / "icons" / f"{name}.svg").read_text(encoding="utf-8").replace("currentColor", colour)
    drawn = QPixmap(QSize(pixels, pixels))
    drawn.fill(Qt.GlobalColor.transparent)
    painter = QPainter(drawn)
    QSvgRenderer(QByteArray(source.encode())).render(painter)
    painter.end()
    return drawn


def _palette(colours: dict[str, str]) -> QPalette:
    palette = QPalette()
    for role, colour in colours.items():
        palette.setColor(QPalette.ColorRole[role], QColor(colour))
    faint = QColor(colours["PlaceholderText"])
    faint.setAlpha(150)
    for role in ("WindowText", "Text", "ButtonText"):
        palette.setColor(QPalette.ColorGroup.Disabled, QPalette.ColorRole[role], faint)
    palette.setColor(QPalette.ColorGroup.Disabled, QPalette.ColorRole.Highlight, QColor(colours["Mid"]))
    return palette


def with_hangul(font: QFont) -> QFont:
    """The font with a Korean fallback chain behind it."""
    font = QFont(font)
    font.setFamilies([*font.families(), *_HANGUL_FAMILIES])
    return font


def monospace() -> QFont:
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    font.setFamilies([*font.families(), "DejaVu Sans Mono", *_MONOSPACE_HANGUL_FAMILIES])
    font.setPointSizeF(QGuiApplication.font().pointSizeF())
    return font


def can_write_korean() -> bool:
    return bool(QFontDatabase.families(QFontDatabase.WritingSystem.Korean))


def polish(widget: QWidget) -> None:
    """Look again which rules of the style sheet hold for this widget: one of its properties changed."""
    widget.style().unpolish(widget)
    widget.style().polish(widget)
