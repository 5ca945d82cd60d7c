"""Every command of the window as one QAction: its words, its key, its status tip and its icon. Menus, buttons and context menus share them.

What a command does is connected where it is known how; this module only says that it exists.
"""

from __future__ import annotations

from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QWidget

from app import theme

Shortcut = str | QKeySequence.StandardKey | list[str] | None


class Commands:
    def __init__(self, window: QWidget) -> None:
        self._window = window
        tr = window.tr

        self.add_files = self._make(tr("&Add files…"), QKeySequence.StandardKey.Open, tr("Add documents to the library"), "add")
        self.add_folder = self._make(tr("Add a &folder…"), "Ctrl+Shift+O", tr("Add a folder of text or code as one document"), "folder")
        self.paste_path = self._make(tr("Add from the &clipboard"), "Ctrl+Shift+V", tr("Add the files whose paths were copied"), "paste")
        self.quit = self._make(tr("&Quit"), QKeySequence.StandardKey.Quit, tr("Close the window; reading goes on at the next start"))
        self.quit.setMenuRole(QAction.MenuRole.QuitRole)

        self.search = self._make(tr("&Search the library"), ["Ctrl+K", "Ctrl+F"], tr("Find documents by title and chats by their words"), "search")
        self.ask_about = self._make(tr("&Ask about this"), None, tr("Start a new chat about the selected documents"), "chat")
        self.pause = self._make(tr("&Pause"), None, tr("Stop reading this document for now; what is read is kept"), "pause")
        self.resume = self._make(tr("&Resume"), None, tr("Go on reading this document"), "resume")
        self.retry = self._make(tr("Try a&gain"), None, tr("Read this document again from where it failed"), "again")
        self.cancel = self._make(tr("&Cancel reading"), None, tr("Stop reading this document; what is read stays askable"), "close")
        self.remove = self._make(tr("Re&move from the library…"), QKeySequence.StandardKey.Delete, tr("Forget the selected; files on disk stay"), "remove")
        self.show_file = self._make(tr("Show the source &file"), None, tr("Open the folder in which the source file lies"), "folder")
        self.show_skipped = self._make(tr("What was &skipped…"), None, tr("List the files left out of this folder, with the reason"), "details")
        self.pause_all = self._make(tr("Pause &all reading"), None, tr("Stop reading every document for now"), "pause")
        self.resume_all = self._make(tr("Resume a&ll reading"), None, tr("Go on reading every paused document"), "resume")

        self.new_chat = self._make(tr("&New chat"), QKeySequence.StandardKey.New, tr("Start a new chat"), "chat")
        self.rename_chat = self._make(tr("Rena&me chat"), "F2", tr("Give the selected chat another name"), "edit")
        self.export_chat = self._make(tr("&Export chat…"), QKeySequence.StandardKey.SaveAs, tr("Save the open chat as Markdown or JSON"), "export")
        self.remove_chat = self._make(tr("&Delete chat…"), None, tr("Delete the selected chat"), "remove")
        self.focus_question = self._make(tr("&Write a question"), "Ctrl+L", tr("Go to the place where questions are typed"), "edit")
        self.choose_documents = self._make(tr("Choose &documents…"), "Ctrl+D", tr("Choose which documents the question is about"), "document")
        self.send = self._make(tr("&Send"), None, tr("Send the question (Enter)"), "send")
        self.stop = self._make(tr("S&top"), "Esc", tr("Stop answering; the text so far is kept"), "stop")
        self.regenerate = self._make(tr("Answer a&gain"), "Ctrl+R", tr("Ask the last question again, as another branch"), "again")
        self.copy_answer = self._make(tr("&Copy the last answer"), "Ctrl+Shift+C", tr("Copy the last answer as the model wrote it"), "copy")
        self.latest = self._make(tr("Jump to the &latest"), "Ctrl+End", tr("Go to the end of the chat and follow it"), "down")

        self.next_citation = self._make(tr("&Next citation"), "Alt+Down", tr("Show the next cited passage"), "down")
        self.previous_citation = self._make(tr("&Previous citation"), "Alt+Up", tr("Show the previous cited passage"), "up")
        self.show_library = self._make(tr("&Library"), "F7", tr("Show or hide the library"), "library", checkable=True)
        self.show_source = self._make(tr("&Source"), "F8", tr("Show or hide the source pane"), "source", checkable=True)
        self.next_pane = self._make(tr("Ne&xt pane"), "F6", tr("Move to the next pane"))

        self.settings = self._make(tr("&Settings…"), ["Ctrl+,"], tr("Threads, language, theme and storage"), "settings")
        self.settings.setMenuRole(QAction.MenuRole.PreferencesRole)
        self.handbook = self._make(tr("&Handbook"), None, tr("Read the handbook in the source pane"), "document")
        self.shortcuts = self._make(tr("&Keyboard shortcuts"), QKeySequence.StandardKey.HelpContents, tr("List every command and its key"))
        self.about = self._make(tr("&About Longshelf"), None, tr("Version, model and licence"))
        self.about.setMenuRole(QAction.MenuRole.AboutRole)

    def all(self) -> list[QAction]:
        return [action for action in vars(self).values() if isinstance(action, QAction)]

    def _make(self, text: str, shortcut: Shortcut, tip: str, icon: str = "", checkable: bool = False) -> QAction:
        action = QAction(text, self._window, checkable=checkable)
        action.setStatusTip(tip)
        if isinstance(shortcut, list):
            action.setShortcuts([QKeySequence(keys) for keys in shortcut])
        elif isinstance(shortcut, QKeySequence.StandardKey):
            action.setShortcuts(shortcut)
        elif shortcut:
            action.setShortcut(QKeySequence(shortcut))
        plain = text.replace("&", "").rstrip("…")
        keys = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
        action.setToolTip(f"{plain} ({keys})" if keys else plain)
        if icon:
            theme.current().wear(action, icon)
        self._window.addAction(action)
        return action
