"""The command `models`: list, fetch, add, use, calibrate, remove."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from engine.commands.session import Session, size
from engine.errors import LongshelfError
from engine.model.card import PACKS
from engine.model.needs import TOKENS_A_PAGE

DEFAULT = "smollm2"

CALIBRATE_WITHIN_S = 180
"""A model is calibrated when it is installed where that is expected to take no longer."""


def add_parsers(commands: Any, output: ArgumentParser) -> None:
    models = commands.add_parser("models", help="language models: list, fetch, add, use, calibrate, remove")
    models.set_defaults(run=_list, json=False)
    actions = models.add_subparsers(dest="action", metavar="ACTION")
    actions.add_parser("list", parents=[output], help="installed models, and the one that can be fetched").set_defaults(run=_list)
    fetch = actions.add_parser("fetch", parents=[output], help="download and install a model")
    fetch.add_argument(
        "name", nargs="?", default=DEFAULT, help=f"{DEFAULT} (SmolLM2-135M-Instruct, Apache-2.0), or ORG/NAME on Hugging Face"
    )
    fetch.set_defaults(run=_fetch)
    add = actions.add_parser("add", parents=[output], help="install a model of yours: a GGUF file, or a folder from Hugging Face")
    add.add_argument("path", metavar="PATH", help="FILE.gguf, or a folder with config.json, safetensors files and a tokenizer")
    add.add_argument("--name", help="what to call it (default: the file's name)")
    for one in (fetch, add):
        one.add_argument("--pack", metavar="LAYOUT", help=f"pack its weights to save memory: {', '.join(PACKS)}")
        one.add_argument("--template", default="own", help="own (its chat template), or plain for a model without one")
    add.set_defaults(run=_add)
    use = actions.add_parser("use", parents=[output], help="answer with this model from now on")
    use.add_argument("name")
    use.set_defaults(run=_use)
    calibrate = actions.add_parser("calibrate", parents=[output], help="measure a model on our texts: parts, signs of support, sampling")
    calibrate.add_argument("name", nargs="?", help="default: the one in use")
    calibrate.set_defaults(run=_calibrate)
    remove = actions.add_parser("remove", parents=[output], help="delete a model; what it read stays on disk")
    remove.add_argument("name")
    remove.set_defaults(run=_remove)


def _list(options: Namespace, session: Session) -> dict[str, Any]:
    result = session.call("models.list")
    for row in result["models"]:
        mark = "*" if row["current"] else " "
        state = "installed" if row["installed"] else "to fetch"
        notes = [row["license"] or "", "trial model" if row["trial"] else "", ", ".join(row["languages"]), row["problem"] or ""]
        window = f"{row['window']:,} tokens" if row["window"] else ""
        session.output.say(f"{mark} {row['name']:<20} {state:<9} {size(row['bytes']):>9}  {window}  {' · '.join(filter(None, notes))}")
        if row["memory_needed"]:
            session.output.say(f"    {_costs(row)}")
        if row["calibration"]:
            session.output.say(f"    measured: parts of {row['calibration']['part_tokens']} tokens{_sampling(row['calibration'])}")
    session.output.say(f"A page is counted as {TOKENS_A_PAGE} tokens, which suits English; other languages take more.")
    return result


def _costs(row: dict[str, Any]) -> str:
    """What a model takes, in a line."""
    runs = "" if row["fits"] else f": more than this machine has ({size(row['memory_here'])})"
    return f"100 pages take {row['gb_per_100_pages']:.2g} GB · runs in {size(row['memory_needed'])} of memory{runs}"


def _sampling(measured: dict[str, Any]) -> str:
    """What was measured of sampled answers, as the rest of a line."""
    if measured["sampled_from"] is None:
        return ""
    whole = f"layers {', '.join(map(str, measured['dense_layers']))} read whole" if measured["dense_layers"] else "in every layer"
    return f" · sampled from {measured['sampled_from']:,} tokens on, {whole}"


def _told(session: Session) -> Any:
    words = {"download": "downloading", "check": "checking", "convert": "converting", "tokenizer": "building the tokenizer"}
    words |= {"fit": "getting the model ready"}

    def on_event(event: str, data: dict[str, Any]) -> None:
        if event == "progress" and data["stage"] in words:
            amount = f" {size(data['done'])} of {size(data['total'])}" if data["total"] > 1 else ""
            session.output.progress(words[data["stage"]] + amount)

    return on_event


def _fetch(options: Namespace, session: Session) -> dict[str, Any]:
    if "/" in options.name:
        wanted = session.call("models.listing", {"name": options.name})
        session.output.note(f"Downloading {options.name} from Hugging Face: {size(wanted['bytes'])} in {len(wanted['files'])} files.")
        for name, bytes_ in wanted["files"].items():
            session.output.note(f"  {size(bytes_):>10}  {name}")
    told, begun = _told(session), False

    def on_event(event: str, data: dict[str, Any]) -> None:
        nonlocal begun
        if data.get("stage") == "download" and not begun and options.name == DEFAULT:
            begun = True
            session.output.note(f"Installing {options.name}: a download of 93 MB, 98 MB on the disk.")
        told(event, data)

    return _installed(session, session.call("models.fetch", {"name": options.name, **_wishes(options)}, on_event))


def _add(options: Namespace, session: Session) -> dict[str, Any]:
    params = {"path": str(Path(options.path).expanduser().absolute()), "name": options.name, **_wishes(options)}
    return _installed(session, session.call("models.add", params, _told(session)))


def _wishes(options: Namespace) -> dict[str, Any]:
    return {"pack": options.pack, "template": options.template}


def _installed(session: Session, result: dict[str, Any]) -> dict[str, Any]:
    row = next(row for row in result["models"] if row["name"] == result["name"])
    session.output.say(f"{row['name']} is installed ({size(row['bytes'])}, {row['license'] or 'no licence stated'}).")
    if row["trial"]:
        session.output.say("It is a trial model: good enough to see how Longshelf works, not to rely on its answers.")
    if row["name"] != DEFAULT and row["fits"]:  # of the default model it is known
        try:
            _calibrated(session, row["name"], CALIBRATE_WITHIN_S)
        except LongshelfError as error:  # installed it is all the same
            session.output.note(f"It could not be calibrated: {error}")
    return result


def _use(options: Namespace, session: Session) -> dict[str, Any]:
    return session.call("models.use", {"name": options.name})


def _calibrate(options: Namespace, session: Session) -> dict[str, Any]:
    return _calibrated(session, options.name)


def _calibrated(session: Session, name: str | None, within_s: float | None = None) -> dict[str, Any]:
    def on_event(event: str, data: dict[str, Any]) -> None:
        if event == "progress":
            session.output.note(data["stage"])

    result = session.call("models.calibrate", {"name": name} | ({} if within_s is None else {"within_s": within_s}), on_event)
    if "found" not in result:
        minutes = max(1, round(result["expected_s"] / 60))
        session.output.say(
            f"How large its parts should be is a guess; `longshelf models calibrate {name}` measures it (about {minutes} min)."
        )
        return result
    found = result["found"]
    session.output.say(
        f"{result['name']}: parts of {result['part_tokens']} tokens from now on, {1e3 * result['row_s']:.1f} ms a row{_sampling(result)}."
    )
    if found.get("auc") is not None:
        session.output.say(
            f"Of {found['n_absent']} questions that a text does not answer {found['refused_absent']:.0%} are told,"
            f" of {found['n_present']} that it does {found['refused_present']:.0%} are refused (AUC {found['auc']:.2f})."
        )
    return result


def _remove(options: Namespace, session: Session) -> dict[str, Any]:
    return session.call("models.remove", {"name": options.name})
