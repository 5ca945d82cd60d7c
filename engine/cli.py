"""`longshelf` on the command line: parsing, and what every command shares (output, errors, stopping).

With --json a command prints one object on stdout and everything else on stderr; a failure exits 1 (wrong usage 2) with one line on
stderr and, with --json, {"error": {kind, message, hint}} on stdout. What a command does is in `engine.commands`.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from engine.commands import care, chats, documents, measure, models, questions, settings
from engine.commands.session import Output, Session, json_line
from engine.errors import LongshelfError, Stopped, trace_of
from engine.home import Home
from engine.version import VERSION

_ABOUT = """\
Read long documents once; ask them from then on, offline, with the place in the source beside every answer.

  longshelf models fetch                     install the default model (93 MB, once)
  longshelf add book.txt notes/ repo/        read files and folders, and remember them
  longshelf ask book "Who rents Netherfield?"
  longshelf                                  the window

DOC below is a document's id, path or unique title. Everything lies in one folder: `longshelf paths`.
"""


class Parser(argparse.ArgumentParser):
    """An argument parser whose usage errors are LongshelfErrors, so that --json holds for them too."""

    def error(self, message: str) -> NoReturn:
        raise LongshelfError("usage", f"{message[:1].upper()}{message[1:]}.", f"`{self.prog} --help` shows how.")


def build_parser() -> Parser:
    parser = Parser(prog="longshelf", description=_ABOUT, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", metavar="DIR", help="where everything is kept (default: LONGSHELF_HOME, else your data folder)")
    parser.add_argument("--version", action="version", version=f"longshelf {VERSION}")
    output = Parser(add_help=False)
    output.add_argument("--json", action="store_true", help="one JSON object on stdout")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    for module in (documents, questions, chats, models, settings, care, measure):
        module.add_parsers(commands, output)
    window = commands.add_parser("window", parents=[output], help="open the window (also: no command at all)")
    window.add_argument("files", nargs="*", metavar="FILE", help="open these and add them")
    window.add_argument("--until-shown", action="store_true", help="print the milliseconds to the first paint, and end")
    window.set_defaults(run=None)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of `longshelf`; gives the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # file names hold what no encoding has
    try:
        status = _run(list(sys.argv[1:] if arguments is None else arguments))
        sys.stdout.flush()
    except BrokenPipeError:  # `longshelf list | head -0`
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what Python still flushes at its end
        return 1
    return status


def _run(given: list[str]) -> int:
    wants_json = not {"--json", "--jsonl"}.isdisjoint(given)
    home: Home | None = None
    session: Session | None = None
    try:
        parser = build_parser()
        given = _as_command(given, parser)
        options = _parse(parser, given)
        home = Home.choose(options.home)
        if options.run is None:
            from app.main import run as run_window  # the only way up, and only for this command

            return run_window(home, [Path(file) for file in options.files], until_shown=options.until_shown)
        output = Output(json=options.json or getattr(options, "jsonl", False))
        session = Session(home, output)
        with session:
            result: dict[str, Any] = options.run(options, session)
            if options.json:
                print(json_line(result), flush=True)
        return _stopped(session) if result.get("stopped") else int("error" in result)
    except LongshelfError as error:
        return _report(error, wants_json)
    except (Stopped, KeyboardInterrupt):
        return _stopped(session)
    except BrokenPipeError:
        raise
    except Exception as error:
        return _report(_fault(error, home), wants_json)


def _stopped(session: Session | None) -> int:
    """As shells have it: 128 and the number of the signal."""
    print("Stopped. What was finished is kept; the same command goes on from there.", file=sys.stderr)
    return 128 + (session.signal if session is not None and session.signal else signal.SIGINT)


def _fault(error: Exception, home: Home | None) -> LongshelfError:
    """A mistake of ours in one line; where it happened goes to the log."""
    hint = ""
    if home is not None:
        with contextlib.suppress(OSError), home.log.open("a", encoding="utf-8", errors="backslashreplace") as log:
            log.write(f"{trace_of(error)}\n")
            hint = f"Details are in {home.log}."
    return LongshelfError("engine_fault", f"Longshelf made a mistake ({type(error).__name__}).", hint)


def _parse(parser: Parser, given: list[str]) -> argparse.Namespace:
    """The options; `ask DOC --json QUESTION` is understood too, which argparse by itself takes for a surplus word."""
    options, surplus = parser.parse_known_args(given)
    if surplus and options.command == "ask" and not any(word.startswith("--") for word in surplus):
        options.words += surplus
    elif surplus:
        parser.error(f"unrecognized arguments: {' '.join(surplus)}")
    return options


def _as_command(given: list[str], parser: Parser) -> list[str]:
    """No command opens the window; so do files that are no command's name. --json may also stand before the command."""
    given, position, output = list(given), 0, []
    while position < len(given) and given[position].startswith("-"):
        if given[position] in ("-h", "--help", "--version"):
            return given
        if given[position] == "--json":
            output = [given.pop(position)]
            continue
        position += 2 if given[position] == "--home" else 1
    names = next(action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    if position > len(given):  # --home without its folder
        return given
    is_file = position < len(given) and given[position] not in names and (Path(given[position]).exists() or "/" in given[position])
    if position == len(given) or is_file:
        given.insert(position, "window")
    return given + output


def _report(error: LongshelfError, wants_json: bool) -> int:
    print("longshelf:", *error.message.split(), *error.hint.split(), file=sys.stderr)  # one line, whatever the message quotes
    if wants_json:
        print(json_line({"error": error.as_json()}), flush=True)
    return 2 if error.kind == "usage" else 1


if __name__ == "__main__":
    sys.exit(main())
