"""The settings: threads, language, theme, and what the home folder holds. Each says when it takes effect."""

from __future__ import annotations

import os
import shutil

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QDialog, QDialogButtonBox, QFormLayout, QLabel, QSpinBox, QVBoxLayout, QWidget

from app import theme, words
from app.engine_client import Engine
from app.mirror import Mirror, Row
from app.preferences import LANGUAGES, THEMES, Preferences


class SettingsDialog(QDialog):
    def __init__(self, engine: Engine, mirror: Mirror, preferences: Preferences, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(self.tr("Settings"))
        self._engine = engine
        self._mirror = mirror
        self._preferences = preferences

        self.language = _choice(self.tr("Language"), LANGUAGES, (self.tr("As the system"), "English", "한국어"), preferences.language)
        self.language.activated.connect(self._on_language)
        self._language_note = self._note("")
        self._language_note.hide()
        self.theme = _choice(self.tr("Theme"), THEMES, (self.tr("As the system"), self.tr("Light"), self.tr("Dark")), preferences.theme)
        self.theme.activated.connect(self._on_theme)
        self.threads = QSpinBox(minimum=0, maximum=os.cpu_count() or 1, enabled=False, accessibleName=self.tr("Threads"))
        self.threads.setSpecialValueText(self.tr("Automatic"))
        self.threads.editingFinished.connect(self._on_threads)

        form = QFormLayout()
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        for label, field, note in (
            (self.tr("&Language"), self.language, self._language_note),
            (self.tr("&Theme"), self.theme, None),
            (
                self.tr("Th&reads"),
                self.threads,
                self._note(self.tr("How many processor cores the engine uses. Takes effect with the next question.")),
            ),
        ):
            form.addRow(label, field)
            if note is not None:
                form.addRow("", note)
        form.addRow(self.tr("Home folder"), self._fact(str(engine.home.root)))
        form.addRow(self.tr("Storage used"), self._fact(self._storage()))
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.reject)
        layout = QVBoxLayout(self)
        layout.addLayout(form)
        layout.addStretch(1)
        layout.addWidget(buttons)
        self.setMinimumWidth(self.fontMetrics().averageCharWidth() * 60)
        engine.request("settings.get", done=self._on_settings)

    def _on_settings(self, settings: Row) -> None:
        self.threads.setValue(int(settings.get("threads") or 0))
        self.threads.setEnabled(True)

    def _on_threads(self) -> None:
        if self.threads.isEnabled():
            self._engine.request("settings.set", {"threads": self.threads.value() or None})

    def _on_language(self, number: int) -> None:
        self._preferences.language = LANGUAGES[number]
        self._language_note.setText(self.tr("The language changes at the next start."))
        self._language_note.show()

    def _on_theme(self, number: int) -> None:
        self._preferences.theme = THEMES[number]
        theme.current().use(THEMES[number])

    def _storage(self) -> str:
        documents = sum(row.get("bytes") or 0 for row in self._mirror.documents.values())
        models = sum(row.get("bytes") or 0 for row in self._mirror.models.values() if row.get("installed"))
        free = shutil.disk_usage(self._engine.home.root).free
        return self.tr("Documents {0} · models {1} · free on this disk {2}").format(
            words.size(documents), words.size(models), words.size(free)
        )

    def _note(self, text: str) -> QLabel:
        return QLabel(text, objectName="quiet", wordWrap=True)

    def _fact(self, text: str) -> QLabel:
        label = QLabel(text, wordWrap=True)
        label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard)
        return label


def _choice(name: str, values: tuple[str, ...], texts: tuple[str, ...], chosen: str) -> QComboBox:
    box = QComboBox(accessibleName=name)
    box.addItems(list(texts))
    box.setCurrentIndex(values.index(chosen))
    return box
