"""The home: the one folder that holds everything Longshelf keeps, and the names of what lies in it.

Order of choice: `--home`, then LONGSHELF_HOME, then the platform's data folder. The folder is private (0700) and tagged so that
backup programs can leave it out (https://bford.info/cachedir/).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from engine.errors import LongshelfError

CACHEDIR_TAG = "Signature: 8a477f597d28d172789f06886806bc55\n# KV caches and models of Longshelf; see `longshelf paths`.\n"


@dataclass(frozen=True)
class Home:
    """Paths inside one home. `open()` makes the folder; nothing else here touches the disk."""

    root: Path

    @staticmethod
    def choose(given: str | os.PathLike[str] | None = None) -> Home:
        chosen = given or os.environ.get("LONGSHELF_HOME") or platformdirs.user_data_dir("longshelf", appauthor=False)
        return Home(Path(chosen).expanduser().absolute())

    def open(self) -> Home:
        """Create what is missing. Raises LongshelfError("home") if the folder can't be made or written."""
        try:
            for folder in (self.root, self.models, self.segments, self.sidecars, self.cache):
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not self.tag.exists():
                self.tag.write_text(CACHEDIR_TAG, encoding="ascii")
            if os.name == "posix" and self.root.stat().st_mode & 0o077 and self.tag.read_text("ascii", "replace") == CACHEDIR_TAG:
                self.root.chmod(0o700)  # a copied home, say: other people of this machine have no business here
        except OSError as error:
            raise LongshelfError(
                "home",
                f"The home folder {self.root} can't be used: {error.strerror or error}.",
                "Choose another with --home DIR or LONGSHELF_HOME.",
            ) from error
        return self

    @property
    def models(self) -> Path:
        """One folder for each installed model."""
        return self.root / "models"

    @property
    def segments(self) -> Path:
        """KV segments: the store."""
        return self.root / "segments"

    @property
    def sidecars(self) -> Path:
        """What was made of segments and can be made again; always safe to delete."""
        return self.root / "sidecars"

    @property
    def catalog(self) -> Path:
        """Rows: documents, parts, jobs, chats (SQLite)."""
        return self.root / "catalog.db"

    @property
    def texts(self) -> Path:
        """One file for each document, from which its rows can be made again."""
        return self.root / "texts"

    @property
    def chats(self) -> Path:
        """One file for each chat, likewise."""
        return self.root / "chats"

    @property
    def cache(self) -> Path:
        """Small derived files; always safe to delete."""
        return self.root / "cache"

    @property
    def compiled(self) -> Path:
        """Kernels as compiled for this machine's GPU; made again where they are missing, within a minute."""
        return self.cache / "compiled"

    @property
    def ballast(self) -> Path:
        """Room held back on the disk for the day when it is full."""
        return self.root / "ballast"

    @property
    def tag(self) -> Path:
        """Tells backup programs that they can leave the folder out."""
        return self.root / "CACHEDIR.TAG"

    @property
    def settings(self) -> Path:
        return self.root / "settings.json"

    @property
    def socket(self) -> Path:
        """Where the engine process listens (0600)."""
        return self.root / "engine.sock"

    @property
    def engine_lock(self) -> Path:
        """Held by the engine process of this home for as long as it lives."""
        return self.root / "engine.lock"

    @property
    def writer_lock(self) -> Path:
        """Held by whoever changes the store: one writer at a time."""
        return self.root / "writer.lock"

    @property
    def log(self) -> Path:
        return self.root / "engine.log"
