"""The commands `bench` and `eval`: measurements of speed on this machine, and of answers on a corpus."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.commands.session import Session
from engine.errors import LongshelfError

if TYPE_CHECKING:
    from engine.evaluation.report import Report

BENCHES = {
    "decode": "beside transformers",
    "attention": "exact and sampled, of one row in one layer, beside torch and the speed of memory",
    "add": "reading a document",
    "library": "picking among 10,000 documents",
    "peers": "beside llama.cpp, which `make peers` installs",
}
PART_TOKENS, SHAPE_PART_TOKENS = 7680, 2048
REPEATS = 5

EVALS = {
    "routing": "is the right part chosen",
    "citations": "is the right passage cited",
    "qa": "does the answer hold the wanted words",
    "support": "is what a document doesn't say told from what it does",
    "fidelity": "how near sampled answers stay to exact ones",
}


def add_parsers(commands: Any, output: ArgumentParser) -> None:
    bench = commands.add_parser("bench", parents=[output], help=f"measure speed on this machine: {', '.join(BENCHES)}")
    bench.add_argument("name", choices=BENCHES, help=_listed(BENCHES))
    bench.add_argument("--quick", action="store_true", help="fewer repeats, within 50 s")
    bench.add_argument("--stages", action="store_true", help="decode: where the time of our own step goes, without peers")
    bench.add_argument("--mode", metavar="M,M", help="decode: exact,sampled: these modes beside one another, without peers")
    bench.add_argument("--context", metavar="N,N", help="decode --mode, attention: tokens of the contexts (default 8192; 32768,131072)")
    bench.add_argument(
        "--part-tokens",
        type=int,
        metavar="N",
        help=f"decode --mode: tokens of the parts (default {PART_TOKENS}; of a shape {SHAPE_PART_TOKENS})",
    )
    bench.add_argument("--shape", metavar="NAME", help="decode, attention: a model of this shape (llama-3.1-8b, …), numbers drawn")
    bench.add_argument("--device", choices=("auto", "cpu", "cuda", "interpret"), help="decode: where the model runs")
    bench.add_argument(
        "--kv", choices=("auto", "ram", "device"), default="auto", help="decode --mode: where contexts lie, as far as there is room"
    )
    bench.add_argument("--gguf", type=Path, metavar="FILE", help="peers: the file that the model was installed from")
    bench.set_defaults(run=_bench)
    evaluate = commands.add_parser(
        "eval",
        parents=[output],
        help=f"measure answers on a corpus of questions: {', '.join(EVALS)}",
        description="A corpus is a folder with qa.jsonl: file, question, answer, offset_lf, length. Each file is added, asked and removed.",
    )
    evaluate.add_argument("name", choices=EVALS, help=_listed(EVALS))
    evaluate.add_argument("--corpus", type=Path, metavar="DIR", help="the folder (default: LONGSHELF_CORPUS)")
    evaluate.add_argument("--max-tokens-per-file", type=int, metavar="N", help="cut files to runs around their answers (default: whole)")
    evaluate.add_argument("--part-tokens", type=int, metavar="N", help="tokens of a part, at most (default: measured for the model)")
    evaluate.add_argument("--quick", action="store_true", help="refused: reading a corpus takes minutes")
    evaluate.set_defaults(run=_eval)


def _listed(names: dict[str, str]) -> str:
    return "; ".join(f"{name}: {what}" for name, what in names.items())


def _bench(options: Namespace, session: Session) -> dict[str, Any]:
    if options.name == "library":
        from engine.evaluation.library import bench_library

        return _said(session, bench_library(session.output.note, options.quick).as_json())
    if options.name == "attention":
        return _said(session, _attention(options, session).as_json())
    if options.name == "decode" and options.shape:
        return _said(session, _of_shape(options, session).as_json())
    shelf = session.own_engine().shelf
    model, _ = shelf.model(device=options.device)
    note = session.output.note
    if options.name == "decode" and options.mode:
        from engine.evaluation.contexts import bench_modes, of_model

        contexts, modes = _numbers(options.context or "8192"), _modes(options.mode)

        def bench() -> Report:
            return bench_modes(of_model(model, contexts, options.part_tokens or PART_TOKENS, modes, options.kv), contexts, modes, note)

        report = shelf.model_thread.run(bench)
    elif options.name == "decode":
        from engine.evaluation.decode import bench_decode

        report = shelf.model_thread.run(lambda: bench_decode(model, note, options.quick, options.stages))
    elif options.name == "peers":
        from engine.evaluation.peers import bench_peers

        if options.quick:
            raise LongshelfError("usage", "`bench peers` means nothing in 50 s: reading thousands of tokens with a peer takes minutes.")
        report = shelf.model_thread.run(lambda: bench_peers(model, shelf.home, options.gguf, note))
    else:
        from engine.evaluation.add import bench_add

        report = bench_add(shelf, model, note, options.quick)
    return _said(session, report.as_json())


def _attention(options: Namespace, session: Session) -> Report:
    from engine.evaluation.attention import CONTEXTS, SHAPE, bench_attention
    from engine.threads import use_threads

    contexts = _numbers(options.context) if options.context else list(CONTEXTS)[: 1 if options.quick else len(CONTEXTS)]
    shelf, note = session.own_engine().shelf, session.output.note
    model = shelf.model(device="cpu")[0] if shelf.models.current() else None  # without one there is no real layer to time

    def bench() -> Report:
        use_threads()
        return bench_attention(options.shape or SHAPE, contexts, model, note, options.quick)

    return shelf.model_thread.run(bench)


def _of_shape(options: Namespace, session: Session) -> Report:
    from engine.evaluation.contexts import bench_modes, of_shape
    from engine.placement import keep_compiled_in
    from engine.threads import use_threads

    contexts, modes = _numbers(options.context or "8192"), _modes(options.mode or "exact,sampled")
    use_threads()
    keep_compiled_in(session.home.open().compiled)
    subject = of_shape(options.shape, options.device or "auto", contexts, options.part_tokens or SHAPE_PART_TOKENS, options.kv)
    return bench_modes(subject, contexts, modes, session.output.note, 2 if options.quick else REPEATS)


def _numbers(given: str) -> list[int]:
    try:
        return [int(number) for number in given.split(",")]
    except ValueError:
        raise LongshelfError("usage", f"--context is {given!r}; it is numbers of tokens such as 8192,32768.") from None


def _modes(given: str) -> list[str]:
    from engine.answering.modes import MODES

    if unknown := [mode for mode in given.split(",") if mode not in MODES]:
        raise LongshelfError("usage", f"There is no mode {unknown[0]!r}.", f"There are {', '.join(MODES)}.")
    return given.split(",")


def _eval(options: Namespace, session: Session) -> dict[str, Any]:
    folder = options.corpus or os.environ.get("LONGSHELF_CORPUS")
    if not folder:
        raise LongshelfError("usage", "No corpus was named.", "Name its folder with --corpus.")
    if options.quick:
        hint = "Leave --quick out; --max-tokens-per-file 8000 is the shortest that means something."
        raise LongshelfError("usage", f"`eval {options.name}` means nothing in 50 s: reading the files of a corpus takes minutes.", hint)
    if options.max_tokens_per_file is not None and options.max_tokens_per_file < 1:
        raise LongshelfError("usage", f"--max-tokens-per-file is {options.max_tokens_per_file}; it is at least 1.")
    shelf = session.own_engine().shelf
    model, _ = shelf.model()
    from engine.evaluation.asking import Examined
    from engine.evaluation.report import Report

    report, path, note = Report(options.name), Path(folder).expanduser().absolute(), session.output.note
    if options.name == "fidelity":
        from engine.evaluation.fidelity import eval_fidelity

        shelf.model_thread.run(lambda: eval_fidelity(model, path, options.max_tokens_per_file, report, note))
        return _said(session, report.as_json())
    examined = Examined(shelf, model, report, path, options.max_tokens_per_file, options.part_tokens, note)
    measure = getattr(import_module(f"engine.evaluation.{options.name}"), f"eval_{options.name}")
    measure(examined)
    return _said(session, report.as_json())


def _said(session: Session, result: dict[str, Any]) -> dict[str, Any]:
    """The result, its figures told."""
    for name, value in result["figures"].items():
        session.output.say(f"{name:<32} {value:g}")
    return result
