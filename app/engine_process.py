"""The engine as a child process of the window.

Its stdin is a pipe that stays open for as long as the window lives: when the window ends, however it ends, the pipe closes and the
engine follows. The engine prints one line, `ready`, once it listens.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QObject, QProcess, QProcessEnvironment, Signal

import engine
from engine.home import Home

_TAIL = 4000  # characters of the engine's last words kept for the details of a trouble
_GRACE_MS = 3000  # how long the engine may take to put its things away before it is ended


def command(home: Home) -> list[str]:
    return [sys.executable, "-m", "engine.service.server", "--home", str(home.root)]


class EngineProcess(QObject):
    listening = Signal()
    ended = Signal()

    def __init__(self, arguments: Sequence[str], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._arguments = list(arguments)
        self._said = ""
        self._process = QProcess(self)
        self._process.setProcessEnvironment(_environment())
        self._process.readyReadStandardOutput.connect(self._read)
        self._process.readyReadStandardError.connect(self._hear)
        self._process.finished.connect(lambda *_: self.ended.emit())
        self._process.errorOccurred.connect(self._could_not)

    @property
    def running(self) -> bool:
        return self._process.state() != QProcess.ProcessState.NotRunning

    @property
    def last_words(self) -> str:
        """The end of what it wrote on stderr: for the details of a trouble, never for the first line."""
        return self._said.strip()

    def start(self) -> None:
        self._said = ""
        self._process.start(self._arguments[0], self._arguments[1:])

    def end(self) -> None:
        """Close its pipe and wait for it, a few seconds at most. Safe when it isn't running."""
        self._process.blockSignals(True)
        if self.running:
            self._process.closeWriteChannel()
            if not self._process.waitForFinished(_GRACE_MS):
                self._process.kill()
                self._process.waitForFinished(_GRACE_MS)

    def _read(self) -> None:
        if b"ready" in self._process.readAllStandardOutput().data():
            self.listening.emit()

    def _hear(self) -> None:
        self._said = (self._said + self._process.readAllStandardError().data().decode("utf-8", "replace"))[-_TAIL:]

    def _could_not(self, error: QProcess.ProcessError) -> None:
        if error is QProcess.ProcessError.FailedToStart:  # any other error is followed by `finished`
            self._said = self._process.errorString()
            self.ended.emit()


def _environment() -> QProcessEnvironment:
    """Ours, and the engine importable wherever the window was started from."""
    environment = QProcessEnvironment.systemEnvironment()
    root = str(Path(engine.__file__).parent.parent)
    known = environment.value("PYTHONPATH")
    environment.insert("PYTHONPATH", os.pathsep.join(filter(None, (root, known))))
    return environment
