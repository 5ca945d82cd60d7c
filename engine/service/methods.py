"""The methods that clients can call, by name. Each takes the shelf, the parameters and the call, and gives the result object."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine import settings
from engine.errors import LongshelfError, Stopped
from engine.version import VERSION

if TYPE_CHECKING:
    from engine.model.calibration import Calibration
    from engine.shelf import Call, Shelf

Params = dict[str, Any]
Method = Callable[["Shelf", Params, "Call"], dict[str, Any]]


def hello(shelf: Shelf, params: Params, call: Call) -> dict[str, Any]:
    from engine.threads import default_threads

    rows = shelf.models.list()
    return {
        "version": VERSION,
        "home": str(shelf.home.root),
        "pid": os.getpid(),
        "model": next((row for row in rows if row["current"]), None),
        "models_installed": len(shelf.models.names()),
        "threads": settings.load(shelf.home).threads or default_threads(),
        "device": "cpu",
    }


def watch(shelf: Shelf, params: Params, call: Call) -> dict[str, Any]:
    """Every change until the client stops it."""
    end = shelf.subscribe(call.emit)
    try:
        call.stop.wait()
    finally:
        end()
    return {}


def models_list(shelf: Shelf, params: Params, call: Call) -> dict[str, Any]:
    return {"models": shelf.models.list()}


def models_fetch(shelf: Shelf, params: Params, call: Call) -> dict[str, Any]:
    from engine.model import fetch, install
    from engine.model.plan import Wishes

    wishes = Wishes(params.get("template") or "own", params.get("pack"))
    name = install.fetch(shelf.home, params.get("name") or fetch.DEFAULT.name, _progress(call), call.stop.is_set, wishes)
    _fit(shelf, name, call)
    return _models_changed(shelf, name)


def models_add(shelf: Shelf, params: Params, call: Call) -> dict[str, Any]:
    from engine.model import install
    from engine.model.plan import Wishes

    path = Path(os.path.abspath(os.path.expanduser(params["path"])))
    wishes = Wishes(params.get("template") or "own", params.get("pack"))
    name = install.install_model(shelf.home, path, params.get("name"), _progress(call), call.stop.is_set, wishes)
    _fit(shelf, name, call)
    return _models_changed(shelf, name)


def _fit(shelf: Shelf, name: str, call: Call) -> None:
    """Fit what sketches are made with, some seconds of an install. Where that can't be done now, the first document does it."""
    from engine.retrieval import projections

    if projections.are_kept(shelf.models.open(name)):
        return
    call.emit("progress", {"stage": "fit", "done": 0, "total": 0})
    with suppress(LongshelfError, Stopped):  # installed it is all the same
        model, _ = shelf.model(name)
        shelf.model_thread.run(lambda: projections.of(model, _between_layers(shelf, call)))


def models_listing(shelf: Shelf, params: Params, call: Call) -> dict[str, Any]:
    """What fetching a model of the Hugging Face Hub would download. Goes online."""
    from engine.model import hub

    wanted = hub.listing(str(params["name"]))
    return {"name": wanted.repo, "commit": wanted.commit, "bytes": wanted.bytes, "files": wanted.files}


def models_use(shelf: Shelf, params: Params, call: Call) -> dict[str, Any]:
    shelf.models.use(params["name"])
    return _models_changed(shelf, params["name"])


def models_remove(shelf: Shelf, params: Params, call: Call) -> dict[str, Any]:
    from engine.model.identity import namespaces

    shelf.models.remove(params["name"])
    shelf.unload()
    with suppress(LongshelfError):  # a damaged catalog, say: they go when room is made
        shelf.library.sidecars.drop_other_models(namespaces(shelf.models))
    return _models_changed(shelf, params["name"])


def models_calibrate(shelf: Shelf, params: Params, call: Call) -> dict[str, Any]:
    """Measure a model and keep what was found with it; gives that. within_s: only where it is expected to take no longer.

    expected_s: how long that is; "found" is missing where it was not measured.
    """
    from engine.evaluation.calibrate import calibrate
    from engine.model.calibration import expected_s

    installed = shelf.models.open(params.get("name"))
    expected = round(expected_s(installed.config), 1)
    if expected > float(params.get("within_s", float("inf"))):
        return {"name": installed.name, "expected_s": expected}
    model, _ = shelf.model(installed.name)
    before_layer = _between_layers(shelf, call)

    def work() -> Calibration:
        return calibrate(shelf, model, lambda stage: call.emit("progress", {"stage": stage, "done": 0, "total": 0}), before_layer)

    return {"name": model.name, "expected_s": expected, **shelf.model_thread.run(work).as_json()}


def _between_layers(shelf: Shelf, call: Call) -> Callable[[], None]:
    """What long work on the model thread does between layers: let questions pass, and end when the caller wants that."""

    def before_layer() -> None:
        shelf.model_thread.let_urgent_pass()
        if call.stop.is_set():
            raise Stopped

    return before_layer


