"""Using the command line: help, exit statuses, errors as one line and as JSON, and files that open the window."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.cli import _as_command, build_parser, main
from engine.version import VERSION


def parsers(parser: argparse.ArgumentParser, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    """Every command and its actions: the words that call it, and its parser."""
    yield words, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield from parsers(inner, (*words, name))


COMMANDS = [pytest.param(words, parser, id=" ".join(words) or "longshelf") for words, parser in parsers(build_parser())]

# ---- help ----


@pytest.mark.parametrize(("words", "parser"), COMMANDS)
def test_every_command_explains_itself(words: tuple[str, ...], parser: argparse.ArgumentParser, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*words, "--help"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: {' '.join(('longshelf', *words))}")


@pytest.mark.parametrize(("words", "parser"), COMMANDS)
def test_every_option_and_action_says_what_it_does(words: tuple[str, ...], parser: argparse.ArgumentParser) -> None:
    for action in parser._actions:
        assert action.help or not action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            assert {choice.dest for choice in action._choices_actions if choice.help} == set(action.choices)


@pytest.mark.parametrize(("words", "parser"), [command for command in COMMANDS if command.id not in ("longshelf", "chats", "models")])
def test_every_command_gives_json_where_it_is_asked_for(words: tuple[str, ...], parser: argparse.ArgumentParser) -> None:
    assert "--json" in parser._option_string_actions


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"longshelf {VERSION}\n")


# ---- errors ----


@pytest.mark.parametrize(
    "given",
    [
        ["fly"],
        ["list", "--fast"],
        ["add"],
        ["ask"],
        ["show"],
        ["chats", "burn"],
        ["show", "x", "--page", "two"],
        ["jobs", "dance"],
        ["--home"],
        ["bench", "everything"],
    ],
    ids=" ".join,
)
def test_wrong_usage_exits_2_with_one_line(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(given) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("longshelf: ")
    assert printed.err.count("\n") == 1
    assert "--help` shows how." in printed.err


def test_wrong_usage_is_json_where_that_was_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--fast", "--json"]) == 2
    printed = capsys.readouterr()
    error = json.loads(printed.out)["error"]
    assert error.keys() == {"kind", "message", "hint"}
    assert error["kind"] == "usage"
    assert error["message"] in printed.err


def test_a_failure_exits_1_with_one_line_and_one_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--home", str(tmp_path / "home"), "show", "nothing", "--json"]) == 1
    printed = capsys.readouterr()
    error = json.loads(printed.out)["error"]
    assert (error["kind"], error.keys()) == ("not_found", {"kind", "message", "hint"})
    assert printed.err.count("\n") == 1


def test_without_json_a_failure_prints_nothing_on_stdout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--home", str(tmp_path / "home"), "show", "nothing"]) == 1
    assert capsys.readouterr().out == ""


def test_a_home_that_cannot_be_made_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main(["--home", str(tmp_path / "file"), "list", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["error"]["kind"] == "home"


def test_the_home_can_come_from_the_environment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGSHELF_HOME", str(tmp_path / "mine"))
    assert main(["paths", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["home"]["path"] == str(tmp_path / "mine")


@pytest.mark.parametrize("subject", ["chats", "models", "jobs"])
def test_a_subject_without_an_action_is_listed(subject: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([subject]) == 0
    assert capsys.readouterr().out


# ---- the window ----


def command(*given: str) -> list[str]:
    return _as_command(list(given), build_parser())


def test_json_may_stand_before_the_command() -> None:
    assert command("--json", "models", "list") == ["models", "list", "--json"]
    assert command("--json", "--home", "h", "list") == ["--home", "h", "list", "--json"]
    assert command("--json") == ["window", "--json"]


def test_no_command_opens_the_window() -> None:
    assert command() == ["window"]
    assert command("--home", "/shelf") == ["--home", "/shelf", "window"]
    assert command("--home=/shelf") == ["--home=/shelf", "window"]


def test_files_open_the_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "book.txt").touch()
    monkeypatch.chdir(tmp_path)
    assert command("book.txt", "other.txt") == ["window", "book.txt", "other.txt"]
    assert command("--home", "/shelf", "book.txt") == ["--home", "/shelf", "window", "book.txt"]


def test_a_path_opens_the_window_though_nothing_is_there() -> None:
    assert command("/nowhere/book.txt") == ["window", "/nowhere/book.txt"]


def test_commands_win_over_files_of_their_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "list").touch()
    monkeypatch.chdir(tmp_path)
    assert command("list") == ["list"]


def test_a_word_that_is_neither_command_nor_file_stays_what_it_is() -> None:
    assert command("fly") == ["fly"]


@pytest.mark.parametrize("asked", ["-h", "--help", "--version"])
def test_help_and_version_open_no_window(asked: str) -> None:
    assert command(asked) == [asked]


def test_the_window_takes_its_files_and_says_when_it_is_shown() -> None:
    options = build_parser().parse_args(["window", "a.txt", "b.txt", "--until-shown"])
    assert (options.files, options.until_shown) == (["a.txt", "b.txt"], True)
