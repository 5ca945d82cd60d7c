"""The menu bar: which commands stand in which menu."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenuBar

from app.commands import Commands

_translate = QCoreApplication.translate


def fill(bar: QMenuBar, commands: Commands) -> None:
    """None is a separator."""
    c = commands
    menus: tuple[tuple[str, list[QAction | None]], ...] = (
        (
            _translate("Menus", "&File"),
            [c.add_files, c.add_folder, c.paste_path, None, c.export_chat, None, c.models, c.settings, None, c.quit],
        ),
        (
            _translate("Menus", "&Chat"),
            [
                c.new_chat,
                c.choose_documents,
                c.focus_question,
                None,
                c.stop,
                c.regenerate,
                c.answer_exactly,
                c.copy_answer,
                c.latest,
                None,
                c.fast,
                None,
                c.rename_chat,
                c.remove_chat,
            ],
        ),
        (
            _translate("Menus", "&Documents"),
            [
                c.ask_about,
                c.show_file,
                c.show_skipped,
                None,
                c.pause,
                c.resume,
                c.retry,
                c.read_again,
                c.cancel,
                None,
                c.pause_all,
                c.resume_all,
                None,
                c.forget,
                c.remove,
            ],
        ),
        (
            _translate("Menus", "&View"),
            [c.search, c.next_pane, None, c.show_library, c.show_source, None, c.next_citation, c.previous_citation],
        ),
        (_translate("Menus", "&Help"), [c.handbook, c.shortcuts, c.about]),
    )
    for title, actions in menus:
        menu = bar.addMenu(title)
        for action in actions:
            if action is None:
                menu.addSeparator()
            else:
                menu.addAction(action)
