"""Looking after a home: the methods `doctor` and `paths`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from engine.errors import LongshelfError
from engine.library import checkup, mending
from engine.library.counters import TOKENS_PREFILLED
from engine.model import calibration
from engine.model.card import CARD_FILE
from engine.model.config import damaged
from engine.reading import room
from engine.store import space

if TYPE_CHECKING:
    from engine.library.library import Library
    from engine.model.installed import InstalledModel
    from engine.shelf import Call, Shelf


_ROUNDS = 4


def doctor(shelf: Shelf, params: dict[str, Any], call: Call) -> dict[str, Any]:
    """{problems, repaired, tokens_prefilled_total, …}: what is wrong in this home, and, where asked, its repair."""
    rebuilt: dict[str, Any] | None = None
    on_disk = space.space(shelf.home.root)
    disk = {"free": on_disk.free, "floor": on_disk.floor, "limit": room.limit(shelf)}
    models = _model_problems(shelf, bool(params.get("deep")))
    try:
        library = shelf.library
    except LongshelfError as error:
        if error.kind != "catalog_damaged":
            raise
        if not params.get("repair"):
            unknown = {"tokens_prefilled_total": None, "bytes_used": None}
            return {"problems": [_of_error(error), *models], "repaired": [], "rebuilt": None, **unknown, **disk}
        rebuilt = _rebuild(shelf)
        library = shelf.library

    def say(done: int, total: int) -> None:
        call.emit("progress", {"stage": "segments", "done": done, "total": total})

    def examined(library: Library) -> list[checkup.Problem]:
        return checkup.examine(library, bool(params.get("deep")), call.stop.is_set, say)

    problems = examined(library)
    repaired: list[dict[str, Any]] = []
    for _ in range(_ROUNDS if params.get("repair") else 0):  # what was hidden behind one problem is found once that is mended
        if not problems:
            break
        if problems[0].kind == "catalog_damaged" and any(entry["kind"] == "catalog_damaged" for entry in repaired):
            rebuilt = _rebuild(shelf)
            library = shelf.library
        else:
            done = shelf.model_thread.run(partial(mending.repair, library, problems))
            repaired += [{**repair.problem.as_json(), "done": repair.done} for repair in done]
        problems = examined(library)
    if repaired:
        _read_damaged_again(shelf)
    counters = library.counters.all()
    return {
        "problems": [*(problem.as_json() for problem in problems), *models],
        "repaired": repaired,
        "rebuilt": rebuilt,
        "tokens_prefilled_total": counters.get(TOKENS_PREFILLED, 0),
        "bytes_used": library.store.usage() + library.sidecars.store.usage(),
        **disk,
    }


def _rebuild(shelf: Shelf) -> dict[str, Any]:
    """The catalog made again, and what came back."""
    result = shelf.rebuild()
    aside = str(result.aside) if result.aside is not None else None
    return {"documents": result.documents, "parts_ready": result.parts_ready, "chats": result.chats, "kept_aside": aside}


def _model_problems(shelf: Shelf, deep: bool) -> list[dict[str, str]]:
    """What is wrong with the installed models. deep: their whole content is compared with what was installed."""
    problems: list[dict[str, str]] = []
    for name in shelf.models.without_card():
        what = f"The model in {shelf.home.models / name} has no card, {CARD_FILE}; it can't be used."
        problems.append(_of_error(damaged(what)) | {"cause": "The file was removed by another program."})
    for name in shelf.models.names():
        try:
            model = shelf.models.open(name)
            calibration.load(model)
            if deep:
                model.verify()
                _verify_projections(model)
        except LongshelfError as error:
            problems.append(_of_error(error) | {"cause": "A disk fault, or another program wrote into the file."})
    return problems


def _verify_projections(model: InstalledModel) -> None:
    from engine.retrieval import projections  # torch

    projections.are_kept(model)


def _of_error(error: LongshelfError) -> dict[str, str]:
    return {"kind": error.kind, "what": error.message, "cause": "", "next": error.hint}


def _read_damaged_again(shelf: Shelf) -> None:
    """Queue the documents whose parts lost a piece."""
    library = shelf.library
    for row in library.documents.all():
        for part in library.parts.of(row.id):
            if part.state == "damaged":
                library.jobs.add(row.id, part.model)
                library.documents.set_state(row.id, "queued")
                break
    shelf.queue.wake()


def paths(shelf: Shelf, params: dict[str, Any], call: Call) -> dict[str, Any]:
    """Where everything of this home lies, and how large it is."""
    home = shelf.home
    places = {
        "home": home.root,
        "models": home.models,
        "segments": home.segments,
        "sidecars": home.sidecars,
        "catalog": home.catalog,
        "texts": home.texts,
        "chats": home.chats,
        "log": home.log,
    }
    return {
        name: {"path": str(path), "bytes": sum(f.stat().st_size for f in path.rglob("*") if f.is_file()) if path.is_dir() else _size(path)}
        for name, path in places.items()
    }


def _size(path: Any) -> int:
    return int(path.stat().st_size) if path.exists() else 0
