"""The window: three panes and a status line, and who tells whom."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import (
    QCloseEvent,
    QDragEnterEvent,
    QDragLeaveEvent,
    QDropEvent,
    QGuiApplication,
    QPaintEvent,
    QResizeEvent,
    QShowEvent,
)
from PySide6.QtWidgets import QFileDialog, QMainWindow, QMessageBox, QSplitter, QVBoxLayout, QWidget

import resources
from app import menus, theme
from app.adding import Adder, paths_in
from app.chat.pane import ChatPane
from app.commands import Commands
from app.drop_overlay import DropOverlay
from app.engine_client import Engine
from app.first_start import StartPage
from app.library.pane import LibraryPane
from app.mirror import Mirror, Row
from app.preferences import Preferences
from app.reader.pane import ReaderPane
from app.settings.dialog import SettingsDialog
from app.settings.installing import Installing
from app.settings.models import ModelsDialog
from app.shortcuts import ShortcutsDialog
from app.status_line import StatusLine
from app.trouble import Trouble, TroubleBar, explain
from engine.errors import LongshelfError


class Window(QMainWindow):
    painted = Signal()  # once, after the first paint

    def __init__(self, engine: Engine, preferences: Preferences, language: str) -> None:
        super().__init__()
        self.setWindowTitle("Longshelf")
        self.setAcceptDrops(True)
        self.engine = engine
        self.preferences = preferences
        self._language = language
        self._was_painted = False
        self.mirror = Mirror(engine, self)
        self.commands = Commands(self)
        self.adder = Adder(engine, self)
        self.installing = Installing(engine, self)
        self.trouble = TroubleBar()
        self.start = StartPage(engine, self.mirror, self.commands, language)
        self.library = LibraryPane(engine, self.mirror, self.commands)
        self.chat = ChatPane(engine, self.mirror, self.commands, preferences, self.start)
        self.reader = ReaderPane(engine, self.mirror, self.commands)
        self.status = StatusLine(self.mirror, self)
        self.setStatusBar(self.status)

        self._panes = QSplitter(Qt.Orientation.Horizontal)
        for pane, share in ((self.library, 0), (self.chat, 1), (self.reader, 0)):
            self._panes.addWidget(pane)
            self._panes.setStretchFactor(self._panes.indexOf(pane), share)
        self._panes.setCollapsible(1, False)
        page = QWidget()
        layout = QVBoxLayout(page)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.trouble)
        layout.addWidget(self._panes, 1)
        self.setCentralWidget(page)
        self.overlay = DropOverlay(self)
        menus.fill(self.menuBar(), self.commands)
        self._connect()
        self._restore_geometry()

    def add(self, paths: list[Path]) -> None:
        self.adder.add(paths)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if not self._was_painted:
            self._was_painted = True
            QTimer.singleShot(0, self, self.painted.emit)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not event.spontaneous() and not self._was_painted:
            panes = self.preferences.bytes_of("panes")
            if panes is None or not self._panes.restoreState(panes):
                width = self._panes.width()
                self._panes.setSizes([width * 22 // 100, width * 45 // 100, width * 33 // 100])

    def closeEvent(self, event: QCloseEvent) -> None:
        self.keep()
        self.engine.close()
        super().closeEvent(event)

    def keep(self) -> None:
        """Put on disk what would be missed after a sudden end."""
        self.chat.keep_draft()
        self.preferences.keep_bytes("window", self.saveGeometry())
        self.preferences.keep_bytes("panes", self._panes.saveState())
        self.preferences.sync()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.overlay.setGeometry(self.rect())

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if paths := paths_in(event.mimeData()):
            event.setDropAction(Qt.DropAction.CopyAction)
            event.accept()
            self.overlay.show_for(paths)

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        self.overlay.put_away()

    def dropEvent(self, event: QDropEvent) -> None:
        self.overlay.put_away()
        event.setDropAction(Qt.DropAction.CopyAction)
        event.accept()
        paths = paths_in(event.mimeData())
        QTimer.singleShot(0, self, lambda: self.add(paths))  # whoever dropped them waits for our answer

    def _connect(self) -> None:
        commands = self.commands
        commands.add_files.triggered.connect(self._choose_files)
        commands.add_folder.triggered.connect(self._choose_folder)
        commands.paste_path.triggered.connect(self._paste)
        commands.quit.triggered.connect(self.close)
        commands.search.triggered.connect(self._search)
        commands.settings.triggered.connect(self._open_settings)
        commands.models.triggered.connect(self._open_models)
        commands.shortcuts.triggered.connect(lambda: ShortcutsDialog(commands, self).open())
        commands.handbook.triggered.connect(self._open_handbook)
        commands.about.triggered.connect(self._about)
        commands.next_pane.triggered.connect(self._next_pane)
        commands.export_chat.triggered.connect(self._export)
        for action, pane in ((commands.show_library, self.library), (commands.show_source, self.reader)):
            action.setChecked(True)
            action.toggled.connect(pane.setVisible)

        self.engine.lost.connect(self._on_lost)
        self.engine.ready.connect(self._on_ready)
        self.engine.trouble.connect(self._tell)
        self.adder.trouble.connect(self._tell)
        self.installing.failed.connect(self._on_not_installed)
        self.installing.downloading.connect(self.status.set_downloading)
        self.chat.trouble.connect(self._tell)
        self.adder.added.connect(self._on_added)
        self.adder.reading.connect(self.status.set_reading)
        self.chat.composer.files_pasted.connect(self.add)
        self.chat.citation_opened.connect(self._on_citation)
        self.chat.chat_changed.connect(self._on_chat)
        self.chat.chooser.changed.connect(self._on_chosen)
        self.library.document_opened.connect(self._on_document)
        self.library.ask_about.connect(self.chat.new_chat)
        self.library.chat_opened.connect(self.chat.open_chat)
        self.library.chat_removed.connect(self.chat.close_chat)
        self.start.question_clicked.connect(self.chat.ask)
        self.start.handbook_wanted.connect(lambda path: self.add([path]))
        self.start.downloading.connect(self.status.set_downloading)
        self.mirror.chats_changed.connect(lambda _: self.library.select_chat(self.chat.conversation.id))

    def _restore_geometry(self) -> None:
        character = self.fontMetrics().averageCharWidth()
        if (saved := self.preferences.bytes_of("window")) is None or not self.restoreGeometry(saved):
            available = self.screen().availableSize()
            self.resize(min(character * 185, available.width()), min(self.fontMetrics().height() * 46, available.height()))

    def _choose_files(self) -> None:
        files, _ = QFileDialog.getOpenFileNames(self, self.tr("Add documents"))
        self.add([Path(file) for file in files])

    def _choose_folder(self) -> None:
        if folder := QFileDialog.getExistingDirectory(self, self.tr("Add a folder")):
            self.add([Path(folder)])

    def _paste(self) -> None:
        if paths := paths_in(QGuiApplication.clipboard().mimeData()):
            self.add(paths)
        else:
            self.trouble.tell(
                Trouble(self.tr("No path was copied."), self.tr("Copy a file in the file manager, or its path, and try again."))
            )

    def _search(self) -> None:
        self.commands.show_library.setChecked(True)
        self.library.search.setFocus()
        self.library.search.selectAll()

    def _next_pane(self) -> None:
        stops = [self.library.document_view, self.chat.composer, self.reader.text]
        shown = [stop for stop in stops if stop.isVisible()]
        focused = next((number for number, stop in enumerate(shown) if stop.hasFocus()), -1)
        shown[(focused + 1) % len(shown)].setFocus()

    def _open_settings(self) -> None:
        SettingsDialog(self.engine, self.mirror, self.preferences, self).open()

    def _open_models(self) -> None:
        ModelsDialog(self.engine, self.mirror, self.installing, self).open()

    def _on_not_installed(self, error: LongshelfError) -> None:
        if self.findChild(ModelsDialog) is None:  # which tells it where it was begun
            self._tell(error)

    def _open_handbook(self) -> None:
        self.commands.show_source.setChecked(True)
        self.reader.show_file(str(resources.handbook(self._language)))

    def _about(self) -> None:
        version = self.engine.about.get("version") or ""
        text = self.tr("Reads long documents once, remembers them, and answers with the place in the source. Offline.")
        QMessageBox.about(self, self.tr("About Longshelf"), f"Longshelf {version}\n\n{text}\n\n{self.tr('Licence: Apache-2.0')}")

    def _export(self) -> None:
        if not (chat := self.chat.conversation.id):
            return
        filters = {self.tr("Markdown (*.md)"): "markdown", self.tr("JSON (*.json)"): "json"}
        name = "".join(
            character if character.isalnum() or character in " -_" else " " for character in self.chat.conversation.title
        ).strip()
        file, chosen = QFileDialog.getSaveFileName(self, self.tr("Export chat"), f"{name or 'chat'}.md", ";;".join(filters))
        if file:
            form = "json" if file.endswith(".json") else filters.get(chosen, "markdown")
            self.engine.request("chats.export", {"id": chat, "format": form}, done=lambda result: self._save(Path(file), result))

    def _save(self, file: Path, result: Row) -> None:
        try:
            file.write_text(str(result.get("text") or ""), encoding="utf-8")
        except OSError as error:
            self._tell(LongshelfError("unwritable", self.tr("{0} can't be written: {1}.").format(file, error.strerror or error)))

    def _on_added(self, documents: list[str]) -> None:
        """What was just added is what the next question is about, unless a chat is under way."""
        if documents and not self.chat.conversation.path():
            self.mirror.when_known(documents, lambda: self.chat.chooser.choose(documents))

    def _on_chosen(self) -> None:
        self.start.about(self.chat.chooser.documents)

    def _on_document(self, document: str) -> None:
        self.reader.show_document(document)
        if self.chat.conversation.path():
            self.chat.offer([document])
        else:
            self.chat.chooser.choose([document])

    def _on_citation(self, citations: list[Row], current: int) -> None:
        self.commands.show_source.setChecked(True)
        self.reader.show_citations(citations, current)

    def _on_chat(self, chat: str) -> None:
        self.preferences.chat = chat
        self.library.select_chat(chat)

    def _on_ready(self, about: Row) -> None:
        if (chat := self.preferences.chat) and not self.chat.conversation.path():
            self.chat.open_chat(chat)

    def _on_lost(self, error: LongshelfError, again: bool) -> None:
        if again:
            self.trouble.tell(explain(error))
        else:
            told = replace(explain(error), next_step=self.tr("It stopped several times and was not started again."))
            self.trouble.tell(told, self.tr("Start the engine"), self.engine.restart)

    def _tell(self, error: LongshelfError) -> None:
        self.trouble.tell(explain(error))


def korean_font_trouble() -> Trouble | None:
    """Said once when the window speaks Korean and no font can write it; in English, which can be read."""
    if theme.can_write_korean():
        return None
    return Trouble("No Korean font is installed.", "Install one (Debian, Ubuntu: apt install fonts-noto-cjk) and start again.")
