"""What `make run` does once the environment stands: the default model, then the window, or the same job in the terminal.

Runs in `.venv`. Without a screen (on Linux: neither DISPLAY nor WAYLAND_DISPLAY) the handbook is added, one of its questions is
asked, and the answer is printed with the places it rests on.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import resources
from app.screen import APT_LINE

ROOT = Path(__file__).resolve().parent.parent
LONGSHELF = ROOT / ".venv/bin/longshelf"

OPEN_QT = "from PySide6.QtWidgets import QApplication; QApplication([])"


def main() -> int:
    if not installed_model():
        print("Fetching the default model, SmolLM2-135M-Instruct (93 MB, once) …", flush=True)
        if (code := call("models", "fetch")) != 0:
            return code
    if not has_screen():
        return in_the_terminal()
    if (trouble := qt_trouble()) is not None:
        print(trouble, file=sys.stderr)
        return 1
    return call()


def installed_model() -> bool:
    listed = ask_json("models", "list")
    return any(model["installed"] for model in listed["models"])


def has_screen() -> bool:
    return not sys.platform.startswith("linux") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


# ---- the window ----


def qt_trouble() -> str | None:
    """Why Qt opens no window here and what to do, or None."""
    tried = subprocess.run([sys.executable, "-c", OPEN_QT], capture_output=True, text=True)
    if tried.returncode == 0:
        return None
    missing = missing_libraries()
    if not missing:
        return f"Qt can't open a window here:\n{tried.stderr.strip()}\nThe command line works: {LONGSHELF.relative_to(ROOT)} --help"
    return (
        f"Qt can't open a window yet: this system lacks {', '.join(missing)}. On Debian and Ubuntu:\n  {APT_LINE}\nthen make run again. "
        f"The command line works already: {LONGSHELF.relative_to(ROOT)} --help"
    )


def missing_libraries() -> list[str]:
    """Names of the shared libraries that Qt's windows need and this system lacks."""
    import PySide6

    qt = Path(PySide6.__file__).parent / "Qt"
    platform = "wayland" if os.environ.get("WAYLAND_DISPLAY") and not os.environ.get("DISPLAY") else "xcb"
    needed = [qt / "lib/libQt6Widgets.so.6", *sorted((qt / "plugins/platforms").glob(f"libq{platform}*.so"))]
    listed = subprocess.run(["ldd", *map(str, needed)], capture_output=True, text=True).stdout
    return sorted(set(re.findall(r"(\S+) => not found", listed)))


# ---- the terminal ----


def in_the_terminal() -> int:
    print("There is no screen here, so Longshelf does the same job in this terminal: read its handbook once, then answer from memory.")
    handbook, question = str(resources.handbook("en")), resources.questions("en")[0]
    for command in (["add", handbook], ["ask", handbook, question]):
        print(f"\n$ longshelf {shlex.join(command)}", flush=True)
        if (code := call(*command)) != 0:
            return code
    print(f"\nWith a screen, make run opens the window. In a terminal, go on with: {LONGSHELF.relative_to(ROOT)} --help")
    return 0


# ---- calling Longshelf ----


def call(*arguments: str) -> int:
    return subprocess.run([LONGSHELF, *arguments]).returncode


def ask_json(*arguments: str) -> dict[str, Any]:
    """The `--json` answer of one command; its failure ends the program with its own words."""
    done = subprocess.run([LONGSHELF, *arguments, "--json"], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(done.returncode)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
