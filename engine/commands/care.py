"""Commands that look after a home: doctor, gc, paths."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from engine.commands.session import Session, size
from engine.commands.settings import bytes_of
from engine.errors import LongshelfError
from engine.store import deletion
from engine.store.place import warnings


def add_parsers(commands: Any, output: ArgumentParser) -> None:
    doctor = commands.add_parser("doctor", parents=[output], help="look for damage, and repair it")
    doctor.add_argument("--deep", action="store_true", help="read every byte that is kept")
    doctor.add_argument("--repair", action="store_true", help="repair what can be repaired")
    doctor.set_defaults(run=_doctor)
    gc = commands.add_parser("gc", parents=[output], help="remove what nothing needs; give room back where more is kept than the limit")
    gc.add_argument("--down-to", metavar="SIZE", help="until what is remembered takes no more (50GB; default: the limit)")
    gc.add_argument("--forget", action="store_true", help="leave to forget the memory of documents unused for longest; their text stays")
    gc.set_defaults(run=_gc)
    paths = commands.add_parser("paths", parents=[output], help="where everything lies, and how large it is; or delete it all")
    paths.add_argument("--delete-everything", action="store_true", help="delete documents, memory, chats and models (never your sources)")
    paths.add_argument("--yes", action="store_true", help="don't ask")
    paths.set_defaults(run=_paths)


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
    for warning in warnings(session.home.root):
        session.output.note(f"longshelf: {warning}")
    if not result["problems"]:
        session.output.say(
            f"All is well. {size(result['bytes_used'])} remembered; {result['tokens_prefilled_total']:,} tokens read since the beginning."
        )
    return result


def _gc(options: Namespace, session: Session) -> dict[str, Any]:
    down_to = None if options.down_to is None else bytes_of(options.down_to)
    result = session.call("gc", {"down_to": down_to, "forget": options.forget})
    session.output.say(
        f"{result['segments']} segments, {result['sidecars']} sidecars, {result['joins']} stored combinations"
        f" and {result['temporaries']} temporary files removed;"
        f" {size(result['bytes'])} freed, {size(result['bytes_used'])} kept."
    )
    for document in result["forgotten"]:
        session.output.say(f"forgotten: {document['title']} ({size(document['bytes'])}); `longshelf add {document['id']}` reads it again")
    if result["would_forget"]:
        session.output.say(f"That is more than {size(result['limit'])}. With --forget, the memory of these would go too:")
    for document in result["would_forget"]:
        session.output.say(f"  {document['id']}  {size(document['bytes']):>10}  {document['title']}")
    return result


def _paths(options: Namespace, session: Session) -> dict[str, Any]:
    result = session.call("paths")
    for name, place in result.items():
        session.output.say(f"{name:<9} {size(place['bytes']):>10}  {place['path']}")
    for warning in warnings(session.home.root):
        session.output.note(f"longshelf: {warning}")
    if options.delete_everything:
        if not options.yes and not _agrees(session.home.root):
            raise LongshelfError("not_confirmed", "Nothing was deleted.", "Add --yes to delete without being asked.")
        session.end_own_engine()
        return {"deleted": True, "left": [str(path) for path in _delete(session)], **result}
    return result


def _agrees(root: Path) -> bool:
    if not sys.stdin.isatty():
        return False
    print(f"Delete all of this for good? Type the folder's name, {root.name}: ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip() == root.name


def _delete(session: Session) -> list[Path]:
    """Delete the home; gives what is left in its folder because it isn't ours."""
    left = deletion.delete(session.home)
    session.output.say("Everything was deleted." + (f" {session.home.root} also holds files that are not Longshelf's." if left else ""))
    return left
