"""One window per home: a later start hands its files to the window that is open, which comes to the front.

The window listens on HOME/window.sock, for this user only. Where that can't be had (a path longer than the system allows), every start
opens a window of its own; the engine is shared all the same.
"""

from __future__ import annotations

import json
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket

from engine.home import Home

_WAIT_MS = 500


class Doorbell(QObject):
    """Rings when another start hands its files over."""

    rung = Signal(list)  # of Path

    def __init__(self, home: Home, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._visitors: list[QLocalSocket] = []
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._on_visitor)
        QLocalServer.removeServer(str(_path(home)))  # what a killed window left; a living one was asked before
        self._server.listen(str(_path(home)))

    def close(self) -> None:
        self._server.close()

    def _on_visitor(self) -> None:
        visitor = self._server.nextPendingConnection()
        visitor.readyRead.connect(self._on_line)
        self._visitors.append(visitor)

    def _on_line(self) -> None:
        """Whoever has said a whole line is heard and let go; a visitor who never does stays until this window closes."""
        for visitor in [visitor for visitor in self._visitors if visitor.canReadLine()]:
            self._visitors.remove(visitor)
            line = visitor.readLine().data()
            visitor.abort()
            try:
                self.rung.emit([Path(file) for file in json.loads(line)["files"]])
            except (ValueError, KeyError, TypeError):
                continue  # not one of ours


def hand_over(home: Home, files: list[Path]) -> bool:
    """Give the files to the window of this home. False if there is none."""
    socket = QLocalSocket()
    socket.connectToServer(str(_path(home)))
    if not socket.waitForConnected(_WAIT_MS):
        return False
    socket.write(json.dumps({"files": [str(file.absolute()) for file in files]}).encode() + b"\n")
    return socket.waitForBytesWritten(_WAIT_MS)


def _path(home: Home) -> Path:
    return home.root / "window.sock"
