"""The line to the engine: joined or started, batched, stopped, lost and found again."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QCoreApplication
from pytestqt.qtbot import QtBot

from app.engine_client import Engine, Reply
from engine.errors import LongshelfError
from engine.home import Home
from engine.service import endpoint
from tests.app.fake_engine import QUOTE, FakeEngine, book

Row = dict[str, object]


@pytest.fixture
def engine(qtbot: QtBot, home: Home) -> Iterator[Engine]:
    client = Engine(home, [sys.executable, "-m", "tests.app.fake_engine", "--home", str(home.root)])
    yield client
    client.close()


def ask(engine: Engine, **params: object) -> tuple[Reply, list[str], list[Row], list[LongshelfError]]:
    """A question, with what arrives of it: text, results, failures."""
    texts: list[str] = []
    results: list[Row] = []
    failures: list[LongshelfError] = []
    reply = engine.request("ask", {"documents": ["book"], "question": "Who?", **params}, done=results.append, failed=failures.append)
    reply.tokens.connect(texts.append)
    return reply, texts, results, failures


def test_a_running_engine_is_joined(qtbot: QtBot, fake: FakeEngine, engine: Engine) -> None:
    with qtbot.waitSignal(engine.ready):
        engine.start()
    assert engine.about["version"] == "0.1.0"


def test_an_engine_is_started_where_none_runs(qtbot: QtBot, home: Home, engine: Engine) -> None:
    with qtbot.waitSignal(engine.ready, timeout=10_000):
        engine.start()
    assert endpoint.find(home) is not None


def test_an_engine_that_was_started_ends_with_the_window(qtbot: QtBot, home: Home, engine: Engine) -> None:
    with qtbot.waitSignal(engine.ready, timeout=10_000):
        engine.start()
    engine.close()
    assert endpoint.find(home) is None


def test_an_engine_takes_the_place_of_a_dead_one(qtbot: QtBot, home: Home, fake: FakeEngine, engine: Engine) -> None:
    fake.close()
    with qtbot.waitSignal(engine.ready, timeout=10_000):
        engine.start()
    assert engine.about["pid"] != os.getpid()


def test_a_request_made_early_is_sent_when_the_engine_listens(qtbot: QtBot, fake: FakeEngine, engine: Engine) -> None:
    results: list[Row] = []
    engine.request("documents.list", done=results.append)
    engine.start()
    qtbot.waitUntil(lambda: bool(results))
    assert results == [{"documents": [book()]}]


def test_the_text_is_complete_before_the_result_comes(qtbot: QtBot, fake: FakeEngine, engine: Engine) -> None:
    engine.start()
    seen: list[str] = []
    reply, texts, results, _ = ask(engine)
    reply.finished.connect(lambda result: seen.append("".join(texts)))
    qtbot.waitUntil(lambda: bool(results))
    assert seen == [f"The book says {QUOTE} must be in want of a wife."]
    assert results[0]["answer"] == seen[0]


def test_tokens_come_in_batches(qtbot: QtBot, fake: FakeEngine, engine: Engine) -> None:
    fake.answer = "word " * 500
    engine.start()
    _, texts, results, _ = ask(engine)
    qtbot.waitUntil(lambda: bool(results))
    assert len(texts) < 100


def test_a_stopped_question_ends_with_the_text_so_far(qtbot: QtBot, fake: FakeEngine, engine: Engine) -> None:
    fake.flow.clear()
    engine.start()
    reply, texts, results, _ = ask(engine)
    qtbot.waitUntil(lambda: bool(texts))
    reply.stop()
    qtbot.waitUntil(lambda: bool(results))
    assert results[0]["stopped"] is True
    assert results[0]["answer"] == "".join(texts)


def test_stopping_what_has_ended_asks_nothing_of_the_engine(qtbot: QtBot, fake: FakeEngine, engine: Engine) -> None:
    engine.start()
    reply, _, results, _ = ask(engine)
    qtbot.waitUntil(lambda: bool(results))
    reply.stop()
    assert not fake.called("stop")


def test_a_failure_comes_as_the_error_it_is(qtbot: QtBot, fake: FakeEngine, engine: Engine) -> None:
    fake.failures["ask"] = LongshelfError("too_long", "The question is too long.", "Shorten it.")
    engine.start()
    _, _, _, failures = ask(engine)
    qtbot.waitUntil(lambda: bool(failures))
    assert failures[0].as_json() == fake.failures["ask"].as_json()


def test_a_failure_nobody_takes_is_told(qtbot: QtBot, fake: FakeEngine, engine: Engine) -> None:
    fake.failures["gc"] = LongshelfError("locked", "Another program uses the store.")
    engine.start()
    with qtbot.waitSignal(engine.trouble) as told:
        engine.request("gc")
    assert told.args is not None
    assert told.args[0].kind == "locked"


def test_open_requests_fail_when_the_engine_dies(qtbot: QtBot, fake: FakeEngine, engine: Engine) -> None:
    fake.flow.clear()
    engine.start()
    _, texts, _, failures = ask(engine)
    qtbot.waitUntil(lambda: bool(texts))
    fake.close()
    qtbot.waitUntil(lambda: bool(failures))
    assert failures[0].kind == "engine_lost"


def test_an_engine_that_dies_is_started_again(qtbot: QtBot, engine: Engine) -> None:
    with qtbot.waitSignal(engine.ready, timeout=10_000):
        engine.start()
    with qtbot.waitSignal(engine.lost, timeout=10_000) as lost:
        engine.request("crash", failed=lambda error: None)
    assert lost.args is not None
    assert lost.args[1] is True
    qtbot.waitSignal(engine.ready, timeout=10_000).wait()
    results: list[Row] = []
    engine.request("documents.list", done=results.append)
    qtbot.waitUntil(lambda: bool(results))


def test_an_engine_that_cannot_start_is_given_up_after_a_few_tries(qtbot: QtBot, home: Home) -> None:
    client = Engine(home, [sys.executable, "-c", "import sys; sys.exit('no such luck')"])
    told: list[tuple[LongshelfError, bool]] = []
    client.lost.connect(lambda error, again: told.append((error, again)))
    client.start()
    qtbot.waitUntil(lambda: bool(told) and not told[-1][1], timeout=20_000)
    assert "no such luck" in told[-1][0].hint
    client.close()


def test_a_program_that_does_not_exist_is_told(qtbot: QtBot, home: Home) -> None:
    client = Engine(home, ["/nonexistent/python"])
    with qtbot.waitSignal(client.lost) as lost:
        client.start()
    assert lost.args is not None
    assert lost.args[0].kind == "engine_lost"
    client.close()


def test_a_stranger_on_the_socket_is_told_and_left(qtbot: QtBot, fake: FakeEngine, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake, "_serve", lambda line: line._connection.sendall(b"SSH-2.0-OpenSSH_9.2\n"))
    with qtbot.waitSignal(engine.trouble) as told:
        engine.start()
    assert told.args is not None
    assert told.args[0].kind == "protocol"
    QCoreApplication.processEvents()
    assert not engine.is_connected
