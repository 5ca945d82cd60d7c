"""Pictures of every view of the window, drawn with the fake engine: `python -m tests.screenshots FOLDER [--scale 2]`.

Each view is drawn light, dark and in Korean. Nothing is compared by machine: a person looks at them after a change.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scale", default="1", help="device pixels per point")
    parser.add_argument("--size", default="1280x800", help="of the window, in points")
    parser.add_argument("--only", default="", help="views whose name holds this")
    given = parser.parse_args()
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    os.environ["QT_SCALE_FACTOR"] = given.scale
    given.folder.mkdir(parents=True, exist_ok=True)
    width, height = (int(number) for number in given.size.split("x"))

    from PySide6.QtWidgets import QApplication

    application = QApplication(sys.argv[:1])
    for language, scheme in (("en", "light"), ("en", "dark"), ("ko", "light")):
        for name, draw in VIEWS.items():
            if given.only in name:
                with tempfile.TemporaryDirectory() as folder:
                    stage = Stage(application, Path(folder), language, scheme, (width, height))
                    for number, picture in enumerate(draw(stage)):
                        file = given.folder / f"{name}{number or ''}.{language}.{scheme}.png"
                        picture.grab().save(str(file))
                    stage.close()
                    print(name, language, scheme)
    return 0


class Stage:
    """A window on a fake engine."""

    def __init__(self, application, folder: Path, language: str, scheme: str, size: tuple[int, int]) -> None:  # type: ignore[no-untyped-def]
        from app import language as languages
        from app.engine_client import Engine
        from app.preferences import Preferences
        from app.theme import Theme
        from app.window import Window
        from engine.home import Home
        from tests.app import fake_engine

        self.fake = fake_engine
        self.folder = folder
        self.application = application
        self.language = language
        home = Home(folder / "home").open()
        self.engine = fake_engine.FakeEngine(home).start()
        self._translators = languages.install(application, language)
        self.theme = application.findChild(Theme) or Theme(application, scheme)
        self.theme.use(scheme)
        self.window = Window(Engine(home), Preferences(home), language)
        self.window.resize(*size)

    def open(self) -> None:
        self.window.show()
        self.window.engine.start()
        self.until(lambda: self.window.mirror.models_known and self.engine.called("chats.list"))
        self.wait(100)

    def wait(self, milliseconds: int) -> None:
        from PySide6.QtCore import QEventLoop, QTimer

        loop = QEventLoop()
        QTimer.singleShot(milliseconds, loop.quit)
        loop.exec()

    def until(self, true: Callable[[], object]) -> None:
        for _ in range(500):
            if true():
                return
            self.wait(10)
        raise TimeoutError

    def ask(self, question: str) -> None:
        before = self.window.chat.conversation.path()
        self.window.chat.ask(question)
        self.until(lambda: len(self.window.chat.conversation.path()) > len(before) and self.window.chat.asking is None)
        self.wait(100)

    def close(self) -> None:
        self.window.close()
        self.window.deleteLater()
        self.engine.close()
        for translator in self._translators:
            self.application.removeTranslator(translator)
        self.wait(20)


LONG = """The estate passes to the nearest male heir, so the daughters will lose their home.

## What the text says

1. **Mr. Bennet** has *no son*; the estate is entailed.
2. Mr. Collins is the heir: `estate.heir = "Collins"`.

| Person | Fortune |
|---|---|
| Mr. Bingley | four or five thousand a year |
| Mr. Darcy | ten thousand a year |

```python
def heir(estate: dict[str, list[str]]) -> str:
    return next(person for person in estate["kin"] if person.startswith("Mr."))
```

> It is a truth universally acknowledged, that a single man in possession of a good fortune must be in want of a wife.

