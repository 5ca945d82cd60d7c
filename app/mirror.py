"""What the engine holds, as the window last heard it: documents, chats, models, and what it is doing.

Views subscribe to the signals and never ask the engine for lists themselves. Each signal carries only the rows that changed; a row that
went away has `removed` set. After a lost connection everything is fetched anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from PySide6.QtCore import QObject, Signal

from app.engine_client import Engine

Row = dict[str, Any]


class Mirror(QObject):
    documents_changed = Signal(list)
    chats_changed = Signal(list)
    models_changed = Signal(list)
    status_changed = Signal(object)

    def __init__(self, engine: Engine, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self.documents: dict[str, Row] = {}
        self.chats: dict[str, Row] = {}
        self.models: dict[str, Row] = {}
        self.status: Row = {"state": "starting"}
        self._expected: list[tuple[set[str], Callable[[], object]]] = []
        self.models_known = False  # the list has come: only then is "no model installed" a fact
        engine.ready.connect(self.reload)
        engine.lost.connect(self._on_lost)

    def reload(self) -> None:
        """Watch first, then list: what changes in between is told twice rather than never."""
        self._set_status({"state": "ready"})
        self._engine.request("watch", event=self._on_event, failed=lambda error: None)
        for method, name in (("models.list", "models"), ("documents.list", "documents"), ("chats.list", "chats")):
            self._engine.request(method, done=lambda result, name=name: self._replace(name, result.get(name, [])))

    def current_model(self) -> Row | None:
        """The installed model that answers, if there is one."""
        installed = [row for row in self.models.values() if row.get("installed")]
        return next((row for row in installed if row.get("current")), installed[0] if installed else None)

    def title_of(self, document: str) -> str:
        return str(self.documents.get(document, {}).get("title") or "")

    def when_known(self, documents: Iterable[str], act: Callable[[], object]) -> None:
        """Do something once the rows of these documents are here; the result of adding them may come before."""
        self._expected.append((set(documents), act))
        self._meet()

    def _meet(self) -> None:
        met = [expected for expected in self._expected if expected[0] <= self.documents.keys()]
        self._expected = [expected for expected in self._expected if expected not in met]
        for _, act in met:
            act()

    def _replace(self, name: str, rows: list[Row]) -> None:
        held: dict[str, Row] = getattr(self, name)
        gone = set(held) - {_key(name, row) for row in rows}
        self.models_known = self.models_known or name == "models"
        self._merge(name, [*rows, *({_key_name(name): key, "removed": True} for key in gone)])

    def _on_event(self, name: str, data: Row) -> None:
        if name == "status":
            self._set_status(data)
        elif name in ("documents", "chats", "models"):
            self._merge(name, data.get(name, []))

    def _merge(self, name: str, rows: list[Row]) -> None:
        held: dict[str, Row] = getattr(self, name)
        for row in rows:
            key = _key(name, row)
            if row.get("removed"):
                held.pop(key, None)
            else:
                held[key] = {**held.get(key, {}), **row}
        changed = [row if row.get("removed") else held[_key(name, row)] for row in rows]
        getattr(self, f"{name}_changed").emit(changed)
        self._meet()

    def _on_lost(self, error: object, again: bool) -> None:
        self._set_status({"state": "starting" if again else "lost"})

    def _set_status(self, status: Row) -> None:
        self.status = status
        self.status_changed.emit(status)


def _key_name(name: str) -> str:
    return "name" if name == "models" else "id"


def _key(name: str, row: Row) -> str:
    return str(row[_key_name(name)])
