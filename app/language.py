"""Which language the window speaks, and where its sentences come from.

Translations are the Qt Linguist files in resources/translations, read as they are: nothing has to be compiled before the first start.
LONGSHELF_LANGUAGE overrides the setting, which overrides the system's language. English source strings are shown for whatever is missing;
`longshelf_en.ts` holds only plurals.
"""

from __future__ import annotations

import os
from pathlib import Path
from xml.etree import ElementTree

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QTranslator

import resources

SPOKEN = ("en", "ko")
TRANSLATIONS = Path(resources.__file__).parent / "translations"


def choose(setting: str = "system") -> str:
    """ "en" or "ko"."""
    for candidate in (os.environ.get("LONGSHELF_LANGUAGE", ""), setting, *QLocale.system().uiLanguages()):
        if (code := candidate.replace("_", "-").split("-")[0].lower()) in SPOKEN:
            return code
    return "en"


def install(application: QCoreApplication, language: str) -> list[QTranslator]:
    """From here on the application speaks `language`, Qt's own dialogs included. Returns what was installed."""
    QLocale.setDefault(QLocale(QLocale.Language.Korean) if language == "ko" else QLocale(QLocale.Language.English))
    translators: list[QTranslator] = [Sentences(TRANSLATIONS / f"longshelf_{language}.ts", application)]
    toolkit = QTranslator(application)
    if language != "en" and toolkit.load(f"qtbase_{language}", QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)):
        translators.insert(0, toolkit)  # the last one installed is asked first: our words win
    for translator in translators:
        application.installTranslator(translator)
    return translators


class Sentences(QTranslator):
    """A translator that reads a .ts file. Unfinished and obsolete entries are left out."""

    def __init__(self, path: Path, parent: QCoreApplication | None = None) -> None:
        super().__init__(parent)
        self._plain: dict[tuple[str, str], str] = {}
        self._plural: dict[tuple[str, str], list[str]] = {}
        for context in ElementTree.parse(path).getroot().iter("context"):
            name = context.findtext("name", "")
            for message in context.iter("message"):
                self._take((name, message.findtext("source", "")), message.find("translation"))

    def _take(self, key: tuple[str, str], translation: ElementTree.Element | None) -> None:
        if translation is None or translation.get("type") in ("unfinished", "obsolete", "vanished"):
            return
        if forms := [form.text or "" for form in translation.iter("numerusform")]:
            self._plural[key] = forms
        elif translation.text:
            self._plain[key] = translation.text

    def translate(self, context: str, source: str, disambiguation: str | None = None, n: int = -1) -> str | None:  # type: ignore[override]
        """None, not the source, for an unknown sentence: Qt then asks the next translator."""
        if n >= 0 and (forms := self._plural.get((context, source))):
            return forms[0] if n == 1 or len(forms) == 1 else forms[1]
        return self._plain.get((context, source))

    def isEmpty(self) -> bool:
        return not (self._plain or self._plural)
