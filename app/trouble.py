"""When something goes wrong: what happened, what was kept, what to do next, and details on request. Never a traceback, never silence."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType

from PySide6.QtCore import QCoreApplication, QLocale, Qt
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent, QGuiApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QToolButton, QVBoxLayout, QWidget

from app import theme
from engine.errors import LongshelfError, PrivateFormatter
from engine.home import Home

_translate = QCoreApplication.translate


@dataclass(frozen=True)
class Trouble:
    happened: str
    next_step: str = ""
    kept: str = ""
    details: str = ""


def explain(error: LongshelfError) -> Trouble:
    """An error in the window's language. The engine speaks English: there its own sentence is used, elsewhere it stands in the details."""
    own = _own_words().get(error.kind)
    if error.kind in ("engine_lost", "engine_fault") and own is not None:
        return Trouble(own[0], own[1], _translate("Trouble", "Documents, chats and your question are kept."), _joined(error))
    if own is None or QLocale().language() is QLocale.Language.English:
        return Trouble(error.message, error.hint)
    return Trouble(own[0], own[1], details=_joined(error))


def _own_words() -> dict[str, tuple[str, str]]:
    """kind → what happened, next step."""
    return _of_the_engine() | _of_documents() | _of_the_home() | _of_models()


def _of_the_engine() -> dict[str, tuple[str, str]]:
    return {
        "engine_lost": (
            _translate("Trouble", "The engine stopped unexpectedly."),
            _translate("Trouble", "It is started again; ask the question once more."),
        ),
        "engine_fault": (
            _translate("Trouble", "Something in Longshelf went wrong."),
            _translate("Trouble", "Try again. If it happens again, report the details."),
        ),
        "too_long": (_translate("Trouble", "The question is too long."), _translate("Trouble", "Shorten it.")),
    }


def _of_documents() -> dict[str, tuple[str, str]]:
    return {
        "not_found": (
            _translate("Trouble", "This file or entry was not found."),
            _translate("Trouble", "Check whether it was moved or deleted."),
        ),
        "unreadable": (_translate("Trouble", "The file can't be opened."), _translate("Trouble", "Check its permissions.")),
        "binary": (_translate("Trouble", "This is not a text file."), _translate("Trouble", "Add plain text, Markdown or source code.")),
        "too_large": (_translate("Trouble", "The file is too large."), _translate("Trouble", "Split it into smaller files.")),
        "undecodable": (
            _translate("Trouble", "The encoding of the text was not recognised."),
            _translate("Trouble", "Save it as UTF-8 and add it again."),
        ),
        "unsupported": (
            _translate("Trouble", "This format can't be read yet."),
            _translate("Trouble", "This version reads plain text, Markdown and source code."),
        ),
        "no_text": (_translate("Trouble", "There is no text in it."), _translate("Trouble", "A scan needs text recognition first.")),
        "not_ready": (
            _translate("Trouble", "Nothing of it has been read yet."),
            _translate("Trouble", "Ask again when its first part is finished."),
        ),
        "text_missing": (
            _translate("Trouble", "The kept text of this document is missing."),
            _translate("Trouble", "Add the document again."),
        ),
    }


def _of_the_home() -> dict[str, tuple[str, str]]:
    return {
        "home": (_translate("Trouble", "The home folder can't be used."), _translate("Trouble", "Choose another with --home.")),
        "locked": (_translate("Trouble", "Another program is using this home."), _translate("Trouble", "Close it and try again.")),
        "newer_home": (_translate("Trouble", "This home was made by a newer version."), _translate("Trouble", "Update Longshelf.")),
        "disk_full": (
            _translate("Trouble", "The disk is full."),
            _translate("Trouble", "Free some space, then resume; what is read is kept."),
        ),
        "store_unavailable": (
            _translate("Trouble", "The store can't be reached."),
            _translate("Trouble", "Check whether its disk is connected."),
        ),
        "catalog_damaged": (
            _translate("Trouble", "The catalog is damaged."),
            _translate("Trouble", "Run “longshelf doctor --repair” in a terminal."),
        ),
        "segment_damaged": (
            _translate("Trouble", "A piece of a document's memory is damaged."),
            _translate("Trouble", "It is not used. Read the document again."),
        ),
        "segment_missing": (
            _translate("Trouble", "A piece of a document's memory is missing."),
            _translate("Trouble", "Read the document again."),
        ),
    }


