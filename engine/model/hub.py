"""Getting a model from the Hugging Face Hub by its id, when a person asks: safetensors, tokenizer and configs, never pickles or code.

The `huggingface_hub` package does the talking and goes on with a download that was cut short. HF_ENDPOINT names another server.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from engine.errors import LongshelfError, Stopped
from engine.model.fetch import FULL, Progress, Stop
from engine.model.hf_folder import NEEDED

ID = re.compile(r"[\w.-]+/[\w.-]+")
WANTED = (
    "*.safetensors",
    "model.safetensors.index.json",
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "chat_template.jinja",
    "chat_template.json",
    "README.md",
    "LICENSE*",
)
"""Files of a repository's top folder; nothing else is asked for."""

_OFFLINE = "The program goes online for this alone; everything else works without."


@dataclass(frozen=True)
class Listing:
    """What would be downloaded. commit: the exact state of the repository; files: bytes by name."""

    repo: str
    commit: str
    files: dict[str, int]

    @property
    def bytes(self) -> int:
        return sum(self.files.values())


def listing(repo: str) -> Listing:
    """Raises LongshelfError: "no_network", "unknown_model", "gated", "not_a_model" if nothing in it can be used, "download_failed"."""
    hub = _hub()
    with_errors = _Explained(repo)
    with with_errors:
        info = hub.HfApi(endpoint=_endpoint()).model_info(repo, files_metadata=True)
        files = {file.rfilename: int(file.size or 0) for file in info.siblings or () if _wanted(file.rfilename)}
    if not any(name.endswith(".safetensors") for name in files):
        raise LongshelfError("not_a_model", f"{repo} has no safetensors files.", f"{NEEDED} Pickled weights are never loaded.")
    return Listing(repo, str(info.sha), files)


def download(wanted: Listing, into: Path, progress: Progress, stop: Stop) -> None:
    """Put the files into a folder; those that are there already are kept, the rest of a file is asked for. Raises as `listing`; Stopped."""
    hub = _hub()
    done = 0

    def told(received: int) -> None:
        if stop():
            raise Stopped
        progress("download", min(done + received, wanted.bytes), wanted.bytes)

    for name, size in wanted.files.items():
        told(0)
        with _Explained(wanted.repo):
            hub.hf_hub_download(wanted.repo, name, revision=wanted.commit, local_dir=into, endpoint=_endpoint(), tqdm_class=_bar(told))
        done += size
    told(0)


def _wanted(name: str) -> bool:
    return "/" not in name and any(fnmatch(name, pattern) for pattern in WANTED)


def _endpoint() -> str | None:
    return os.environ.get("HF_ENDPOINT")


def _hub() -> Any:
    """The package, told to report nothing and to use plain HTTP, which can be stopped and watched."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("HF_HUB_DISABLE_XET", "1")
    import huggingface_hub

    return huggingface_hub


def _bar(told: Callable[[int], None]) -> Any:
    """What huggingface_hub takes for a progress bar, which it makes for each file and tells of each run of bytes."""

    class Bar:
        def __init__(self, *args: Any, initial: int = 0, **kwargs: Any) -> None:
            self._received = initial

        def __enter__(self) -> Bar:
            return self

        def __exit__(self, *error: object) -> None:
            pass

        def update(self, received: int = 1) -> None:
            self._received += received
            told(self._received)

        def close(self) -> None:
            pass

    return Bar


class _Explained:
    """What the package's errors mean for a person."""

    def __init__(self, repo: str) -> None:
        self._repo = repo

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None or isinstance(error, (Stopped, LongshelfError)):
            return
        from httpx2 import TransportError
        from huggingface_hub.errors import (
            GatedRepoError,
            HfHubHTTPError,
            HFValidationError,
            LocalEntryNotFoundError,
            OfflineModeIsEnabled,
            RepositoryNotFoundError,
        )

        if isinstance(error, GatedRepoError):
            hint = f"Agree to its terms at https://huggingface.co/{self._repo}, then log in with `hf auth login`."
            raise LongshelfError("gated", f"{self._repo} is only given to those who agree to its terms.", hint) from error
        if isinstance(error, (RepositoryNotFoundError, HFValidationError)):
            raise LongshelfError("unknown_model", f"The Hub has no model {self._repo!r}, or it is private.", "Check the id.") from error
        if isinstance(error, (TransportError, LocalEntryNotFoundError, OfflineModeIsEnabled)):
            hint = f"Connect to the network and try again. {_OFFLINE}"
            raise LongshelfError("no_network", "The Hugging Face Hub can't be reached.", hint) from error
        if isinstance(error, OSError) and error.errno in FULL:
            raise error
        if isinstance(error, (HfHubHTTPError, OSError, ValueError)):
            raise LongshelfError("download_failed", f"{self._repo} could not be downloaded: {error}.", "Try again.") from error
