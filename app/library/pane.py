"""The library pane: search, the documents with what can be done to them, and the chats."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QItemSelectionModel, QModelIndex, QPoint, Qt, QUrl, Signal
from PySide6.QtGui import QAction, QDesktopServices, QIcon
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QListView,
    QMenu,
    QSplitter,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app import theme, words
from app.commands import Commands
from app.confirm import confirmed
from app.engine_client import Engine
from app.library.chats import Chats
from app.library.delegate import TwoLines
from app.library.documents import ID, ROW, Documents, TitleFilter
from app.library.skipped import SkippedDialog
from app.mirror import Mirror, Row


class LibraryPane(QFrame):
    document_opened = Signal(str)
    ask_about = Signal(list)  # ids of documents
    chat_opened = Signal(str)
    chat_removed = Signal(str)

    def __init__(self, engine: Engine, mirror: Mirror, commands: Commands, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="pane")
        self._engine = engine
        self._mirror = mirror
        self._commands = commands
        self.documents = Documents(mirror, self)
        self._titles = TitleFilter(self.documents, self)
        self.chats = Chats(engine, mirror, self)

        self.search = QLineEdit(
            self, clearButtonEnabled=True, placeholderText=self.tr("Search"), accessibleName=self.tr("Search the library")
        )
        theme.current().wear(self.search.addAction(QIcon(), QLineEdit.ActionPosition.LeadingPosition), "search")
        self.search.textChanged.connect(self._titles.search)
        self.search.textChanged.connect(self.chats.search)

        self.document_view = _list(self.tr("Documents"), self._titles, QAbstractItemView.SelectionMode.ExtendedSelection)
        self.document_view.activated.connect(lambda index: self.ask_about.emit([index.data(ID)]))
        self.document_view.clicked.connect(lambda index: self.document_opened.emit(index.data(ID)))
        self.document_view.customContextMenuRequested.connect(self._document_menu)
        self.chat_view = _list(self.tr("Chats"), self.chats, QAbstractItemView.SelectionMode.SingleSelection)
        self.chat_view.setEditTriggers(QAbstractItemView.EditTrigger.EditKeyPressed)
        self.chat_view.activated.connect(lambda index: self.chat_opened.emit(index.data(ID)))
        self.chat_view.clicked.connect(lambda index: self.chat_opened.emit(index.data(ID)))
        self.chat_view.customContextMenuRequested.connect(self._chat_menu)

        halves = QSplitter(Qt.Orientation.Vertical, childrenCollapsible=False)
        halves.addWidget(_section(self.tr("Documents"), self.document_view))
        halves.addWidget(_section(self.tr("Chats"), self.chat_view))
        halves.setStretchFactor(0, 3)
        halves.setStretchFactor(1, 2)
        add = QToolButton(autoRaise=True)
        add.setDefaultAction(commands.add_files)
        add.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonIconOnly)
        head = QHBoxLayout()
        head.addWidget(self.search, 1)
        head.addWidget(add)
        layout = QVBoxLayout(self)
        layout.addLayout(head)
        layout.addWidget(halves, 1)
        self._connect()

    def select_chat(self, chat: str) -> None:
        """Mark the open chat, without opening it again."""
        index = self.chats.index_of(chat)
        flag = QItemSelectionModel.SelectionFlag.ClearAndSelect if index.isValid() else QItemSelectionModel.SelectionFlag.Clear
        self.chat_view.selectionModel().setCurrentIndex(index, flag)

    def select_document(self, document: str) -> None:
        index = self._titles.mapFromSource(self.documents.index_of(document))
        self.document_view.selectionModel().setCurrentIndex(index, QItemSelectionModel.SelectionFlag.ClearAndSelect)

    def selected_documents(self) -> list[Row]:
        return [index.data(ROW) for index in self.document_view.selectionModel().selectedIndexes()]

    def _connect(self) -> None:
        for action, method in (
            (self._commands.pause, "jobs.pause"),
            (self._commands.resume, "jobs.resume"),
            (self._commands.retry, "jobs.retry"),
            (self._commands.cancel, "jobs.cancel"),
        ):
            action.triggered.connect(lambda _=False, method=method: self._on_jobs(method))
        self._commands.pause_all.triggered.connect(lambda: self._engine.request("jobs.pause"))
        self._commands.resume_all.triggered.connect(lambda: self._engine.request("jobs.resume"))
        self._commands.ask_about.triggered.connect(lambda: self.ask_about.emit([row["id"] for row in self.selected_documents()]))
        self._commands.read_again.triggered.connect(self._read_again)
        self._commands.show_file.triggered.connect(self._show_file)
        self._commands.show_skipped.triggered.connect(self._show_skipped)
        self._commands.forget.triggered.connect(self._forget)
        self._commands.remove.triggered.connect(self._remove)
        self._commands.rename_chat.triggered.connect(lambda: self.chat_view.edit(self.chat_view.currentIndex()))
        self._commands.remove_chat.triggered.connect(self._remove_chat)
        # Delete belongs to the list that has the focus; in a text field it must stay an ordinary key.
        self._commands.remove.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        self.document_view.addAction(self._commands.remove)
        self._commands.rename_chat.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        self.chat_view.addAction(self._commands.rename_chat)

    def _document_menu(self, position: QPoint) -> None:
        rows = self.selected_documents()
        if not self.document_view.indexAt(position).isValid() or not rows:
            _menu(self, [self._commands.add_files, self._commands.add_folder, self._commands.paste_path]).popup(
                self.document_view.viewport().mapToGlobal(position)
            )
            return
        self.document_actions(rows).popup(self.document_view.viewport().mapToGlobal(position))

    def document_actions(self, rows: list[Row]) -> QMenu:
        """What can be done to these documents now; what can't is not offered."""
        states = {row.get("state") for row in rows}
        commands = self._commands
        actions: list[QAction | None] = []
        if any(words.is_askable(row) for row in rows):
            actions += [commands.ask_about, None]
        if any(words.is_working(row) for row in rows):
            actions += [commands.pause, commands.cancel]
        given_up = {row["id"] for row in rows if row.get("reason") in ("cancelled", "added without reading")}
        if any(row.get("state") == "paused" and row["id"] not in given_up for row in rows):
            actions.append(commands.resume)
        if states & {"failed", "damaged"} or given_up:
            actions.append(commands.retry)
        if any(words.is_read_by_another(row) for row in rows):
            actions.append(commands.read_again)
        actions.append(None)
        if len(rows) == 1 and rows[0].get("path") and not rows[0].get("source_missing"):
            actions.append(commands.show_file)
        if len(rows) == 1 and rows[0].get("skipped_count"):
            actions.append(commands.show_skipped)
        forget = [commands.forget] if any(row.get("bytes") for row in rows) else []
        return _menu(self, [*actions, None, *forget, commands.remove])

    def _chat_menu(self, position: QPoint) -> None:
        actions: list[QAction | None] = [self._commands.new_chat]
        if self.chat_view.indexAt(position).isValid():
            actions += [None, self._commands.rename_chat, self._commands.export_chat, None, self._commands.remove_chat]
        _menu(self, actions).popup(self.chat_view.viewport().mapToGlobal(position))

    def _on_jobs(self, method: str) -> None:
        for row in self.selected_documents():
            if method == "jobs.retry" and row.get("reason") == "added without reading":  # it has no job yet
                self._engine.request("documents.add", {"paths": [row["path"]], "wait": False})
            else:
                self._engine.request(method, {"id": row["id"]})

    def _read_again(self) -> None:
        paths = [row["path"] for row in self.selected_documents() if words.is_read_by_another(row)]
        if paths:
            self._engine.request("documents.add", {"paths": paths, "wait": False})

    def _show_file(self) -> None:
        for row in self.selected_documents():
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(Path(row["path"]).parent)))

    def _show_skipped(self) -> None:
        for row in self.selected_documents():
            dialog = SkippedDialog(row, self)
            self._engine.request(
                "documents.show", {"id": row["id"]}, done=lambda shown, dialog=dialog: dialog.fill(shown.get("skipped", []))
            )
            dialog.open()

    def _forget(self) -> None:
        rows = [row for row in self.selected_documents() if row.get("bytes")]
        if not rows:
            return
        freed = words.size(sum(row["bytes"] for row in rows))
        question = self.tr("Forget what was read of %n document(s)?", "", len(rows))
        detail = self.tr("About {0} are freed. Text and chats stay; before the next question it has to be read again.").format(freed)
        if confirmed(self, question, detail, self.tr("Forget")):
            for row in rows:
                self._engine.request("documents.forget", {"id": row["id"]})

    def _remove(self) -> None:
        rows = self.selected_documents()
        if not rows:
            return
        freed = words.size(sum(row.get("bytes") or 0 for row in rows))
        if len(rows) == 1:
            question = self.tr("Remove “{0}” from the library?").format(rows[0].get("title"))
        else:
            question = self.tr("Remove %n document(s) from the library?", "", len(rows))
        detail = self.tr("Its memory is deleted and {0} are freed. The files on disk and the chats stay.").format(freed)
        if confirmed(self, question, detail, self.tr("Remove")):
            for row in rows:
                self._engine.request("documents.remove", {"id": row["id"]})

    def _remove_chat(self) -> None:
        index: QModelIndex = self.chat_view.currentIndex()
        if not index.isValid():
            return
        detail = self.tr("Its questions and answers are deleted. The documents stay.")
        if confirmed(self, self.tr("Delete the chat “{0}”?").format(index.data()), detail, self.tr("Delete")):
            chat = index.data(ID)
            self._engine.request("chats.remove", {"id": chat}, done=lambda _: self.chat_removed.emit(chat))


def _list(name: str, model: Documents | TitleFilter | Chats, selection: QAbstractItemView.SelectionMode) -> QListView:
    view = QListView(objectName="rows", accessibleName=name, selectionMode=selection, uniformItemSizes=True)
    view.setModel(model)
    view.setItemDelegate(TwoLines(view))
    view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
    view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    view.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
    view.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
    return view


def _section(title: str, view: QListView) -> QWidget:
    section = QWidget()
    heading = QLabel(title, objectName="heading")
    heading.setBuddy(view)
    layout = QVBoxLayout(section)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(0)
    layout.addWidget(heading)
    layout.addWidget(view, 1)
    return section


def _menu(parent: QWidget, actions: list[QAction | None]) -> QMenu:
    """None is a separator; doubled and trailing ones don't show."""
    menu = QMenu(parent)
    menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    for action in actions:
        if action is None:
            menu.addSeparator()
        else:
            menu.addAction(action)
    return menu