def _of_models() -> dict[str, tuple[str, str]]:
    return {
        "no_model": (_translate("Trouble", "No model is installed."), _translate("Trouble", "Install one from the start page.")),
        "model_damaged": (_translate("Trouble", "The model's files are damaged."), _translate("Trouble", "Install the model again.")),
        "no_network": (_translate("Trouble", "The download failed."), _translate("Trouble", "Check the connection and try again.")),
        "download_failed": (_translate("Trouble", "The download failed."), _translate("Trouble", "Check the connection and try again.")),
        "checksum": (_translate("Trouble", "What was downloaded is damaged."), _translate("Trouble", "Try again.")),
        "not_a_model": (
            _translate("Trouble", "This is not a model that can be read."),
            _translate("Trouble", "Choose a GGUF file, or a folder with config.json, safetensors files and a tokenizer."),
        ),
        "model_unsupported": (
            _translate("Trouble", "This kind of model can't be run."),
            _translate("Trouble", "Choose a Llama, Mistral, Qwen, Phi, SmolLM or Gemma model."),
        ),
        "missing_shard": (
            _translate("Trouble", "Some of the model's files are missing."),
            _translate("Trouble", "Download the missing files into the same folder."),
        ),
        "pickle_only": (
            _translate("Trouble", "The model's weights are pickled, which is code that would be run."),
            _translate("Trouble", "Choose a version with safetensors files, or its GGUF."),
        ),
        "no_template": (
            _translate("Trouble", "The model has no chat template."),
            _translate("Trouble", "Choose an instruct (chat) version of the model, or add it without a template."),
        ),
        "exists": (_translate("Trouble", "A model of this name is installed already."), _translate("Trouble", "Remove it first.")),
        "bad_name": (_translate("Trouble", "The model can't have this name."), _translate("Trouble", "Rename its file or folder.")),
        "unknown_model": (_translate("Trouble", "There is no such model."), _translate("Trouble", "Choose another one.")),
        "not_enough_memory": (
            _translate("Trouble", "The model takes more memory than is free."),
            _translate("Trouble", "Close other programs, or choose a smaller model."),
        ),
    }


def _joined(error: LongshelfError) -> str:
    return "\n".join(filter(None, (f"{error.kind}: {error.message}", error.hint)))


class TroubleBar(QFrame):
    """A bar above the panes, until it is dismissed or the trouble is over."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="trouble", visible=False)
        self._icon = QLabel()
        self._happened = QLabel(wordWrap=True, objectName="subtitle")
        self._rest = QLabel(wordWrap=True)
        self._details = QLabel(wordWrap=True, visible=False, objectName="quiet")
        for label in (self._happened, self._rest, self._details):
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard)
        self._act = QPushButton(visible=False)
        self._act.clicked.connect(self._on_act)
        self._action: Callable[[], object] | None = None
        self._more = QToolButton(autoRaise=True, checkable=True, text=self.tr("Details"))
        self._more.toggled.connect(self._details.setVisible)
        self._copy = QToolButton(autoRaise=True, toolTip=self.tr("Copy the details"), accessibleName=self.tr("Copy the details"))
        theme.current().wear(self._copy, "copy")
        self._copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(self.text()))
        close = QToolButton(autoRaise=True, toolTip=self.tr("Dismiss"), accessibleName=self.tr("Dismiss"))
        theme.current().wear(close, "close")
        close.clicked.connect(self.hide)

        theme.current().changed.connect(self._draw_icon)

        text = QVBoxLayout()
        for label in (self._happened, self._rest, self._details):
            text.addWidget(label)
        layout = QHBoxLayout(self)
        layout.addWidget(self._icon, 0, Qt.AlignmentFlag.AlignTop)
        layout.addLayout(text, 1)
        for button in (self._act, self._more, self._copy, close):
            layout.addWidget(button, 0, Qt.AlignmentFlag.AlignTop)

    def tell(self, trouble: Trouble, act: str = "", action: Callable[[], object] | None = None) -> None:
        """Show a trouble; with `action`, a button labelled `act` that does the next step."""
        self._draw_icon()
        self._happened.setText(trouble.happened)
        self._rest.setText(" ".join(filter(None, (trouble.kept, trouble.next_step))))
        self._rest.setVisible(bool(self._rest.text()))
        self._details.setText(trouble.details)
        self._more.setChecked(False)
        self._more.setVisible(bool(trouble.details))
        self._copy.setVisible(bool(trouble.details))
        self._action = action
        self._act.setText(act)
        self._act.setVisible(action is not None)
        self.setAccessibleName(trouble.happened)
        self.setVisible(True)
        QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self, f"{trouble.happened} {self._rest.text()}"))

    def _draw_icon(self) -> None:
        size = self.fontMetrics().height()
        self._icon.setPixmap(theme.pixmap("warning", theme.signal_colour("bad"), size, self.devicePixelRatio()))

    def text(self) -> str:
        return "\n".join(filter(None, (self._happened.text(), self._rest.text(), self._details.text())))

    def _on_act(self) -> None:
        self.hide()
        if self._action is not None:
            self._action()


def catch_our_bugs(home: Home, bar: TroubleBar) -> None:
    """An exception nobody handled goes to HOME/window.log, and the person is told in one sentence."""
    log = logging.getLogger("longshelf.window")
    handler = logging.FileHandler(home.root / "window.log", encoding="utf-8", delay=True)
    handler.setFormatter(PrivateFormatter())
    log.addHandler(handler)

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            sys.__excepthook__(kind, error, trace)
            return
        log.error("unhandled", exc_info=(kind, error, trace))
        bar.tell(explain(LongshelfError("engine_fault", f"{kind.__name__}", str(home.root / "window.log"))))

    sys.excepthook = hook
