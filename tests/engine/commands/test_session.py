"""A command and the engine of its home: its own, another's, and another's that ends meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.commands.session import Output, Session, harmless
from engine.errors import LongshelfError
from engine.home import Home
from engine.service import methods
from engine.service.server import Host
from tests.engine.books import PART, book


@pytest.fixture
def session(tiny_home: Home) -> Session:
    return Session(tiny_home, Output(json=True))


def test_an_add_goes_on_by_itself_when_the_engine_it_joined_ends(tiny_home: Home, session: Session, tmp_path: Path) -> None:
    host = Host(tiny_home)
    ending = threading.Thread(target=host.close)

    def end_the_engine(event: str, data: dict[str, Any]) -> None:
        if data.get("parts_ready") and not ending.is_alive() and not host.ended.is_set():
            ending.start()

    with session:
        params = {"paths": [str(book(tmp_path, 40))], "part_tokens": PART}
        row = session.call("documents.add", params, end_the_engine)["documents"][0]
        ending.join()
        assert (row["state"], row["parts"]) == ("ready", 40)
        assert session.own_engine().shelf.library.counters.all()["tokens_prefilled_total"] <= row["tokens"] + PART


@pytest.fixture
def host(tiny_home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    """Another engine, whose answers end only when they are stopped."""

    def ask(shelf: Any, params: Any, call: Any) -> dict[str, Any]:
        call.emit("started", {})
        call.stop.wait()
        return {"answer": "so far", "stopped": True}

    monkeypatch.setitem(methods.METHODS, "ask", ask)
    host = Host(tiny_home)
    yield host
    host.close()


def test_an_answer_whose_engine_ends_gives_what_it_has_said(session: Session, host: Host) -> None:
    with session:
        result = session.call("ask", {}, lambda event, data: threading.Thread(target=host.close).start())
    assert result == {"answer": "so far", "stopped": True}


def test_a_question_whose_answer_had_begun_is_not_asked_twice(session: Session, host: Host) -> None:
    with session, pytest.raises(LongshelfError) as caught:
        session.call("ask", {}, lambda event, data: next(iter(host._connections)).close())
    assert caught.value.kind == "engine_gone"


def test_an_engine_waits_only_for_requests_that_no_other_could_take_over(tiny_home: Home) -> None:
    host = Host(tiny_home)
    with host.counted("documents.add"):
        assert host.wait_for_requests(0)
    with host.counted("ask"):
        assert not host.wait_for_requests(0)
    host.close()


def test_a_document_can_not_steer_the_terminal() -> None:
    assert harmless("a\x1b[2J\x07b\n\tc\x9b1m한글") == "a\ufffd[2J\ufffdb\n\tc\ufffd1m한글"
