"""Opening the window. It is on the screen before the engine is started, and nothing here waits for anything."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QSocketNotifier, QTimer
from PySide6.QtWidgets import QApplication

from app import language, screen, single
from engine.home import Home

if TYPE_CHECKING:
    from app.window import Window


def run(home: Home, files: Sequence[Path] = (), until_shown: bool = False, new_window: bool = False) -> int:
    """Open the window of this home, add `files`, and return the exit status when it is closed.

    A window that is already open takes the files and comes to the front, unless `new_window`. With `until_shown`, prints the milliseconds
    from the start of the process to the first paint, and ends. Raises LongshelfError("home") if the home can't be used,
    and what `screen.check` raises.
    """
    home = home.open()
    screen.check()
    application = QApplication.instance() or QApplication(sys.argv[:1])
    assert isinstance(application, QApplication)
    application.setApplicationName("longshelf")
    application.setApplicationDisplayName("Longshelf")
    application.setDesktopFileName("longshelf")
    if not (new_window or until_shown) and single.hand_over(home, list(files)):
        return 0

    # Late: a start that only hands its files over needs none of this.
    from app import trouble, window
    from app.engine_client import Engine
    from app.preferences import Preferences
    from app.theme import Theme

    preferences = Preferences(home)
    spoken = language.choose(preferences.language)
    language.install(application, spoken)
    Theme(application, preferences.theme)

    shown = window.Window(Engine(home), preferences, spoken)
    trouble.catch_our_bugs(home, shown.trouble)
    if until_shown:
        shown.painted.connect(lambda: _print_age(application))
        shown.show()
        return application.exec()

    doorbell = single.Doorbell(home, shown)
    doorbell.rung.connect(lambda more: _come_forward(shown, more))
    application.commitDataRequest.connect(lambda _: shown.keep())
    application.aboutToQuit.connect(shown.engine.close)
    _close_on_signals(shown)
    shown.show()
    shown.chat.composer.setFocus()
    QTimer.singleShot(0, shown.engine.start)
    if files:
        shown.add(list(files))
    if spoken == "ko" and preferences.once("korean-font") and (missing := window.korean_font_trouble()):
        shown.trouble.tell(missing)
    return application.exec()


def _come_forward(shown: Window, files: list[Path]) -> None:
    shown.showNormal() if shown.isMinimized() else shown.show()
    shown.raise_()
    shown.activateWindow()
    if files:
        shown.add(files)


def _close_on_signals(shown: Window) -> None:
    """Ctrl+C in the terminal and a polite kill close the window as its button does. Python hears of a signal only while it runs: the
    wake-up socket makes Qt's loop run it."""
    heard, waker = socket.socketpair()
    for end in (heard, waker):
        end.setblocking(False)
    signal.set_wakeup_fd(waker.fileno())
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    notifier = QSocketNotifier(heard.fileno(), QSocketNotifier.Type.Read, shown)
    # Both sockets live as long as what is connected here.
    notifier.activated.connect(lambda *_: (heard.recv(64), waker.fileno(), shown.close()))


def _print_age(application: QApplication) -> None:
    """Milliseconds since this process was started, the interpreter's own start included."""
    print(round(_age() * 1000), flush=True)
    application.quit()


def _age() -> float:
    """Seconds since the process was started, to a hundredth."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError):  # not Linux
        import psutil

        return time.time() - psutil.Process().create_time()
