"""Commands that look after a home: doctor, gc, paths."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from engine.commands.session import Session, size


def add_parsers(commands: Any, output: ArgumentParser) -> None:
    doctor = commands.add_parser("doctor", parents=[output], help="look for damage, and repair it")
    doctor.add_argument("--deep", action="store_true", help="read every byte that is kept")
    doctor.add_argument("--repair", action="store_true", help="repair what can be repaired")
    doctor.set_defaults(run=_doctor)
    commands.add_parser("gc", parents=[output], help="remove what nothing needs any more").set_defaults(run=_gc)
    commands.add_parser("paths", parents=[output], help="where everything lies, and how large it is").set_defaults(run=_paths)


def _doctor(options: Namespace, session: Session) -> dict[str, Any]:
    def on_event(event: str, data: dict[str, Any]) -> None:
        if data.get("total"):
            session.output.progress(f"checking segment {data['done']} of {data['total']}")

    result = session.call("doctor", {"deep": options.deep, "repair": options.repair}, on_event)
    if result.get("rebuilt"):
        rebuilt = result["rebuilt"]
        session.output.say(
            f"The catalog was made again: {rebuilt['documents']} documents, {rebuilt['chats']} chats."
            + (f" The damaged one is kept: {rebuilt['kept_aside']}." if rebuilt["kept_aside"] else "")
        )
    for repaired in result["repaired"]:
        session.output.say(f"repaired: {repaired['what']} {repaired['done']}")
    for problem in result["problems"]:
        session.output.say(f"{problem['what']} {problem['cause']} {problem['next']}")
    if not result["problems"]:
        session.output.say(
            f"All is well. {size(result['bytes_used'])} remembered; {result['tokens_prefilled_total']:,} tokens read since the beginning."
        )
    return result


def _gc(options: Namespace, session: Session) -> dict[str, Any]:
    result = session.call("gc")
    session.output.say(f"{result['segments']} segments and {result['temporaries']} temporary files removed; {size(result['bytes'])} freed.")
    return result


def _paths(options: Namespace, session: Session) -> dict[str, Any]:
    result = session.call("paths")
    for name, place in result.items():
        session.output.say(f"{name:<9} {size(place['bytes']):>10}  {place['path']}")
    return result
