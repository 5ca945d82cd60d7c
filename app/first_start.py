"""What stands in the chat before its first question: at the very first start the offer of a model, then questions to click."""

from __future__ import annotations

import time
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QLabel, QProgressBar, QPushButton, QScrollArea, QToolButton, QVBoxLayout, QWidget

import resources
from app import words
from app.commands import Commands
from app.engine_client import Engine, Reply
from app.mirror import Mirror, Row
from app.trouble import explain
from engine.errors import LongshelfError


class StartPage(QScrollArea):
    question_clicked = Signal(str)
    handbook_wanted = Signal(Path)  # to be added and asked about
    downloading = Signal(bool)

    def __init__(self, engine: Engine, mirror: Mirror, commands: Commands, language: str, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="transcript", widgetResizable=True, frameShape=QFrame.Shape.NoFrame)
        self._engine = engine
        self._mirror = mirror
        self._language = language
        self._fetching: Reply | None = None
        self._failure = ""
        self._stage_name, self._stage_since, self._stage_from = "", 0.0, 0
        self._asked: list[str] = []

        self._title = QLabel(objectName="title", wordWrap=True)
        self._text = QLabel(wordWrap=True, textFormat=Qt.TextFormat.PlainText)
        self._progress = QProgressBar(visible=False, accessibleName=self.tr("Progress of the installation"))
        self._stage = QLabel(objectName="quiet", wordWrap=True, visible=False)
        self._install = QPushButton(self.tr("Download and install"), objectName="primary", visible=False)
        self._install.clicked.connect(self.install)
        self._own = QPushButton(self.tr("Use a model of yours…"), visible=False)
        self._own.clicked.connect(commands.models.trigger)
        self._cancel = QPushButton(self.tr("Cancel"), visible=False)
        self._cancel.clicked.connect(self._on_cancel)
        self._add = QToolButton(visible=False)
        self._add.setDefaultAction(commands.add_files)
        self._add.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._handbook = QPushButton(self.tr("Start with the handbook"), visible=False)
        self._handbook.clicked.connect(lambda: self.handbook_wanted.emit(self._handbook_path()))
        self._suggestions = QVBoxLayout()

        card = QFrame(objectName="card")
        card.setMaximumWidth(self.fontMetrics().averageCharWidth() * 90)
        inside = QVBoxLayout(card)
        margin = self.fontMetrics().height()
        inside.setContentsMargins(margin, margin, margin, margin)
        inside.setSpacing(margin // 2)
        for widget in (self._title, self._text, self._progress, self._stage):
            inside.addWidget(widget)
        for button in (self._install, self._own, self._cancel, self._add, self._handbook):
            inside.addWidget(button, 0, Qt.AlignmentFlag.AlignLeft)
        inside.addLayout(self._suggestions)
        page = QWidget(objectName="transcriptPage")
        layout = QVBoxLayout(page)
        layout.setContentsMargins(margin, margin, margin, margin)
        layout.addStretch(1)
        layout.addWidget(card)
        layout.addStretch(2)
        self.setWidget(page)
        mirror.models_changed.connect(lambda _: self._say())
        mirror.documents_changed.connect(self._on_documents)
        mirror.status_changed.connect(lambda _: self._say())
        self._say()

    def about(self, documents: list[str]) -> None:
        """The documents the next question is about."""
        self._asked = documents
        self._say()

    def install(self) -> None:
        """Download and install the default model; the handbook opens when that is done."""
        self._failure = ""
        self._fetching = self._engine.request("models.fetch", done=self._on_installed, failed=self._on_failed, event=self._on_progress)
        self._progress.setRange(0, 0)
        self._stage.setText(self.tr("Starting the download…"))
        self.downloading.emit(True)
        self._say()

    def _on_documents(self, rows: list[Row]) -> None:
        if not self._asked or any(row["id"] in self._asked for row in rows):
            self._say()

    def _on_progress(self, name: str, data: Row) -> None:
        if name != "progress":
            return
        done, total = data.get("done") or 0, data.get("total") or 0
        self._progress.setRange(0, 1000 if total else 0)
        if total:
            self._progress.setValue(round(1000 * done / total))
        stage = words.install_stage(str(data.get("stage")))
        amount = f"{words.size(done)} / {words.size(total)}" if total and data.get("stage") == "download" else ""
        self._stage.setText(words.join(stage, amount, self._time_left(str(data.get("stage")), done, total)))

    def _time_left(self, stage: str, done: int, total: int) -> str:
        """Of this stage, at its mean speed so far; nothing until that can be told."""
        now = time.monotonic()
        if stage != self._stage_name:
            self._stage_name, self._stage_since, self._stage_from = stage, now, done
        elapsed, moved = now - self._stage_since, done - self._stage_from
        return words.time_left((total - done) * elapsed / moved) if elapsed > 1 and moved > 0 and done < total else ""

    def _on_installed(self, result: Row) -> None:
        self._end_fetching()
        if not result.get("stopped"):
            self.handbook_wanted.emit(self._handbook_path())

    def _on_failed(self, error: LongshelfError) -> None:
        trouble = explain(error)
        self._failure = " ".join(filter(None, (trouble.happened, trouble.next_step)))
        self._end_fetching()

    def _on_cancel(self) -> None:
        if self._fetching is not None:
            self._fetching.stop()

    def _end_fetching(self) -> None:
        self._fetching = None
        self.downloading.emit(False)
        self._say()

    def _handbook_path(self) -> Path:
        """The handbook in the language of the window, if the model reads it; else the English one."""
        model = self._mirror.current_model() or {}
        return resources.handbook(self._language if self._language in (model.get("languages") or ["en"]) else "en")

    def _handbook_language(self) -> str | None:
        """The language of the handbook, if the question is about it alone."""
        if len(self._asked) != 1:
            return None
        path = str(self._mirror.documents.get(self._asked[0], {}).get("path") or "")
        return next((language for language in ("en", "ko") if path == str(resources.handbook(language))), None)

    def _say(self) -> None:
        """Show the card that fits what is installed and chosen."""
        offer = self._mirror.models_known and self._mirror.current_model() is None
        fetching = self._fetching is not None
        empty = not offer and not fetching and self._mirror.models_known and not self._mirror.documents
        for widget in (self._install, self._own):
            widget.setVisible(offer and not fetching)
        for widget in (self._progress, self._cancel):
            widget.setVisible(fetching)
        self._stage.setVisible(fetching or bool(self._failure and offer))
        if self._failure and offer and not fetching:
            self._stage.setText(self._failure)
        self._add.setVisible(empty)
        self._handbook.setVisible(empty)
        if offer or fetching:
            self._set(self.tr("Welcome to Longshelf"), self._offer())
        elif empty:
            self._set(self.tr("Add a book, a contract, a folder of code"), self._invitation())
        elif not self._mirror.models_known:
            self._set(self.tr("Longshelf"), self.tr("Starting the engine…"))
        else:
            self._set(self._question_title(), self._question_text())
        self._suggest([] if offer or fetching else self._questions())

    def _set(self, title: str, text: str) -> None:
        self._title.setText(title)
        self._text.setText(text)

    def _offer(self) -> str:
        purpose = self.tr(
            "Longshelf reads a long document once, remembers it on this computer and answers questions about it, with the place in "
            "the source beside every answer. Nothing leaves this computer."
        )
        download = self.tr(
            "To begin, it needs a language model: SmolLM2-135M-Instruct (licence Apache-2.0), a download of about 93 MB that takes "
            "about 100 MB on disk. It is the only time the network is used."
        )
        limits = self.tr(
            "It is a trial model: small, quick, and English only. It finds places well, but its answers are often wrong, and it "
            "can't reason, calculate or read other languages well. Larger models can be installed later."
        )
        return "\n\n".join((purpose, download, limits))

    def _invitation(self) -> str:
        return self.tr(
            "Drop files or a folder anywhere on this window, paste a path, or choose files. Plain text, Markdown and source code "
            "are read. The document is read once; you can ask as soon as its first part is finished."
        )

    def _question_title(self) -> str:
        titles = [self._mirror.title_of(document) for document in self._asked]
        if len(titles) == 1:
            return self.tr("Ask about “{0}”").format(titles[0])
        return self.tr("Ask about %n document(s)", "", len(titles)) if titles else self.tr("Ask your documents")

    def _question_text(self) -> str:
        rows = [self._mirror.documents.get(document, {}) for document in self._asked]
        if any(not words.is_askable(row) for row in rows):
            return words.join(*(words.state(row) for row in rows if not words.is_askable(row)))
        if self._handbook_language() == "en" and self._language != "en":
            return self.tr("The trial model reads English, so this is the English handbook. The Help menu has it in your language.")
        return self.tr("The answer shows where it stands in the text.")

    def _questions(self) -> list[str]:
        language = self._handbook_language()
        return list(resources.questions(language))[:3] if language else []

    def _suggest(self, questions: list[str]) -> None:
        shown = [self._suggestions.itemAt(number).widget().text() for number in range(self._suggestions.count())]
        ready = all(words.is_askable(self._mirror.documents.get(document, {})) for document in self._asked)
        if shown != questions:
            while self._suggestions.count():
                self._suggestions.takeAt(0).widget().deleteLater()
            for question in questions:
                button = QPushButton(question, objectName="suggestion")
                button.clicked.connect(lambda _=False, question=question: self.question_clicked.emit(question))
                self._suggestions.addWidget(button)
        for number in range(self._suggestions.count()):
            self._suggestions.itemAt(number).widget().setEnabled(ready)
