"""What stands on the socket: lines that come out as they went in."""

from __future__ import annotations

import pytest

from engine.errors import LongshelfError
from engine.service import protocol
from engine.service.protocol import Event, Failure, Lines, Request, Result

MESSAGES = [
    Request(7, "ask", {"question": "Who is “Mr. Bingley”?\n한글", "documents": ["a1"]}),
    Event(7, "token", {"text": " 한글\u2028 and\ttabs"}),
    Result(7, {"answer": "x", "stopped": False}),
    Failure(7, "not_found", "There is no document a1.", "See `longshelf list`."),
    Failure(None, "protocol", "A line is not JSON."),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_message_survives_the_trip(message: protocol.Message) -> None:
    assert protocol.decode(protocol.encode(message)) == message


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_message_is_exactly_one_line(message: protocol.Message) -> None:
    assert protocol.encode(message).count(b"\n") == 1


def test_a_path_that_is_not_utf8_survives_the_trip() -> None:
    request = Request(1, "documents.add", {"paths": [b"/caf\xe9".decode("utf-8", "surrogateescape")]})
    assert protocol.decode(protocol.encode(request)) == request


def test_numbers_that_json_lacks_become_null() -> None:
    message = protocol.decode(protocol.encode(Result(1, {"ratio": float("nan"), "rows": [float("inf"), 1.5]})))
    assert message == Result(1, {"ratio": None, "rows": [None, 1.5]})


@pytest.mark.parametrize(
    "line", [b"", b"GET / HTTP/1.1", b"[1]", b'{"id": true, "method": "hello"}', b'{"id": 1}', b'{"id": 1, "method": "ask", "params": [1]}']
)
def test_a_line_of_another_program_is_refused(line: bytes) -> None:
    with pytest.raises(LongshelfError) as raised:
        protocol.decode(line)
    assert raised.value.kind == "protocol"


def test_lines_come_out_whole_however_the_bytes_are_cut() -> None:
    stream = b"".join(protocol.encode(message) for message in MESSAGES)
    for step in (1, 2, 7, 1000):
        lines = Lines()
        found = [protocol.decode(line) for at in range(0, len(stream), step) for line in lines.feed(stream[at : at + step])]
        assert found == MESSAGES


def test_an_endless_line_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "LONGEST_LINE", 10)
    lines = Lines()
    with pytest.raises(LongshelfError):
        list(lines.feed(b"x" * 11))


def test_a_failure_is_raised_again_as_what_it_was() -> None:
    error = LongshelfError("no_text", "The file is empty.", "Add another.")
    assert Failure.of(3, error).error.as_json() == error.as_json()