def _models_changed(shelf: Shelf, name: str) -> dict[str, Any]:
    """Tell every client: the models, and the documents, of which another model may have read other parts."""
    from engine.reading.rows import document_row

    rows = shelf.models.list()
    gone = [] if any(row["name"] == name for row in rows) else [{"name": name, "removed": True}]
    shelf.publish("models", {"models": [*rows, *gone]})
    with suppress(LongshelfError):  # a damaged catalog, say
        shelf.publish("documents", {"documents": [document_row(shelf, row) for row in shelf.library.documents.all()]})
    return {"name": name, "models": rows}


def _progress(call: Call) -> Callable[[str, int, int], None]:
    return lambda stage, done, total: call.emit("progress", {"stage": stage, "done": done, "total": total})


def _jobs(action: str) -> Method:
    def change(shelf: Shelf, params: Params, call: Call) -> dict[str, Any]:
        from engine.reading import jobs

        return jobs.change_jobs(shelf, {**params, "action": action}, call)

    return change


def chats_list(shelf: Shelf, params: Params, call: Call) -> dict[str, Any]:
    chats = shelf.library.chats.all()
    if query := params.get("query"):
        found = set(shelf.library.search.find_chats(query))
        chats = [chat for chat in chats if chat.id in found]
    return {"chats": [chat.as_row() for chat in chats]}


def chats_show(shelf: Shelf, params: Params, call: Call) -> dict[str, Any]:
    from engine.answering.asking import citation_json

    library = shelf.library
    chat = library.chats.get(str(params["id"]))
    messages = []
    for message in library.chats.messages(chat.id):
        fields = asdict(message)
        fields.pop("chat_id")
        messages.append(fields | {"citations": [citation_json(citation) for citation in message.citations]})
    return {**chat.as_row(), "messages": messages}


def chats_rename(shelf: Shelf, params: Params, call: Call) -> dict[str, Any]:
    row = shelf.library.chats.rename(str(params["id"]), str(params["title"])).as_row()
    shelf.publish("chats", {"chats": [row]})
    return row


def chats_remove(shelf: Shelf, params: Params, call: Call) -> dict[str, Any]:
    shelf.library.chats.remove(str(params["id"]))
    shelf.publish("chats", {"chats": [{"id": params["id"], "removed": True}]})
    return {"id": params["id"]}


def chats_export(shelf: Shelf, params: Params, call: Call) -> dict[str, Any]:
    from engine.library import export

    form = params.get("format", "markdown")
    if form not in ("markdown", "json"):
        raise LongshelfError("usage", f"Chats are exported as markdown or json, not {form!r}.")
    make = export.as_json if form == "json" else export.as_markdown
    return {"id": params["id"], "format": form, "text": make(shelf.library.chats, str(params["id"]))}


def settings_get(shelf: Shelf, params: Params, call: Call) -> dict[str, Any]:
    return settings.load(shelf.home).as_json()


def settings_set(shelf: Shelf, params: Params, call: Call) -> dict[str, Any]:
    changed = settings.change(shelf.home, params)
    if "threads" in params:
        from engine.threads import use_threads

        shelf.model_thread.run(lambda: use_threads(changed.threads), urgent=True)
    return changed.as_json()


def _elsewhere(module: str, name: str) -> Method:
    """The method `name` of a module that is imported when it is first called: a client that lists documents needs no torch."""

    def call_it(shelf: Shelf, params: Params, call: Call) -> dict[str, Any]:
        method: Method = getattr(importlib.import_module(module), name)
        return method(shelf, params, call)

    return call_it


METHODS: dict[str, Method] = {
    "hello": hello,
    "watch": watch,
    "models.list": models_list,
    "models.fetch": models_fetch,
    "models.listing": models_listing,
    "models.add": models_add,
    "models.use": models_use,
    "models.remove": models_remove,
    "models.calibrate": models_calibrate,
    "documents.add": _elsewhere("engine.reading.adding", "add"),
    "documents.list": _elsewhere("engine.reading.shelved", "list_documents"),
    "documents.show": _elsewhere("engine.reading.shelved", "show"),
    "documents.read": _elsewhere("engine.reading.shelved", "read_only"),
    "documents.remove": _elsewhere("engine.reading.shelved", "remove"),
    "documents.forget": _elsewhere("engine.reading.room", "forget"),
    "jobs.list": _elsewhere("engine.reading.jobs", "list_jobs"),
    "jobs.pause": _jobs("pause"),
    "jobs.resume": _jobs("resume"),
    "jobs.cancel": _jobs("cancel"),
    "jobs.retry": _jobs("retry"),
    "ask": _elsewhere("engine.answering.asking", "ask"),
    "chats.list": chats_list,
    "chats.show": chats_show,
    "chats.rename": chats_rename,
    "chats.remove": chats_remove,
    "chats.export": chats_export,
    "settings.get": settings_get,
    "settings.set": settings_set,
    "doctor": _elsewhere("engine.service.care", "doctor"),
    "gc": _elsewhere("engine.reading.room", "gc"),
    "paths": _elsewhere("engine.service.care", "paths"),
}
