"""The command `ask`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from engine.commands.session import Session, duration, size
from engine.errors import LongshelfError
from engine.library.figures import how_read

LONGEST_QUOTE = 300


def add_parsers(commands: Any, output: ArgumentParser) -> None:
    ask = commands.add_parser(
        "ask",
        parents=[output],
        help="ask documents a question",
        usage="longshelf ask [options] DOC... QUESTION",
        description="Ask one document, several, or with --all every one of them. The last argument is the question.",
    )
    ask.add_argument("words", nargs="+", metavar="DOC... QUESTION", help="documents (id, path or unique title), then the question")
    ask.add_argument("--all", action="store_true", help="ask all documents")
    ask.add_argument(
        "--parts",
        default="auto",
        metavar="auto|all|N,N",
        help="which parts to read: the likeliest (default), every one in turn, or these, joined",
    )
    ask.add_argument(
        "--mode",
        choices=("exact", "sampled"),
        default="exact",
        help="exact reads all of what it answers from (default); sampled estimates from a part of it and measures the error",
    )
    ask.add_argument("--budget", type=float, metavar="F", help="sampled: read at most about this share of the bytes")
    ask.add_argument(
        "--selector",
        default="sketch",
        metavar="sketch|lsh[:K,L]",
        help="sampled: what draws keys, sketches of them (default) or L hash tables of K bits, as in MagicPIG (default 10,150)",
    )
    ask.add_argument("--epsilon", type=float, metavar="E", help="sampled: read as much as keeps nine in ten errors below this share")
    ask.add_argument("--max-tokens", type=int, metavar="N", help="longest answer, in tokens (default 256)")
    ask.add_argument("--temperature", type=float, default=0.0, metavar="T", help="0: always the likeliest token (default)")
    ask.add_argument("--top-p", type=float, metavar="P", help="draw from the likeliest tokens that make up P")
    ask.add_argument("--top-k", type=int, metavar="K", help="draw from the K likeliest tokens")
    ask.add_argument("--min-p", type=float, metavar="P", help="draw from tokens at least P times as likely as the likeliest")
    ask.add_argument("--seed", type=int, metavar="S", help="the same seed draws the same answer")
    ask.add_argument(
        "--device",
        choices=("auto", "cpu", "cuda", "interpret"),
        help="where the model runs: auto is an NVIDIA GPU where there is one; interpret runs the GPU's code on the processor, very slowly",
    )
    ask.add_argument("--chat", metavar="ID", help="go on with this chat")
    ask.add_argument("--jsonl", action="store_true", help="events as JSON lines on stdout while it answers")
    ask.set_defaults(run=_ask)


def _ask(options: Namespace, session: Session) -> dict[str, Any]:
    *documents, question = options.words
    if not documents and not options.all and not options.chat:
        raise LongshelfError("usage", "Name the documents before the question.", "longshelf ask DOC... QUESTION, or --all.")
    params = {
        "documents": [session.document(name) for name in documents],
        "all": options.all,
        "question": question,
        "parts": _parts(options.parts),
        "mode": options.mode,
        "budget": options.budget,
        "selector": options.selector,
        "epsilon": options.epsilon,
        "max_tokens": options.max_tokens,
        "temperature": options.temperature,
        "top_p": options.top_p,
        "top_k": options.top_k,
        "min_p": options.min_p,
        "seed": options.seed,
        "device": options.device,
        "chat": options.chat,
    }
    result = session.call("ask", params, _told(options, session))
    if options.jsonl:
        session.output.event("result", result)
    elif not options.json:
        _say_sources(session, result)
    return result


def _told(options: Namespace, session: Session) -> Any:
    def on_event(event: str, data: dict[str, Any]) -> None:
        if options.jsonl:
            session.output.event(event, data)
        elif event == "token" and not options.json:
            session.output.say(data["text"], end="")
        elif event == "phase" and data["name"] == "preparing_sampling":
            if "bytes" in data:
                session.output.note(f"Making hash tables of what is read, once: {size(data['bytes'])}.")
            else:
                session.output.note("Preparing this model for sampling, once; it takes some seconds.")
        elif event == "phase" and data["name"] == "joining":
            session.output.note(
                f"Reading these documents together for the first time: {data['tokens']:,} tokens, about {duration(data['seconds'])}."
            )

    return on_event


def _parts(given: str) -> str | list[int]:
    if given in ("auto", "all"):
        return given
    try:
        return [int(number) for number in given.split(",")]
    except ValueError:
        raise LongshelfError("usage", f"--parts is {given!r}; it is auto, all, or part numbers such as 3,7.") from None


def _say_sources(session: Session, result: dict[str, Any]) -> None:
    """Below the streamed answer: where it comes from, and what was read."""
    session.output.say("\n" if result["answer"] else "(no answer)\n")
    if not result["supported"]:
        session.output.say("Not found in these documents in so many words; the nearest passages:")
    several = len({part["document"] for part in result["parts_read"]}) > 1
    for citation in result["citations"]:
        page = f"p. {citation['page']}" if citation["page"] else ""
        named = citation["title"] if several else ""
        place = ", ".join(filter(None, [named, citation["section"], page, f"line {citation['line']}"]))
        quote = " ".join(citation["quote"].split())
        session.output.say(f"[{citation['number']}] {place}\n    {shortened(quote)}")
    read, total, ready = len(result["parts_read"]), result["parts_total"], result["parts_ready"]
    so_far = f" ({ready} read so far)" if ready < total else ""
    joined = " joined without reading them together (approximate)" if result["approximate"] else ""
    trial = " · trial model" if result["trial_model"] else ""
    if how := how_read(result):
        session.output.say(f"sampled: {how}")
    again = f" · {result['document_tokens_prefilled']:,} document tokens read for this" if result["document_tokens_prefilled"] else ""
    session.output.say(
        f"from memory · read {read} of {total} parts{so_far}{joined} · {result['ttft_s']:.1f} s to the first word"
        f" · chat {result['chat']}{trial}{again}"
    )


def shortened(quote: str) -> str:
    """A quote as long as a terminal can bear."""
    return quote if len(quote) <= LONGEST_QUOTE else quote[:LONGEST_QUOTE].rpartition(" ")[0] + " …"
