"""Light and dark: readable, and switched while the window is open."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication, QLabel, QToolButton
from pytestqt.qtbot import QtBot

from app import theme
from app.theme import Theme
from app.trouble import Trouble
from app.window import Window
from tests.app.conftest import Ask

Role = QPalette.ColorRole
PAIRS = ((Role.Text, Role.Base), (Role.WindowText, Role.Window), (Role.ButtonText, Role.Button), (Role.PlaceholderText, Role.Base))
PAIRS += ((Role.HighlightedText, Role.Highlight), (Role.Link, Role.Base), (Role.PlaceholderText, Role.Window))  # type: ignore[assignment]


@pytest.fixture
def wearing(qapp: QApplication) -> Iterator[Theme]:
    worn = theme.current()
    yield worn
    worn.use("light")


def contrast(one: QColor, other: QColor) -> float:
    """WCAG 2 contrast ratio."""

    def luminance(colour: QColor) -> float:
        parts = [
            value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
            for value in (colour.redF(), colour.greenF(), colour.blueF())
        ]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize(("scheme", "pair"), list(product(("light", "dark"), PAIRS)), ids=str)
def test_text_stands_out_from_what_is_behind_it(wearing: Theme, scheme: str, pair: tuple[Role, Role]) -> None:
    wearing.use(scheme)
    palette = QApplication.palette()
    assert contrast(palette.color(pair[0]), palette.color(pair[1])) >= 4.5


@pytest.mark.parametrize(("scheme", "name"), list(product(("light", "dark"), ("good", "attention", "bad"))))
def test_signals_stand_out_too(wearing: Theme, scheme: str, name: str) -> None:
    wearing.use(scheme)
    assert contrast(theme.signal_colour(name), QApplication.palette().color(Role.Window)) >= 3


def test_icons_follow_the_palette(qtbot: QtBot, wearing: Theme) -> None:
    button = QToolButton()
    qtbot.addWidget(button)
    wearing.use("light")
    wearing.wear(button, "add")
    light = button.icon().pixmap(24).toImage()
    wearing.use("dark")
    assert button.icon().pixmap(24).toImage() != light


def test_no_colour_of_the_old_theme_is_left(window: Window, wearing: Theme, ask: Ask) -> None:
    wearing.use("light")
    ask("Who?")
    window.chat.transcript.views[-1].show_details(True)
    window.chat._edit(window.chat.conversation.path()[0].id)
    window.trouble.tell(Trouble("The disk is full."))
    light = drawn(window)
    wearing.use("dark")
    assert drawn(window).keys() == light.keys()
    assert [label for label, said in drawn(window).items() if said == light[label]] == []
    assert colours(window) <= {QApplication.palette().color(role).name() for role in Role if role is not Role.NColorRoles}


def drawn(window: Window) -> dict[QLabel, object]:
    """What the labels show that carry their own colours: words and pictures."""
    labels = [label for label in window.findChildren(QLabel) if label.isVisible()]
    words = {label: label.text() for label in labels if "color: #" in label.text()}
    return words | {label: label.pixmap().toImage() for label in labels if not label.pixmap().isNull()}


def colours(window: Window) -> set[str]:
    """All that are named in labels."""
    return {colour for said in drawn(window).values() if isinstance(said, str) for colour in re.findall("#[0-9a-f]{6}", said)}


def test_every_icon_can_be_drawn() -> None:
    for file in (theme.RESOURCES / "icons").glob("*.svg"):
        drawn = theme.pixmap(file.stem, QColor("black"), 24, 1.0).toImage()
        assert any(drawn.pixelColor(x, y).alpha() for x in range(24) for y in range(24)), file.name


def test_the_style_sheet_names_no_colour() -> None:
    text = (theme.RESOURCES / "style" / "longshelf.qss").read_text(encoding="utf-8")
    rules = [line for line in text.splitlines() if "{" in line or ";" in line]
    assert not [line for line in rules if ": #" in line or "rgb" in line]


def test_hangul_has_a_fallback_font() -> None:
    assert "Noto Sans KR" in theme.with_hangul(QApplication.font()).families()


def test_the_system_is_followed_while_nothing_is_chosen(wearing: Theme, qapp: QApplication) -> None:
    wearing.use("system")
    hints = qapp.styleHints()
    assert theme.is_dark() is (hints.colorScheme() is Qt.ColorScheme.Dark)
