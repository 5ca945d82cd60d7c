"""The engine over its socket: many requests at once, each with its own answer, each ending with its client."""

from __future__ import annotations

import json
import socket
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.errors import LongshelfError, Stopped
from engine.home import Home
from engine.service import endpoint, methods, server
from engine.service.client import Client, connect
from engine.service.server import Host
from tests.engine.books import PART, Row, book
from tests.engine.gate import PATIENCE_S, Gate

LONG_ANSWER = 3000
"""Tokens that the tiny model writes for seconds: it never ends by itself."""


@pytest.fixture
def host(tiny_home: Home) -> Iterator[Host]:
    running = Host(tiny_home)
    yield running
    running.close()


@pytest.fixture
def client(host: Host) -> Iterator[Client]:
    connected = connected_to(host)
    yield connected
    connected.close()


def connected_to(host: Host) -> Client:
    client = connect(host.home)
    assert client is not None
    return client


def until(condition: Callable[[], bool]) -> None:
    """Wait for what must come true."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.005)


def outlived(client: Client) -> LongshelfError:
    """The error of a watch whose connection ends."""
    with pytest.raises(LongshelfError) as error:
        client.call("watch")
    return error.value


def add(client: Client, path: Path) -> Row:
    row: Row = client.call("documents.add", {"paths": [str(path)], "part_tokens": PART})["documents"][0]
    return row


# ---- the socket ----


def test_the_socket_is_for_its_owner_only(host: Host) -> None:
    path = endpoint.find(host.home)
    assert path is not None
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_without_an_engine_there_is_nothing_to_connect_to(tiny_home: Home) -> None:
    assert connect(tiny_home) is None


def test_a_socket_with_nobody_behind_it_is_nothing_to_connect_to(tiny_home: Home) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tiny_home.socket))
    assert connect(tiny_home) is None


def test_a_home_has_one_engine(host: Host) -> None:
    with pytest.raises(LongshelfError) as refused:
        Host(host.home)
    assert refused.value.kind == "locked"


def test_a_refused_engine_leaves_the_first_one_reachable(host: Host) -> None:
    with pytest.raises(LongshelfError):
        Host(host.home)
    assert connected_to(host).call("hello")["home"] == str(host.home.root)


def test_an_engine_that_ended_makes_room_for_the_next(tiny_home: Home) -> None:
    for _ in range(2):
        host = Host(tiny_home)
        assert connected_to(host).call("hello")["home"] == str(tiny_home.root)
        host.close()
    assert connect(tiny_home) is None


def test_an_engine_in_a_deep_home_is_reached(tiny_models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as near:
        monkeypatch.setattr(tempfile, "tempdir", near)
        host = Host(Home(tmp_path / ("deep" * 40)))
        assert connected_to(host).call("documents.list") == {"documents": []}
        host.close()


def test_hello_tells_who_is_there(client: Client, host: Host) -> None:
    hello = client.call("hello")
    assert hello["model"]["name"] == "tiny"
    assert (hello["models_installed"], hello["threads"], hello["device"]) == (1, 1, "cpu")


# ---- requests and answers ----


def test_an_unknown_method_is_refused(client: Client) -> None:
    with pytest.raises(LongshelfError, match="documents.burn") as refused:
        client.call("documents.burn")
    assert refused.value.kind == "usage"


def test_an_error_arrives_as_what_it_was(client: Client) -> None:
    with pytest.raises(LongshelfError, match="nothing") as refused:
        client.call("documents.show", {"id": "nothing"})
    assert (refused.value.kind, bool(refused.value.hint)) == ("not_found", True)


def test_a_fault_of_ours_is_told_as_such_and_the_next_request_is_served(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(methods.METHODS, "gc", lambda shelf, params, call: 1 / 0)
    with pytest.raises(LongshelfError, match="ZeroDivisionError") as fault:
        client.call("gc")
    assert fault.value.kind == "engine_fault"
    assert client.call("documents.list") == {"documents": []}


def test_a_line_that_is_none_of_ours_is_answered_and_the_connection_stays(host: Host) -> None:
    with socket.socket(socket.AF_UNIX) as raw:
        raw.connect(str(endpoint.find(host.home)))
        raw.sendall(b'GET / HTTP/1.1\n{"id": 1, "method": "documents.list"}\n')
        replies = [json.loads(line) for _, line in zip(range(2), raw.makefile("rb"), strict=False)]
    assert (replies[0]["id"], replies[0]["error"]["kind"]) == (None, "protocol")
    assert replies[1] == {"id": 1, "result": {"documents": []}}


def test_the_events_of_an_answer_come_in_order_before_its_result(client: Client, tmp_path: Path) -> None:
    document = add(client, book(tmp_path, 1))
    events: list[tuple[str, Row]] = []
    asked = {"documents": [document["id"]], "question": "Who?", "max_tokens": 30}
    result = client.call("ask", asked, lambda name, data: events.append((name, data)))
    assert events[0] == ("started", {name: result[name] for name in ("chat", "user_message", "assistant_message")})
    assert [data["name"] for name, data in events if name == "phase"] == ["loading", "reading_question", "answering"]
    assert "".join(data["text"] for name, data in events if name == "token") == result["answer"]


def test_a_request_is_served_while_another_one_works(client: Client, host: Host, tmp_path: Path) -> None:
    gate = Gate(host.shelf, at=1)
    rows: list[Row] = []
    adding = threading.Thread(target=lambda: rows.append(add(client, book(tmp_path, 1))))
    adding.start()
    gate.wait()
    assert [row["state"] for row in client.call("documents.list")["documents"]] == ["remembering"]
    gate.open()
    adding.join(PATIENCE_S)
    assert rows[0]["state"] == "ready"


def test_questions_of_several_clients_each_get_their_own_answer(client: Client, host: Host, tmp_path: Path) -> None:
    document = add(client, book(tmp_path, 1))
    questions = [f"Who keeps lamp 1.{n}?" for n in range(4)]
    clients = [connected_to(host) for _ in questions]

    def asked(one: Client, question: str) -> list[int]:
        ids: list[int] = one.call("ask", {"documents": [document["id"]], "question": question, "max_tokens": 20})["token_ids"]
        return ids

    alone = [asked(client, question) for question in questions]
    together: dict[int, list[int]] = {}
    threads = [
        threading.Thread(target=lambda n=n: together.update({n: asked(clients[n], questions[n])}))  # type: ignore[misc]
        for n in range(len(questions))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert [together[n] for n in range(len(questions))] == alone


# ---- stopping ----


def test_a_stopped_answer_keeps_its_text(client: Client, host: Host, tmp_path: Path) -> None:
    document, stop = add(client, book(tmp_path, 1)), threading.Event()
    asked = {"documents": [document["id"]], "question": "Who?", "max_tokens": LONG_ANSWER}
    result = client.call("ask", asked, lambda name, data: stop.set() if name == "token" else None, stop)
    assert result["stopped"]
    assert 0 < len(result["token_ids"]) < LONG_ANSWER
    [_, kept] = client.call("chats.show", {"id": result["chat"]})["messages"]
    assert (kept["status"], kept["text"]) == ("stopped", result["answer"])


def test_stopping_what_leaves_no_result_says_so(client: Client, host: Host, tmp_path: Path) -> None:
    gate, stop = Gate(host.shelf, at=1), threading.Event()

    def opened_once_stopped() -> None:
        gate.wait()
        stop.set()
        until(lambda: host.shelf.library.jobs.all(["paused"]) != [])
        gate.open()

    threading.Thread(target=opened_once_stopped).start()
    with pytest.raises(Stopped):
        client.call("documents.add", {"paths": [str(book(tmp_path, 1))]}, stop=stop)


def test_stopping_ends_only_the_request_it_names(client: Client, host: Host, tmp_path: Path) -> None:
    document, stop = add(client, book(tmp_path, 1)), threading.Event()
    events: list[str] = []
    end = threading.Event()
    watching = threading.Thread(target=client.call, args=("watch", {}, lambda name, data: events.append(name), end))
    watching.start()
    until(lambda: bool(host.shelf._listeners))
    asked = {"documents": [document["id"]], "question": "Who?", "max_tokens": LONG_ANSWER}
    answer = client.call("ask", asked, lambda name, data: stop.set() if name == "token" else None, stop)
    assert answer["stopped"]
    events.clear()
    client.call("chats.rename", {"id": client.call("chats.list")["chats"][0]["id"], "title": "Lamps"})
    until(lambda: "chats" in events)
    assert watching.is_alive()
    end.set()
    watching.join(PATIENCE_S)


def test_stopping_what_is_over_does_nothing(host: Host) -> None:
    with socket.socket(socket.AF_UNIX) as raw:
        raw.connect(str(endpoint.find(host.home)))
        raw.sendall(b'{"id": 1, "method": "stop", "params": {"request": 99}}\n')
        assert json.loads(raw.makefile("rb").readline()) == {"id": 1, "result": {}}


# ---- watching ----


def test_a_watcher_is_told_what_another_client_changes(client: Client, host: Host, tmp_path: Path) -> None:
    told: list[tuple[str, Row]] = []
    stop = threading.Event()
    watching = threading.Thread(target=client.call, args=("watch", {}, lambda name, data: told.append((name, data)), stop))
    watching.start()
    until(lambda: bool(host.shelf._listeners))
    other = connected_to(host)
    document = add(other, book(tmp_path, 1))
    other.call("ask", {"documents": [document["id"]], "question": "Who?", "max_tokens": 5})
    until(lambda: ("status", {"state": "ready"}) in told[-3:] and any(name == "chats" for name, _ in told))
    states = [row["state"] for name, data in told if name == "documents" for row in data["documents"]]
    assert list(dict.fromkeys(states)) == ["queued", "remembering", "ready"]
    assert {"reading", "answering", "ready"} <= {data["state"] for name, data in told if name == "status"}
    stop.set()
    watching.join(PATIENCE_S)
    assert not watching.is_alive()


def test_a_watcher_that_stops_is_told_no_more(client: Client, host: Host) -> None:
    stop = threading.Event()
    watching = threading.Thread(target=client.call, args=("watch", {}, None, stop))
    watching.start()
    until(lambda: len(host.shelf._listeners) == 1)
    stop.set()
    watching.join(PATIENCE_S)
    assert host.shelf._listeners == []


# ---- clients that go ----


def test_a_question_ends_with_its_client_and_what_was_said_is_kept(client: Client, host: Host, tmp_path: Path) -> None:
    document, leaving = add(client, book(tmp_path, 1)), connected_to(host)
    asked = {"documents": [document["id"]], "question": "Who?", "max_tokens": LONG_ANSWER}
    with pytest.raises(LongshelfError):
        leaving.call("ask", asked, lambda name, data: leaving.close() if name == "token" else None)
    host.wait_for_requests(PATIENCE_S)
    assert not host.busy
    [chat] = client.call("chats.list")["chats"]
    [question, answer] = client.call("chats.show", {"id": chat["id"]})["messages"]
    assert (question["status"], answer["status"]) == ("complete", "stopped")
    assert answer["text"]


def test_a_watcher_ends_with_its_client(host: Host) -> None:
    leaving = connected_to(host)
    threading.Thread(target=outlived, args=(leaving,)).start()
    until(lambda: len(host.shelf._listeners) == 1)
    leaving.close()
    until(lambda: host.shelf._listeners == [])


def test_a_client_that_reads_nothing_is_let_go_and_holds_up_no_one(
    tiny_home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "PATIENCE_S", 1)
    host = Host(tiny_home)
    with socket.socket(socket.AF_UNIX) as stuck:
        stuck.connect(str(endpoint.find(host.home)))
        stuck.sendall(b'{"id": 1, "method": "watch"}\n')
        until(lambda: len(host.shelf._listeners) == 1)
        for _ in range(30):
            host.shelf.publish("documents", {"documents": [{"title": "x" * 100_000}]})
        assert add(connected_to(host), book(tmp_path, 1))["state"] == "ready"
        until(lambda: host.shelf._listeners == [])
    host.close()


def test_an_engine_that_ends_gives_what_an_answer_has_said(client: Client, host: Host, tmp_path: Path) -> None:
    document = add(client, book(tmp_path, 1))
    asked = {"documents": [document["id"]], "question": "Who?", "max_tokens": LONG_ANSWER}
    ending = threading.Thread(target=host.close)
    result = client.call("ask", asked, lambda name, data: ending.start() if name == "token" and not ending.ident else None)
    ending.join(PATIENCE_S)
    assert result["stopped"]
    assert result["answer"]


def test_one_client_that_goes_leaves_the_others_alone(client: Client, host: Host) -> None:
    leaving = connected_to(host)
    leaving.call("documents.list")
    leaving.close()
    assert client.call("documents.list") == {"documents": []}


def test_a_request_that_outlives_its_engine_is_told(client: Client, host: Host) -> None:
    failures: list[LongshelfError] = []
    watching = threading.Thread(target=lambda: failures.append(outlived(client)))
    watching.start()
    until(lambda: len(host.shelf._listeners) == 1)
    client._socket.shutdown(socket.SHUT_RD)  # what the end of the other process looks like
    watching.join(PATIENCE_S)
    assert [failure.kind for failure in failures] == ["engine_gone"]
