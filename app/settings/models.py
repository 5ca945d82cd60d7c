"""The models: which are here, which one answers, what each costs on this machine; adding, downloading and removing one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QStandardItem, QStandardItemModel
from PySide6.QtWidgets import (
    QAbstractItemView,
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QHBoxLayout,
    QLabel,
    QListView,
    QProgressBar,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app import words
from app.confirm import confirmed
from app.engine_client import Engine
from app.library.delegate import TwoLines
from app.library.documents import DETAIL, ICON, ROW
from app.mirror import Mirror, Row
from app.settings.installing import Installing
from app.trouble import explain
from engine.errors import LongshelfError

PACKS = (None, "q8_0", "q4_0")
"""What the weights of an added folder can be packed as here; the command line knows more."""


class ModelsDialog(QDialog):
    def __init__(self, engine: Engine, mirror: Mirror, installing: Installing, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(self.tr("Models"))
        self._engine = engine
        self._mirror = mirror
        self._installing = installing
        self._refusal: LongshelfError | None = None  # of the engine, to use or remove a model

        self._model = QStandardItemModel(self)
        self.view = QListView(accessibleName=self.tr("Models"), uniformItemSizes=True)
        self.view.setModel(self._model)
        self.view.setItemDelegate(TwoLines(self.view))
        self.view.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.use_button = self._button(self.tr("&Use this model"), self._use)
        self.fetch_button = self._button(self.tr("&Download"), self._fetch)
        self.remove_button = self._button(self.tr("&Remove…"), self._remove)
        self.file_button = self._button(self.tr("Add a &GGUF file…"), self._choose_file)
        self.folder_button = self._button(self.tr("Add a &folder…"), self._choose_folder)
        self.pack = QComboBox(accessibleName=self.tr("Weights of the folder"))
        self.pack.addItems([self.tr("weights as they are"), self.tr("weights packed to 8 bits"), self.tr("weights packed to 4 bits")])
        self.pack.setToolTip(self.tr("Packed weights take less memory and answer a little worse. A GGUF that is packed stays as it is."))
        self._about = QLabel(
            self.tr(
                "A model of yours: a GGUF file, or a folder from Hugging Face with config.json, safetensors files and a tokenizer. "
                "It is copied into the home; nothing goes online."
            ),
            objectName="quiet",
            wordWrap=True,
        )
        self._progress = QProgressBar(accessibleName=self.tr("Progress of the installation"), textVisible=False)
        self._stage = QLabel(objectName="quiet")
        self.cancel_button = self._button(self.tr("Cancel"), installing.stop)
        self._said = QLabel(wordWrap=True, textFormat=Qt.TextFormat.PlainText)
        self._said.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard)
        self.plain_button = self._button(self.tr("Add it without a chat template"), installing.add_without_template)

        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.reject)
        layout = QVBoxLayout(self)
        layout.addWidget(self.view, 1)
        layout.addLayout(_row(self.use_button, self.fetch_button, self.remove_button))
        layout.addWidget(self._about)
        layout.addLayout(_row(self.file_button, self.folder_button, self.pack))
        layout.addWidget(self._progress)
        layout.addLayout(_row(self._stage, self.cancel_button))
        layout.addWidget(self._said)
        layout.addLayout(_row(self.plain_button))
        layout.addWidget(buttons)
        self.resize(self.fontMetrics().averageCharWidth() * 115, self.fontMetrics().height() * 28)

        mirror.models_changed.connect(self._on_models)
        installing.changed.connect(self._say)
        self.view.selectionModel().currentChanged.connect(lambda *_: self._say())
        self._fill()

    def add(self, path: Path) -> None:
        """Install the model at this path."""
        self._refusal = None
        self._installing.add(path, PACKS[self.pack.currentIndex()])

    def said(self) -> str:
        """What is told about the last thing that was tried."""
        return self._said.text()

    def chosen(self) -> Row:
        """The row of the model that is marked; empty if there is none."""
        index = self.view.currentIndex()
        return index.data(ROW) if index.isValid() else {}

    def choose(self, name: str) -> None:
        """Mark a model."""
        for number in range(self._model.rowCount()):
            if self._model.index(number, 0).data(ROW)["name"] == name:
                self.view.setCurrentIndex(self._model.index(number, 0))

    def _on_models(self, rows: list[Row]) -> None:
        self._fill()

    def _fill(self) -> None:
        """The list anew: those that run here before those that don't, the one in use first."""
        marked = self.chosen().get("name") or (self._mirror.current_model() or {}).get("name")
        rows = sorted(
            self._mirror.models.values(),
            key=lambda row: (not row.get("installed"), not row.get("current"), row.get("fits") is False, -(row.get("bytes") or 0)),
        )
        self._model.clear()
        for row in rows:
            item = QStandardItem(str(row["name"]))
            detail = words.model(row)
            item.setData(detail, DETAIL)
            item.setData(_icon(row), ICON)
            item.setData(row, ROW)
            item.setToolTip(detail)
            item.setData(f"{row['name']}, {detail}", Qt.ItemDataRole.AccessibleTextRole)
            self._model.appendRow(item)
        self.choose(str(marked or (rows[0]["name"] if rows else "")))
        self._say()

    def _say(self) -> None:
        """What can be done now, how far the installation is, and what came of the last one."""
        row, installing = self.chosen(), self._installing
        installed = bool(row.get("installed"))
        self.use_button.setEnabled(installed and not row.get("current") and not row.get("problem"))
        self.remove_button.setEnabled(installed and not installing.busy)
        self.fetch_button.setVisible(bool(row) and not installed)
        for button in (self.fetch_button, self.file_button, self.folder_button, self.pack):
            button.setEnabled(not installing.busy)
        for widget in (self._progress, self._stage, self.cancel_button):
            widget.setVisible(installing.busy)
        self._progress.setRange(0, 1000 if installing.total > 1 else 0)
        if installing.total > 1:
            self._progress.setValue(round(1000 * installing.done / installing.total))
        self._stage.setText(installing.amount())
        said = self._outcome()
        self._said.setText(said)
        self._said.setVisible(bool(said))
        self.plain_button.setVisible(not installing.busy and installing.error is not None and installing.error.kind == "no_template")

    def _outcome(self) -> str:
        if (error := self._refusal or self._installing.error) is not None:
            trouble = explain(error)
            if error.kind == "no_template":  # its next step is a button
                return trouble.happened
            return " ".join(filter(None, (trouble.happened, trouble.next_step)))
        installing = self._installing
        if not installing.installed or installing.busy:
            return ""
        installed = self.tr("{0} is installed.").format(installing.installed)
        if installing.measured:
            return installed
        guess = self.tr("How large its parts should be is a guess until “longshelf models calibrate {0}” in a terminal has measured it.")
        return f"{installed} {guess.format(installing.installed)}"

    def _use(self) -> None:
        row = self.chosen()
        read = [document for document in self._mirror.documents.values() if document.get("parts_ready")]
        if read and not confirmed(self, self.tr("Answer with {0} from now on?").format(row["name"]), self._cost(row, read), self.tr("Use")):
            return
        self._request("models.use", str(row["name"]))

    def _cost(self, row: Row, read: list[Row]) -> str:
        """What changing to this model means for the documents that were read."""
        gigabytes = float(row.get("gb_per_100_pages") or 0)
        pages = sum(document.get("tokens") or 0 for document in read) / (row.get("tokens_a_page") or 500)
        return self.tr(
            "%n document(s) must be read again before this model can be asked about them, unless it read them before: about {0} on "
            "the disk. What the other model remembers stays, and serves again when you go back to it.",
            "",
            len(read),
        ).format(words.size(gigabytes * 1e9 * pages / 100))

    def _remove(self) -> None:
        row = self.chosen()
        freed = words.size(row.get("bytes") or 0)
        detail = self.tr("{0} are freed. What it read stays until room is needed, and chats stay.").format(freed)
        if confirmed(self, self.tr("Remove the model {0}?").format(row["name"]), detail, self.tr("Remove")):
            self._request("models.remove", str(row["name"]))

    def _request(self, method: str, name: str) -> None:
        self._refusal = None
        self._engine.request(method, {"name": name}, failed=self._on_refused)

    def _on_refused(self, error: LongshelfError) -> None:
        self._refusal = error
        self._say()

    def _fetch(self) -> None:
        self._refusal = None
        self._installing.fetch(str(self.chosen()["name"]))

    def _choose_file(self) -> None:
        file, _ = QFileDialog.getOpenFileName(self, self.tr("Add a GGUF file"), "", self.tr("GGUF models (*.gguf)"))
        if file:
            self.add(Path(file))

    def _choose_folder(self) -> None:
        if folder := QFileDialog.getExistingDirectory(self, self.tr("Add a model's folder")):
            self.add(Path(folder))

    def _button(self, text: str, act: Callable[[], object]) -> QPushButton:
        button = QPushButton(text, autoDefault=False)
        button.clicked.connect(lambda: act())
        return button


def _icon(row: Row) -> str:
    if row.get("problem") or row.get("fits") is False:
        return "warning"
    return "ready" if row.get("current") else "library" if row.get("installed") else "down"


def _row(*widgets: QWidget) -> QHBoxLayout:
    row = QHBoxLayout()
    for widget in widgets:
        row.addWidget(widget)
    row.addStretch(1)
    return row
