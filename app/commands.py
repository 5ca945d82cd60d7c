"""Every command of the window as one QAction: its words, its key, its status tip and its icon. Menus, buttons and context menus share them.

What a command does is connected where it is known how; this module only says that it exists.
"""

from __future__ import annotations

import re

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QWidget

from app import theme

Keys = QKeySequence.StandardKey
Shortcut = str | Keys | list[str] | None


def plain(action: QAction) -> str:
    """The words of a command without the marks of its menu: no &, no (&X) as Korean writes it, no dots."""
    return re.sub(r"\(&.\)|&", "", action.text()).rstrip("…")


class Commands(QObject):
    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self._make_file_commands()
        self._make_library_commands()
        self._make_chat_commands()
        self._make_pane_commands()
        self._make_program_commands()

    def all(self) -> list[QAction]:
        return [action for action in vars(self).values() if isinstance(action, QAction)]

    def _make_file_commands(self) -> None:
        self.add_files = self._make(self.tr("&Add files…"), Keys.Open, self.tr("Add documents to the library"), "add")
        self.add_folder = self._make(
            self.tr("Add a &folder…"), "Ctrl+Shift+O", self.tr("Add a folder of text or code as one document"), "folder"
        )
        self.paste_path = self._make(
            self.tr("Add from the &clipboard"), "Ctrl+Shift+V", self.tr("Add the files whose paths were copied"), "paste"
        )
        self.quit = self._make(self.tr("&Quit"), Keys.Quit, self.tr("Close the window; reading goes on at the next start"))
        self.quit.setMenuRole(QAction.MenuRole.QuitRole)

    def _make_library_commands(self) -> None:
        self.search = self._make(
            self.tr("&Search the library"), ["Ctrl+K", "Ctrl+F"], self.tr("Find documents by title and chats by their words"), "search"
        )
        self.ask_about = self._make(self.tr("&Ask about this"), None, self.tr("Start a new chat about the selected documents"), "chat")
        self.pause = self._make(self.tr("&Pause"), None, self.tr("Stop reading this document for now; what is read is kept"), "pause")
        self.resume = self._make(self.tr("&Resume"), None, self.tr("Go on reading this document"), "resume")
        self.retry = self._make(self.tr("Try a&gain"), None, self.tr("Read this document again from where it failed"), "again")
        self.read_again = self._make(
            self.tr("Read with this &model"), None, self.tr("Let the model in use read this document, which another one has read"), "again"
        )
        self.cancel = self._make(
            self.tr("&Cancel reading"), None, self.tr("Stop reading this document; what is read stays askable"), "close"
        )
        self.remove = self._make(
            self.tr("Re&move from the library…"), Keys.Delete, self.tr("Forget the selected; files on disk stay"), "remove"
        )
        self.forget = self._make(
            self.tr("&Forget the memory…"), None, self.tr("Give the room of the selected back; text and chats stay"), "remove"
        )
        self.show_file = self._make(
            self.tr("Show the source &file"), None, self.tr("Open the folder in which the source file lies"), "folder"
        )
        self.show_skipped = self._make(
            self.tr("What was &skipped…"), None, self.tr("List the files left out of this folder, with the reason"), "details"
        )
        self.pause_all = self._make(self.tr("Pause &all reading"), None, self.tr("Stop reading every document for now"), "pause")
        self.resume_all = self._make(self.tr("Resume a&ll reading"), None, self.tr("Go on reading every paused document"), "resume")

    def _make_chat_commands(self) -> None:
        self.new_chat = self._make(self.tr("&New chat"), Keys.New, self.tr("Start a new chat"), "chat")
        self.rename_chat = self._make(self.tr("Rena&me chat"), "F2", self.tr("Give the selected chat another name"), "edit")
        self.export_chat = self._make(self.tr("&Export chat…"), Keys.SaveAs, self.tr("Save the open chat as Markdown or JSON"), "export")
        self.remove_chat = self._make(self.tr("&Delete chat…"), None, self.tr("Delete the selected chat"), "remove")
        self.focus_question = self._make(
            self.tr("&Write a question"), "Ctrl+L", self.tr("Go to the place where questions are typed"), "edit"
        )
        self.choose_documents = self._make(
            self.tr("Choose &documents…"), "Ctrl+D", self.tr("Choose which documents the question is about"), "document"
        )
        self.send = self._make(self.tr("&Send"), None, self.tr("Send the question (Enter)"), "send")
        self.stop = self._make(self.tr("S&top"), "Esc", self.tr("Stop answering; the text so far is kept"), "stop")
        self.regenerate = self._make(self.tr("Answer a&gain"), "Ctrl+R", self.tr("Ask the last question again, as another branch"), "again")
        self.answer_exactly = self._make(
            self.tr("Answer e&xactly"), "Ctrl+E", self.tr("Ask the last question again in Exact mode, as another branch"), "again"
        )
        self.fast = self._make(
            self.tr("&Fast answers"),
            "Ctrl+Shift+F",
            self.tr("Read a part of the memory for each word, and estimate the rest"),
            checkable=True,
        )
        self.copy_answer = self._make(
            self.tr("&Copy the last answer"), "Ctrl+Shift+C", self.tr("Copy the last answer as the model wrote it"), "copy"
        )
        self.latest = self._make(self.tr("Jump to the &latest"), "Ctrl+End", self.tr("Go to the end of the chat and follow it"), "down")

    def _make_pane_commands(self) -> None:
        self.next_citation = self._make(self.tr("&Next citation"), "Alt+Down", self.tr("Show the next cited passage"), "down")
        self.previous_citation = self._make(self.tr("&Previous citation"), "Alt+Up", self.tr("Show the previous cited passage"), "up")
        self.show_library = self._make(self.tr("&Library"), "F7", self.tr("Show or hide the library"), "library", checkable=True)
        self.show_source = self._make(self.tr("&Source"), "F8", self.tr("Show or hide the source pane"), "source", checkable=True)
        self.next_pane = self._make(self.tr("Ne&xt pane"), "F6", self.tr("Move to the next pane"))

    def _make_program_commands(self) -> None:
        self.models = self._make(
            self.tr("&Models…"), "Ctrl+Shift+M", self.tr("Choose the model that answers, add one of yours, or remove one")
        )
        self.settings = self._make(self.tr("&Settings…"), ["Ctrl+,"], self.tr("Threads, language, theme and storage"), "settings")
        self.settings.setMenuRole(QAction.MenuRole.PreferencesRole)
        self.handbook = self._make(self.tr("&Handbook"), None, self.tr("Read the handbook in the source pane"), "document")
        self.shortcuts = self._make(self.tr("&Keyboard shortcuts"), Keys.HelpContents, self.tr("List every command and its key"))
        self.about = self._make(self.tr("&About Longshelf"), None, self.tr("Version, model and licence"))
        self.about.setMenuRole(QAction.MenuRole.AboutRole)

    def _make(self, text: str, shortcut: Shortcut, tip: str, icon: str = "", checkable: bool = False) -> QAction:
        action = QAction(text, self._window, checkable=checkable)
        action.setStatusTip(tip)
        if isinstance(shortcut, list):
            action.setShortcuts([QKeySequence(keys) for keys in shortcut])
        elif isinstance(shortcut, Keys):
            action.setShortcuts(shortcut)
        elif shortcut:
            action.setShortcut(QKeySequence(shortcut))
        keys = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
        action.setToolTip(f"{plain(action)} ({keys})" if keys else plain(action))
        if icon:
            theme.current().wear(action, icon)
        self._window.addAction(action)
        return action
