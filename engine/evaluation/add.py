"""`bench add`: what adding a document costs, stage by stage, on a document that is removed again."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from engine.documents.reader import read
from engine.evaluation.ours import handbook_text
from engine.evaluation.report import Report, timed
from engine.library.sidecars import SKETCH
from engine.model.loaded import LoadedModel

if TYPE_CHECKING:
    from engine.shelf import Shelf

TOKENS = 8192
QUICK_TOKENS = 2048


def bench_add(shelf: Shelf, model: LoadedModel, say: Callable[[str], None], quick: bool = False) -> Report:
    """Figures: tokens_per_s (the whole of adding), add_vs_prefill (time of adding by time of the model's work alone),
    found_vs_computed (how much faster the same bytes are added again), bytes_vs_kv (bytes on disk, index included, by bytes of K and V),
    index_size_fraction (bytes of the sketches by bytes of the segments), index_build_fraction (time of making and keeping them by time of
    the model's work)."""
    from engine.retrieval import projections
    from engine.shelf import Call

    wanted, repeats = (QUICK_TOKENS, 1) if quick else (TOKENS, 3)
    report = Report("add", {"model": model.name, "tokens": wanted, "repeats": repeats, "quick": quick})
    text = handbook_text(model, wanted)
    shelf.model_thread.run(lambda: projections.of(model, lambda: None))  # which an install does, once
    with TemporaryDirectory() as folder:
        for repeat in range(repeats):
            # A word of its own before each paragraph makes every part of every repeat one that was never read.
            path = Path(folder) / f"bench-{repeat}.md"
            path.write_text("\n\n".join(f"{secrets.token_hex(2)} {paragraph}" for paragraph in text.split("\n\n")), encoding="utf-8")
            again = Path(folder) / f"bench-{repeat}-again.md"
            again.write_bytes(path.read_bytes())
            say(f"adding {wanted} tokens ({repeat + 1} of {repeats})")
            reading = timed(partial(read, path))
            tokenising = timed(lambda: model.tokenizer.encode(text))
            started = time.perf_counter()
            first = shelf.call("documents.add", {"paths": [str(path)]}, Call())["documents"][0]
            adding = time.perf_counter() - started
            found = timed(partial(shelf.call, "documents.add", {"paths": [str(again)]}, Call()))
            computing = _model_work(shelf, model, first["id"])
            indexing = _index_work(shelf, model, first["id"])
            [kept] = shelf.library.parts.progress(first["id"], model.namespace)
            report.add(
                repeat=repeat,
                tokens=first["tokens"],
                bytes=first["bytes"],
                read_s=reading,
                tokenise_s=tokenising,
                add_s=adding,
                add_found_s=found,
                model_s=computing,
                index_s=indexing,
                segment_bytes=kept.bytes - kept.sidecar_bytes,
                index_bytes=kept.sidecar_bytes,
                segments_computed=first["segments_computed"],
            )
            for row in shelf.call("documents.list", {}, Call())["documents"]:
                if row["path"] in (str(path), str(again)):
                    shelf.call("documents.remove", {"id": row["id"]}, Call())
    tokens = report.median("tokens")
    report.figures["tokens_per_s"] = tokens / report.median("add_s")
    report.figures["add_vs_prefill"] = report.median("add_s") / report.median("model_s")
    report.figures["found_vs_computed"] = report.median("add_s") / report.median("add_found_s")
    report.figures["bytes_vs_kv"] = report.median("bytes") / (tokens * model.config.kv_bytes_per_token)
    report.figures["index_size_fraction"] = report.median("index_bytes") / report.median("segment_bytes")
    report.figures["index_build_fraction"] = report.median("index_s") / report.median("model_s")
    return report


def _model_work(shelf: Shelf, model: LoadedModel, document_id: str) -> float:
    """Seconds that computing the KV of a document's parts takes, with nothing kept."""
    from engine.reading.memory import Watcher, compute_segments, preamble_chain

    parts = shelf.library.parts.of(document_id, model.namespace)
    ids = model.tokenizer.encode_ids(shelf.library.documents.text(document_id))

    def work() -> None:
        preamble = preamble_chain(model, shelf.library)
        for part in parts:
            compute_segments(model, preamble, ids[part.first_token : part.first_token + part.tokens], Watcher())

    return timed(lambda: shelf.model_thread.run(work))


def _index_work(shelf: Shelf, model: LoadedModel, document_id: str) -> float:
    """Seconds that making and keeping the sketches of a document's segments takes; those it had are removed before."""
    from engine.reading.indexing import index

    library = shelf.library
    parts = library.parts.of(document_id, model.namespace)
    segments = [digest for part in parts for digest in library.parts.segments(part.id)]
    for sidecar in library.sidecars.all():
        if sidecar.kind == SKETCH and set(segments).intersection(sidecar.sources):
            library.sidecars.drop(sidecar.digest)
    return timed(lambda: shelf.model_thread.run(lambda: index(model, shelf, segments, lambda: None)))
