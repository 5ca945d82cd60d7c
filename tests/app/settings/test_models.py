"""The models: what each costs, which one answers, and adding one of one's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot

from app import words
from app.library.documents import DETAIL
from app.settings import models
from app.settings.models import ModelsDialog
from app.window import Window
from engine.errors import LongshelfError
from tests.app.fake_engine import MODEL, FakeEngine, book


@pytest.fixture
def dialog(window: Window) -> ModelsDialog:
    window.commands.models.trigger()
    found = window.findChild(ModelsDialog)
    assert isinstance(found, ModelsDialog)
    return found


@pytest.fixture
def two(qtbot: QtBot, fake: FakeEngine, dialog: ModelsDialog, tmp_path: Path) -> ModelsDialog:
    """With a second model, which is installed and not in use."""
    add(qtbot, dialog, tmp_path / "Mine.gguf")
    return dialog


def add(qtbot: QtBot, dialog: ModelsDialog, path: Path) -> None:
    dialog.add(path)
    qtbot.waitUntil(lambda: not dialog._installing.busy)


def names(dialog: ModelsDialog) -> list[str]:
    model = dialog.view.model()
    return [model.index(row, 0).data() for row in range(model.rowCount())]


def test_a_model_says_what_it_costs(dialog: ModelsDialog) -> None:
    assert names(dialog) == [MODEL["name"]]
    detail = dialog.view.model().index(0, 0).data(DETAIL)
    assert detail == (
        "in use · trial model · 270 MB · runs in 1.1 GB of memory · 1.1 GB for 100 pages · reads 8,192 tokens at once · Apache-2.0"
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"fits": False, "memory_needed": 44e9}, "needs 44 GB of memory, this machine has 16 GB"),
        ({"installed": False, "bytes": 93_000_000}, "a download of 93 MB"),
        ({"problem": "The model in /x is damaged."}, "The model in /x is damaged."),
    ],
)
def test_what_stands_in_the_way_of_a_model_is_said(english: None, changes: dict[str, object], said: str) -> None:
    assert said in words.model({**MODEL, **changes})


def test_a_file_becomes_a_model_with_its_progress(qtbot: QtBot, dialog: ModelsDialog, fake: FakeEngine, tmp_path: Path) -> None:
    fake.flow.clear()
    dialog.add(tmp_path / "Mine.gguf")
    qtbot.waitUntil(lambda: dialog._stage.text() == "Converting the model · 3.0 GB / 6.0 GB")
    assert not dialog.file_button.isEnabled()
    fake.flow.set()
    qtbot.waitUntil(lambda: "mine is installed." in dialog.said())
    assert fake.called("models.add") == [{"path": str(tmp_path / "Mine.gguf"), "pack": None, "template": None}]
    assert fake.called("models.calibrate") == [{"name": "mine", "within_s": 180}]
    assert names(dialog) == [MODEL["name"], "mine"]


def test_the_dialogs_choose_files_and_folders(
    qtbot: QtBot, dialog: ModelsDialog, fake: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(tmp_path / "a.gguf"), ""))
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(tmp_path / "folder"))
    dialog.file_button.click()
    qtbot.waitUntil(lambda: not dialog._installing.busy)
    dialog.pack.setCurrentIndex(1)
    dialog.folder_button.click()
    qtbot.waitUntil(lambda: not dialog._installing.busy)
    assert [(call["path"], call["pack"]) for call in fake.called("models.add")] == [
        (str(tmp_path / "a.gguf"), None),
        (str(tmp_path / "folder"), "q8_0"),
    ]


def test_adding_can_be_cancelled(qtbot: QtBot, dialog: ModelsDialog, fake: FakeEngine, tmp_path: Path) -> None:
    fake.flow.clear()
    dialog.add(tmp_path / "Mine.gguf")
    qtbot.waitUntil(dialog.cancel_button.isVisible)
    dialog.cancel_button.click()
    qtbot.waitUntil(lambda: bool(fake.called("stop")))
    fake.flow.set()
    qtbot.waitUntil(lambda: not dialog._installing.busy)
    assert dialog.said() == ""
    assert names(dialog) == [MODEL["name"]]


def test_a_file_that_is_no_model_is_refused_with_its_reason(qtbot: QtBot, dialog: ModelsDialog, fake: FakeEngine, tmp_path: Path) -> None:
    fake.failures["models.add"] = LongshelfError("not_a_model", "notes.gguf is not a GGUF file.", "Take another file.")
    add(qtbot, dialog, tmp_path / "notes.gguf")
    assert dialog.said() == "notes.gguf is not a GGUF file. Take another file."
    assert not dialog.plain_button.isVisible()


def test_a_model_without_chat_template_can_be_added_all_the_same(
    qtbot: QtBot, dialog: ModelsDialog, fake: FakeEngine, tmp_path: Path
) -> None:
    fake.failures["models.add"] = LongshelfError("no_template", "base has no chat template.", "Use --template plain.")
    add(qtbot, dialog, tmp_path / "base.gguf")
    assert dialog.said() == "base has no chat template."
    fake.failures.clear()
    dialog.plain_button.click()
    qtbot.waitUntil(lambda: "base is installed." in dialog.said())
    assert fake.called("models.add")[1]["template"] == "plain"


def test_a_model_that_was_not_measured_says_so(qtbot: QtBot, dialog: ModelsDialog, fake: FakeEngine, tmp_path: Path) -> None:
    fake.failures["models.calibrate"] = LongshelfError("engine_fault", "It failed.")
    add(qtbot, dialog, tmp_path / "Mine.gguf")
    assert "mine is installed. How large its parts should be is a guess" in dialog.said()


def test_installing_goes_on_when_the_dialog_is_closed(
    qtbot: QtBot, window: Window, dialog: ModelsDialog, fake: FakeEngine, tmp_path: Path
) -> None:
    fake.flow.clear()
    dialog.add(tmp_path / "Mine.gguf")
    with qtbot.waitSignal(dialog.destroyed):
        dialog.close()
    fake.failures["models.calibrate"] = LongshelfError("engine_fault", "It failed.")
    fake.flow.set()
    qtbot.waitUntil(lambda: "mine" in window.mirror.models)


def test_a_failure_after_the_dialog_was_closed_is_told_by_the_window(
    qtbot: QtBot, window: Window, dialog: ModelsDialog, fake: FakeEngine, tmp_path: Path
) -> None:
    with qtbot.waitSignal(dialog.destroyed):
        dialog.close()
    fake.failures["models.add"] = LongshelfError("disk_full", "The disk is full.", "Free some space.")
    window.installing.add(tmp_path / "Mine.gguf")
    qtbot.waitUntil(lambda: "The disk is full." in window.trouble.text())


def test_changing_the_model_says_what_must_be_read_again(
    qtbot: QtBot, two: ModelsDialog, fake: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(models, "confirmed", lambda parent, question, detail, yes: asked.append(f"{question} {detail}") or len(asked) > 1)
    two.choose("mine")
    two.use_button.click()
    assert "Answer with mine from now on?" in asked[0]
    assert "1 document must be read again" in asked[0]
    assert "about 3.9 GB on the disk" in asked[0]
    assert not fake.called("models.use")
    two.use_button.click()
    qtbot.waitUntil(lambda: two._mirror.models["mine"]["current"])
    assert names(two)[0] == "mine"
    assert not two.use_button.isEnabled()


def test_a_model_is_removed_after_asking(qtbot: QtBot, two: ModelsDialog, fake: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "confirmed", lambda *_: True)
    two.choose("mine")
    two.remove_button.click()
    qtbot.waitUntil(lambda: names(two) == [MODEL["name"]])
    assert fake.called("models.remove") == [{"name": "mine"}]


def test_what_the_engine_refuses_is_said(qtbot: QtBot, two: ModelsDialog, fake: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "confirmed", lambda *_: True)
    fake.failures["models.use"] = LongshelfError("model_damaged", "The model is damaged.", "Install it again.")
    two.choose("mine")
    two.use_button.click()
    qtbot.waitUntil(lambda: two.said() == "The model is damaged. Install it again.")


def test_a_download_says_that_the_network_is_used(qtbot: QtBot, window: Window, two: ModelsDialog, fake: FakeEngine) -> None:
    fake.push("models", [{**MODEL, "name": "smollm2", "installed": False, "current": False}])
    qtbot.waitUntil(lambda: "smollm2" in names(two))
    two.choose("smollm2")
    fake.flow.clear()
    two.fetch_button.click()
    qtbot.waitUntil(lambda: "93 MB / 93 MB" in two._stage.text())
    assert "network" in window.status.text()
    fake.flow.set()
    qtbot.waitUntil(lambda: "Offline" in window.status.text())


def test_a_document_that_another_model_read_is_offered_to_be_read_again(qtbot: QtBot, window: Window, fake: FakeEngine) -> None:
    fake.push("documents", [book(parts=0, parts_ready=0, bytes=0)])
    qtbot.waitUntil(lambda: window.mirror.documents["book"]["parts"] == 0)
    row = window.mirror.documents["book"]
    assert words.state(row) == "Read by another model, not by this one"
    assert not words.is_askable(row)
    window.library.select_document("book")
    assert window.commands.read_again in window.library.document_actions([row]).actions()
    window.commands.read_again.trigger()
    qtbot.waitUntil(lambda: fake.called("documents.add") == [{"paths": [row["path"]], "wait": False}])
