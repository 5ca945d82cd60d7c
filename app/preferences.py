"""What the window remembers between starts: language, theme, mode, geometry, the open chat, a question not yet sent.

Kept in HOME/window.ini, so that a home can be moved or thrown away whole. What concerns the engine is kept by the engine.
"""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QByteArray, QSettings

from engine.home import Home

LANGUAGES = ("system", "en", "ko")
THEMES = ("system", "light", "dark")
MODES = ("exact", "sampled")


class Preferences:
    def __init__(self, home: Home) -> None:
        self._settings = QSettings(str(home.root / "window.ini"), QSettings.Format.IniFormat)

    @property
    def language(self) -> str:
        return self._one_of("language", LANGUAGES)

    @language.setter
    def language(self, value: str) -> None:
        self._settings.setValue("language", value)

    @property
    def theme(self) -> str:
        return self._one_of("theme", THEMES)

    @theme.setter
    def theme(self, value: str) -> None:
        self._settings.setValue("theme", value)

    @property
    def mode(self) -> str:
        """How the next question is to be answered."""
        return self._one_of("mode", MODES)

    @mode.setter
    def mode(self, value: str) -> None:
        self._settings.setValue("mode", value)

    @property
    def chat(self) -> str:
        """Id of the chat that was open, "" for none."""
        return str(self._settings.value("chat", ""))

    @chat.setter
    def chat(self, value: str) -> None:
        self._settings.setValue("chat", value)

    @property
    def draft(self) -> str:
        """What was typed and not yet taken by the engine. Written to disk at once: it must survive a crash."""
        return str(self._settings.value("draft", ""))

    @draft.setter
    def draft(self, value: str) -> None:
        self._settings.setValue("draft", value)
        self._settings.sync()

    def once(self, name: str) -> bool:
        """True the first time it is asked for `name`: for things that are said once."""
        if self._settings.value(f"said/{name}", False, type=bool):
            return False
        self._settings.setValue(f"said/{name}", True)
        return True

    def bytes_of(self, name: str) -> QByteArray | None:
        """Geometry and splitter states, as Qt saved them."""
        value: Any = self._settings.value(f"geometry/{name}")
        return value if isinstance(value, QByteArray) and not value.isEmpty() else None

    def keep_bytes(self, name: str, value: QByteArray) -> None:
        self._settings.setValue(f"geometry/{name}", value)

    def sync(self) -> None:
        self._settings.sync()

    def _one_of(self, name: str, known: tuple[str, ...]) -> str:
        value = str(self._settings.value(name, known[0]))
        return value if value in known else known[0]
