"""Commands about documents: add, list, show, remove, jobs."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from engine.commands.session import Session, duration, size
from engine.errors import LongshelfError
from engine.store.place import warnings
from engine.version import VERSION


def add_parsers(commands: Any, output: ArgumentParser) -> None:
    add = commands.add_parser("add", parents=[output], help="read files and folders, and remember them")
    add.add_argument("paths", nargs="+", metavar="PATH", help="a text, Markdown or source file, or a folder of them; or DOC: its kept text")
    add.add_argument("--model", metavar="M", help="read with this model (default: the current one)")
    add.add_argument(
        "--encoding", metavar="E", help="the text's encoding, where the guess is wrong (cp949, shift_jis …); holds until another is named"
    )
    add.add_argument("--part-tokens", type=int, metavar="N", help="largest part, in tokens")
    add.add_argument("--no-read", action="store_true", help="keep the text only; no model needed")
    add.add_argument("--yes", action="store_true", help="don't ask where a document takes more than 5 GB (a script isn't asked)")
    add.add_argument("--jsonl", action="store_true", help="progress as JSON lines on stdout")
    add.set_defaults(run=_add)
    listed = commands.add_parser("list", parents=[output], help="the documents, and how far each is remembered")
    listed.add_argument("query", nargs="?", help="only those whose title, path or text holds these words")
    listed.set_defaults(run=_list)
    show = commands.add_parser("show", parents=[output], help="a document's text and parts; a path that isn't added is only read")
    show.add_argument("document", metavar="DOC|PATH")
    show.add_argument("--text", action="store_true", help="print the text")
    show.add_argument("--page", type=int, metavar="N", help="only this page")
    show.add_argument("--encoding", metavar="E", help="for a path: the text's encoding")
    show.set_defaults(run=_show)
    remove = commands.add_parser("remove", parents=[output], help="forget a document: its memory and its kept text (never the source)")
    remove.add_argument("document", metavar="DOC")
    remove.add_argument("--keep-text", action="store_true", help="forget the memory only; text and chats stay, `add DOC` reads it again")
    remove.set_defaults(run=_remove)
    jobs = commands.add_parser("jobs", parents=[output], help="what is still to be read: list, pause, resume, cancel, retry")
    jobs.add_argument("action", choices=("list", "pause", "resume", "cancel", "retry"), nargs="?", default="list")
    jobs.add_argument("id", nargs="?", metavar="JOB|DOC", help="one job or document (default: all)")
    jobs.set_defaults(run=_jobs)


def _add(options: Namespace, session: Session) -> dict[str, Any]:
    params = {
        "paths": [str(Path(path).expanduser().absolute()) for path in options.paths],
        "model": options.model,
        "encoding": options.encoding,
        "part_tokens": options.part_tokens,
        "read": not options.no_read,
        "first": True,  # a person waits for it
        "yes": options.yes or not sys.stdin.isatty(),
    }
    result = session.call("documents.add", params, _told(session, options.jsonl))
    large = [document for document in result["documents"] if document.get("error", {}).get("kind") == "large"]
    if large and _agrees(large):
        result = session.call("documents.add", {**params, "yes": True}, _told(session, options.jsonl))
    if options.jsonl:
        session.output.event("result", result)
    for document in result["documents"]:
        _say_added(session, document)
    for warning in warnings(session.home.root):
        session.output.note(f"longshelf: {warning}")
    return result


def _agrees(large: list[dict[str, Any]]) -> bool:
    """Whether the person at the terminal wants documents that take much room to be read all the same."""
    for document in large:
        print(f"{document['title']}: {document['tokens']:,} tokens. {document['error']['message']}", file=sys.stderr)
    print("Read it all the same? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _told(session: Session, jsonl: bool) -> Any:
    def on_event(event: str, data: dict[str, Any]) -> None:
        if jsonl:
            session.output.event(event, data)
        elif event == "progress":
            session.output.progress(progress_line(data))

    return on_event


def progress_line(row: dict[str, Any]) -> str:
    """One line of how far a document is."""
    line = f"{row.get('title', '')}: {str(row.get('state', '')).replace('_', ' ')} {row.get('percent', 0.0):.1f} %"
    if row.get("files"):
        line = f"{row['title']}: {row['files_done']} of {row['files']} files"
    if row.get("tokens_per_s"):
        line += f" · {row['tokens_per_s']:.0f} tokens/s"
    if row.get("seconds_left"):
        line += f" · {duration(row['seconds_left'])} left"
    if row.get("place"):
        line += f" · {row['place']}"
    return line


def _say_added(session: Session, document: dict[str, Any]) -> None:
    if "error" in document:
        session.output.note(f"longshelf: {document['error']['message']} {document['error']['hint']}".rstrip())
        return
    text = f"{document['id']}  {document['title']}: {document['state'].replace('_', ' ')}"
    if document["tokens"]:
        parts = f"{document['parts']} part{'s' * (document['parts'] != 1)}"
        text += f" · {document['tokens']:,} tokens in {parts} · {size(document['bytes'])} · {duration(document['seconds'])}"
    if document["segments_found"] and not document["segments_computed"]:
        text += " · already remembered"
    session.output.say(text)
    if document["reason"]:
        session.output.say(f"          {document['reason']}")
    _say_poorly(session, document)
    reasons: dict[str, int] = {}
    for skipped in document.get("skipped", []):
        reasons[skipped["reason"]] = reasons.get(skipped["reason"], 0) + 1
    if reasons:
        session.output.say(
            "          skipped: " + ", ".join(f"{count} {reason.replace('_', ' ')}" for reason, count in sorted(reasons.items()))
        )


def _say_poorly(session: Session, document: dict[str, Any]) -> None:
    if poorly := document.get("reads_poorly"):
        measured = f"{poorly['times_usual']:.1f} times its usual bits a letter"
        session.output.say(f"          {poorly['message'].removesuffix('.')} ({measured}). {poorly['hint']}")


def _list(options: Namespace, session: Session) -> dict[str, Any]:
    result = session.call("documents.list", {"query": options.query})
    for row in result["documents"]:
        partly = 0 < row["tokens_done"] < row["tokens"]
        state = f"{row['state']} {row['percent']:.1f} %" if partly else row["state"]
        session.output.say(f"{row['id']}  {state:<18} {row['tokens']:>9,} tokens  {size(row['bytes']):>10}  {row['title']}")
        if row["reason"]:
            session.output.say(f"          {row['reason']}")
        _say_poorly(session, row)
    if not result["documents"]:
        session.output.say("Nothing here yet: `longshelf add PATH`.")
    return result


def _show(options: Namespace, session: Session) -> dict[str, Any]:
    try:
        result = session.call("documents.show", {"id": session.document(options.document)})
    except LongshelfError as error:
        path = Path(options.document).expanduser()
        if error.kind != "not_found" or not path.exists():
            raise
        result = session.call("documents.read", {"paths": [str(path.absolute())], "encoding": options.encoding})
    if options.page is not None:
        page = next((page for page in result["pages"] if page["n"] == options.page), None)
        if page is None:
            raise LongshelfError("usage", f"There is no page {options.page}; the document has {len(result['pages'])} pages.")
        result = {**result, "text": result["text"][page["start"] : page["end"]], "offset": page["start"]}
    if options.text or options.page is not None:
        session.output.say(result["text"])
    else:
        about = f"{result['format']}, {result['encoding'] or 'folder'}"
        session.output.say(f"{result['title']} ({about}): {len(result['text']):,} characters, {result['state']}")
        _say_poorly(session, result)
        for part in result["parts"]:
            session.output.say(f"  part {part['n']}: {part['tokens']:,} tokens, {part['state']}")
        for way in result["made_by"]:
            if (version := way.get("longshelf", "0.1.0")) != VERSION:
                session.output.say(f"  read by Longshelf {version}, and still good; `remove --keep-text`, then `add`, reads it again")
        for skipped in result["skipped"]:
            session.output.say(f"  skipped: {skipped['path']} ({skipped['reason'].replace('_', ' ')})")
    return result


def _remove(options: Namespace, session: Session) -> dict[str, Any]:
    method = "documents.forget" if options.keep_text else "documents.remove"
    result = session.call(method, {"id": session.document(options.document)})
    if options.keep_text:
        session.output.say(
            f"Forgot “{result['title']}” ({size(result['bytes_freed'])} freed); `longshelf add {result['id']}` reads it again."
        )
    else:
        session.output.say(f"Removed “{result['title']}”; {size(result['bytes_freed'])} freed.")
    return result


def _jobs(options: Namespace, session: Session) -> dict[str, Any]:
    if options.action == "list":
        result = session.call("jobs.list")
    else:
        waits = {"wait": True} if options.action in ("resume", "retry") else {}
        name = session.document(options.id) if options.id is not None else None
        result = session.call(f"jobs.{options.action}", {"id": name, **waits}, _told(session, False))
    for job in result["jobs"]:
        session.output.say(f"{job['id']:>4}  {job['state']:<10} {job['title']}  {job['reason']}")
    if not result["jobs"]:
        session.output.say("Nothing is waiting.")
    return result
