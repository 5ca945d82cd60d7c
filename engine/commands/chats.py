"""The command `chats`: list, show, search, export, rename, remove."""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from typing import Any

from engine.commands.session import Session
from engine.library.figures import how_read


def add_parsers(commands: Any, output: ArgumentParser) -> None:
    chats = commands.add_parser("chats", help="kept conversations: list, show, search, export, rename, remove")
    chats.set_defaults(run=_list, query=None, json=False)
    actions = chats.add_subparsers(dest="action", metavar="ACTION")
    listed = actions.add_parser("list", parents=[output], help="all chats, the latest first")
    listed.set_defaults(run=_list, query=None)
    search = actions.add_parser("search", parents=[output], help="chats that hold these words")
    search.add_argument("query")
    search.set_defaults(run=_list)
    show = actions.add_parser("show", parents=[output], help="a chat's messages")
    show.add_argument("id")
    show.set_defaults(run=_show)
    export = actions.add_parser("export", parents=[output], help="a chat as a document")
    export.add_argument("id")
    export.add_argument(
        "--format", choices=("markdown", "json"), default="markdown", help="markdown to read (default), json with everything"
    )
    export.set_defaults(run=_export)
    rename = actions.add_parser("rename", parents=[output], help="give a chat another title")
    rename.add_argument("id")
    rename.add_argument("title")
    rename.set_defaults(run=_rename)
    remove = actions.add_parser("remove", parents=[output], help="delete a chat")
    remove.add_argument("id")
    remove.set_defaults(run=_remove)


def _list(options: Namespace, session: Session) -> dict[str, Any]:
    result = session.call("chats.list", {"query": options.query})
    for chat in result["chats"]:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(chat["updated_at"]))
        session.output.say(f"{chat['id']}  {when}  {chat['title']}")
    if not result["chats"]:
        session.output.say("No chats.")
    return result


def _show(options: Namespace, session: Session) -> dict[str, Any]:
    result = session.call("chats.show", {"id": options.id})
    session.output.say(f"{result['title']}  ({', '.join(result['document_titles'])})")
    for message in result["messages"]:
        who = "You" if message["role"] == "user" else result["model"]
        session.output.say(f"\n{who}: {message['text']}" + (f"  [{message['status']}]" if message["status"] != "complete" else ""))
        if how := how_read(message["meta"]):
            session.output.say(f"  sampled: {how}")
        for citation in message["citations"]:
            session.output.say(f"  [{citation['number']}] {citation['section'] or citation['title']}, line {citation['line']}")
    return result


def _export(options: Namespace, session: Session) -> dict[str, Any]:
    result = session.call("chats.export", {"id": options.id, "format": options.format})
    session.output.say(result["text"])
    return result


def _rename(options: Namespace, session: Session) -> dict[str, Any]:
    return session.call("chats.rename", {"id": options.id, "title": options.title})


def _remove(options: Namespace, session: Session) -> dict[str, Any]:
    return session.call("chats.remove", {"id": options.id})