<smirk> stays visible, and **강조(bold)**는 굵게 보입니다.
"""


def first_start(stage: Stage) -> Iterator[object]:
    stage.engine.models = {}
    stage.open()
    yield stage.window
    stage.engine.flow.clear()
    stage.window.start.install()
    stage.wait(300)
    yield stage.window


def empty(stage: Stage) -> Iterator[object]:
    stage.open()
    yield stage.window


def handbook(stage: Stage) -> Iterator[object]:
    import resources

    stage.open()
    stage.window.add([resources.handbook("en")])
    stage.until(lambda: stage.window.chat.chooser.documents)
    stage.window.reader.show_document(stage.window.chat.chooser.documents[0])
    stage.wait(200)
    yield stage.window


def library(stage: Stage) -> Iterator[object]:
    book = stage.fake.book
    rows = [
        book("a", added_at=9),
        book(
            "b",
            title="Moby-Dick; or, The Whale",
            state="remembering",
            percent=42.7,
            place="Chapter 54",
            seconds_left=190,
            parts_ready=40,
            added_at=8,
        ),
        book("c", title="longshelf-main", state="reading", place="engine/store/segment.py", parts_ready=0, added_at=7),
        book("d", title="민법", state="queued", tokens=210_000, parts_ready=0, added_at=6),
        book("e", title="Lease 2026", state="paused", percent=12.0, tokens_done=9000, parts_ready=1, added_at=5),
        book("f", title="scan", state="no_text", reason="looks scanned", parts_ready=0, added_at=4),
        book("g", title="photo.txt", state="failed", reason="binary", parts_ready=0, added_at=3),
        book("h", title="Old novel", source_missing=True, added_at=2),
    ]
    stage.engine.documents = {row["id"]: row for row in rows}
    stage.open()
    stage.window.chat.chooser.choose(["b"])
    stage.window.library.select_document("b")
    stage.wait(100)
    yield stage.window
    menu = stage.window.library.document_actions([rows[1]])
    menu.show()
    yield menu
    menu.close()
    stage.window.chat.chooser.open_list()
    stage.wait(100)
    yield stage.window.chat.chooser.findChild(object, "chooserPopup")


def chat(stage: Stage) -> Iterator[object]:
    stage.engine.documents = {"book": stage.fake.book()}
    stage.open()
    stage.window.chat.chooser.choose(["book"])
    stage.ask("Who rents Netherfield?")
    stage.engine.answer = LONG
    stage.engine.citations = [stage.fake.citation(1), stage.fake.citation(2, quote="must be in want of a wife", section="CHAPTER II")]
    stage.ask("What happens to the estate?")
    stage.window.chat.transcript.views[-1].show_details(True)
    stage.window.chat._on_citation(stage.window.chat.conversation.last_answer.id, 1)
    stage.wait(300)
    yield stage.window


def branches(stage: Stage) -> Iterator[object]:
    stage.engine.documents = {"book": stage.fake.book()}
    stage.open()
    stage.window.chat.chooser.choose(["book"])
    stage.ask("Who is rich?")
    stage.window.chat.regenerate()
    stage.until(lambda: stage.window.chat.asking is None)
    stage.engine.figures |= {"supported": False}
    stage.engine.answer = "The whale is white."
    stage.ask("What colour is the whale?")
    stage.window.chat._edit(stage.window.chat.conversation.path()[0].id)
    stage.wait(100)
    yield stage.window


def fast(stage: Stage) -> Iterator[object]:
    stage.engine.documents = {"book": stage.fake.book()}
    stage.open()
    stage.window.chat.chooser.choose(["book"])
    stage.window.commands.fast.trigger()
    stage.window.activateWindow()
    stage.window.chat.box.switch.fast.setFocus()
    stage.wait(100)
    yield stage.window
    stage.ask("Who rents Netherfield?")
    stage.engine.sampled = {"mode": "exact", "exact_because": "short"}
    stage.ask("And who told them?")
    yield stage.window


def streaming(stage: Stage) -> Iterator[object]:
    stage.engine.documents = {"book": stage.fake.book()}
    stage.open()
    stage.window.chat.chooser.choose(["book"])
    stage.engine.flow.clear()
    stage.window.chat.ask("Tell me about the marriage of Jane.")
    stage.until(lambda: stage.window.chat.asking.answer.text)
    stage.engine.status(state="answering")
    stage.wait(200)
    yield stage.window


def trouble(stage: Stage) -> Iterator[object]:
    from engine.errors import LongshelfError

    stage.engine.documents = {"book": stage.fake.book()}
    stage.open()
    stage.window.chat.chooser.choose(["book"])
    stage.ask("Who rents Netherfield?")
    stage.window._on_lost(LongshelfError("engine_lost", "The engine stopped unexpectedly.", "signal 9"), again=False)
    stage.window.trouble._more.setChecked(True)
    stage.wait(100)
    yield stage.window


def dropping(stage: Stage) -> Iterator[object]:
    stage.engine.documents = {"book": stage.fake.book()}
    stage.open()
    (stage.folder / "a.txt").write_text("x" * 100_000)
    (stage.folder / "code").mkdir()
    stage.window.overlay.show_for([stage.folder / "a.txt", stage.folder / "code"])
    stage.wait(200)
    yield stage.window


def dialogs(stage: Stage) -> Iterator[object]:
    from app.library.skipped import SkippedDialog
    from app.settings.dialog import SettingsDialog
    from app.shortcuts import ShortcutsDialog

    stage.engine.documents = {"book": stage.fake.book()}
    stage.open()
    settings = SettingsDialog(stage.window.engine, stage.window.mirror, stage.window.preferences, stage.window)
    settings.show()
    stage.wait(200)
    yield settings
    shortcuts = ShortcutsDialog(stage.window.commands, stage.window)
    shortcuts.show()
    yield shortcuts
    skipped = SkippedDialog(stage.fake.book(title="toolz", skipped_count=4), stage.window)
    paths = (("a.pyc", "binary"), ("b.so", "binary"), (".env", "secret"), ("x/big.csv", "too_large"))
    skipped.fill([{"path": path, "reason": reason} for path, reason in paths])
    skipped.show()
    yield skipped


def models(stage: Stage) -> Iterator[object]:
    from app.settings.models import ModelsDialog
    from engine.errors import LongshelfError

    model = stage.fake.MODEL
    large = {"trial": False, "current": False, "bytes": 41_000_000_000, "memory_needed": 44_000_000_000, "fits": False}
    stage.engine.models["qwen3-8b-q4_k_m"] = {**model, **large, "name": "qwen3-8b-q4_k_m", "bytes": 5_100_000_000, "window": 40_960,
        "memory_needed": 7_800_000_000, "fits": True, "kv_gb_per_100_pages": 7.37}  # fmt: skip
    stage.engine.models["llama-3.3-70b"] = {**model, **large, "name": "llama-3.3-70b", "window": 131_072, "kv_gb_per_100_pages": 16.4}
    stage.engine.documents = {"book": stage.fake.book(), "b": stage.fake.book("b", title="Moby-Dick", parts=0, parts_ready=0, bytes=0)}
    stage.open()
    dialog = ModelsDialog(stage.window.engine, stage.window.mirror, stage.window.installing, stage.window)
    dialog.show()
    stage.wait(100)
    yield dialog
    stage.engine.flow.clear()
    dialog.add(stage.folder / "Qwen3-4B-Q4_K_M.gguf")
    stage.until(lambda: stage.window.installing.total > 1)
    stage.wait(100)
    yield dialog
    stage.engine.failures["models.add"] = LongshelfError(
        "no_template", "base.gguf has no chat template.", "Take an instruct (chat) version, or --template plain."
    )
    stage.engine.flow.set()
    stage.until(lambda: not stage.window.installing.busy)
    dialog.add(stage.folder / "base.gguf")
    stage.until(lambda: stage.window.installing.error is not None)
    stage.wait(100)
    yield dialog
    yield stage.window


VIEWS: dict[str, Callable[[Stage], Iterator[object]]] = {
    view.__name__: view
    for view in (first_start, empty, handbook, library, chat, branches, fast, streaming, trouble, dropping, dialogs, models)
}

if __name__ == "__main__":
    sys.exit(main())
