"""Asking before something is done that can't be undone, or that costs much."""

from __future__ import annotations

from PySide6.QtWidgets import QMessageBox, QWidget


def confirmed(parent: QWidget, question: str, detail: str, yes: str) -> bool:
    """Whether the person pressed the button labelled `yes`; Enter and Esc don't."""
    box = QMessageBox(QMessageBox.Icon.Question, "Longshelf", question, QMessageBox.StandardButton.Cancel, parent)
    box.setInformativeText(detail)
    accept = box.addButton(yes, QMessageBox.ButtonRole.DestructiveRole)
    box.setDefaultButton(QMessageBox.StandardButton.Cancel)
    box.exec()
    return box.clickedButton() is accept
