"""The command `bench`: measurements of this machine, each a ratio within one run."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from engine.commands.session import Session


def add_parsers(commands: Any, output: ArgumentParser) -> None:
    bench = commands.add_parser("bench", parents=[output], help="measure speed on this machine: decode, add")
    bench.add_argument("name", choices=("decode", "add"), help="decode: beside transformers; add: reading a document")
    bench.add_argument("--quick", action="store_true", help="fewer repeats, within 50 s")
    bench.set_defaults(run=_bench)


def _bench(options: Namespace, session: Session) -> dict[str, Any]:
    shelf = session.own_engine().shelf
    model, _ = shelf.model()
    if options.name == "decode":
        from engine.evaluation.decode import bench_decode

        report = shelf.model_thread.run(lambda: bench_decode(model, session.output.note, options.quick))
    else:
        from engine.evaluation.add import bench_add

        report = bench_add(shelf, model, session.output.note, options.quick)
    result = report.as_json()
    for name, value in result["figures"].items():
        session.output.say(f"{name:<32} {value:g}")
    return result
