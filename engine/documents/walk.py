"""Which files of a folder are read: those git knows or would add, where the folder is a git checkout; else those that the
.gitignore files in it leave. What is left out is listed with its reason, a folder once and not by its files.

Names are handled as the system gives them; links are not followed; nothing in the folder is run.
"""

from __future__ import annotations

import os
import stat
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from pathspec import GitIgnoreSpec

from engine.documents import git
from engine.documents.document import Skipped
from engine.documents.files import shown, system_error
from engine.documents.skipping import file_reason, folder_reason, is_secret
from engine.errors import LongshelfError, Stopped

FILE_COUNT_LIMIT = 20_000
SEEN_LIMIT = 500_000
"""Entries looked at before a folder is given up as too large: bounded time on a whole disk."""

_IGNORE_LIMIT = 1024 * 1024


@dataclass(frozen=True)
class Found:
    """A file to read. name: relative path with "/", NFC (as typed on a keyboard), fit to be shown."""

    path: Path
    name: str


@dataclass(frozen=True)
class Ignore:
    """The patterns of one .gitignore; they hold below `base`."""

    base: str
    patterns: GitIgnoreSpec


def walk(root: Path, stop: Callable[[], bool] = lambda: False) -> tuple[list[Found], list[Skipped]]:
    """The files of a folder to read, and what is left out, both sorted by name.

    Raises LongshelfError "unreadable" (the folder itself) or "too_large" (more files than FILE_COUNT_LIMIT), Stopped.
    """
    try:
        with os.scandir(root):
            pass  # git could list a folder that this person can't read
    except OSError as error:
        raise system_error(error, shown(root)) from error
    walking = _Walk(os.fspath(root), stop)
    walking.enter("")
    found = sorted(walking.found, key=lambda file: file.name)
    return found, sorted(walking.skipped, key=lambda skipped: (skipped.path, skipped.reason))


class _Walk:
    """One walk. Relative paths inside have "/" between names and keep what isn't UTF-8 as surrogates."""

    def __init__(self, root: str, stop: Callable[[], bool]) -> None:
        self.root = root
        self.stop = stop
        self.found: list[Found] = []
        self.skipped: list[Skipped] = []
        self.seen = 0
        self.folders: dict[str, bool] = {"": True}

    def enter(self, folder: str) -> None:
        """Take a folder by git's word if it is a checkout, else by its own .gitignore files."""
        full = self.full(folder)
        # A folder inside without a .git of its own is a submodule that was never fetched: git would answer for what is around it.
        known = git.is_checkout(full, self.stop) if not folder else os.path.lexists(os.path.join(full, ".git"))
        listing = git.listing(full, self.stop) if known else None
        if listing is None:
            self.by_ignore_files(folder)
            return
        for name in listing.ignored:
            relative = _join(folder, name)
            if self.is_open(_parent(relative)):
                self.skip_ignored(relative)
                self.folders[relative.rstrip("/")] = False
        for name in listing.files:
            self.take(_join(folder, name))

    def take(self, relative: str) -> None:
        """Judge one path that git listed; a repository within (a submodule, or a clone) is entered."""
        self.count()
        if not self.is_open(_parent(relative)) or (status := self.status(relative.rstrip("/"))) is None:
            return
        if stat.S_ISDIR(status.st_mode):
            if self.is_open(relative.rstrip("/")):
                self.enter(relative.rstrip("/"))
        else:
            self.judge(relative, status)

    def judge(self, relative: str, status: os.stat_result) -> None:
        if reason := file_reason(relative.rpartition("/")[2], status):
            self.skip(relative, reason)
            return
        self.found.append(Found(Path(self.full(relative)), _name(relative)))
        if len(self.found) > FILE_COUNT_LIMIT:
            raise self.too_large(f"more than {FILE_COUNT_LIMIT:,} files")

    def is_open(self, folder: str) -> bool:
        """Whether a folder and all above it are to be read. Asked of the disk once each."""
        if folder not in self.folders:
            self.folders[folder] = False
            if self.is_open(_parent(folder)) and (status := self.status(folder)) is not None:
                if reason := folder_reason(self.full(folder), status):
                    self.skip(folder + "/", reason)
                else:
                    self.folders[folder] = True
        return self.folders[folder]

    def by_ignore_files(self, top: str) -> None:
        waiting: list[tuple[str, tuple[Ignore, ...]]] = [(top, ())]
        while waiting:
            folder, ignores = waiting.pop()
            try:
                with os.scandir(self.full(folder)) as entries:
                    names = sorted(entry.name for entry in entries)  # all at once: few folders are open at a time
            except OSError:
                self.skip(folder + "/", "unreadable")
                continue
            if ".gitignore" in names and (ignore := self.read_ignore(folder)):
                ignores = (*ignores, ignore)
            for name in names:
                self.count()
                relative = _join(folder, name)
                if (status := self.status(relative)) is None:
                    continue
                is_folder = stat.S_ISDIR(status.st_mode)
                if is_ignored(relative, is_folder, ignores):
                    self.skip_ignored(relative + "/" * is_folder)
                elif not is_folder:
                    self.judge(relative, status)
                elif self.is_open(relative):
                    waiting.append((relative, ignores))

    def read_ignore(self, folder: str) -> Ignore | None:
        try:
            with open(os.path.join(self.full(folder), ".gitignore"), "rb") as file:
                content = file.read(_IGNORE_LIMIT)
        except OSError:
            return None
        return Ignore(folder, parse_ignore(content))

    def status(self, relative: str) -> os.stat_result | None:
        """lstat; None if it is gone (git lists files that were deleted), or can't be looked at, which is then noted."""
        try:
            return os.lstat(self.full(relative))
        except FileNotFoundError:
            return None
        except OSError:
            self.skip(relative, "unreadable")
            return None

    def skip(self, relative: str, reason: str) -> None:
        self.skipped.append(Skipped(_name(relative), reason))

    def skip_ignored(self, relative: str) -> None:
        """A secret is called one even where it is ignored as well."""
        self.skip(relative, "secret" if is_secret(relative.rpartition("/")[2].lower()) else "ignored")

    def full(self, relative: str) -> str:
        return os.path.join(self.root, *relative.split("/")) if relative else self.root

    def count(self) -> None:
        if self.stop():
            raise Stopped
        self.seen += 1
        if self.seen > SEEN_LIMIT:
            raise self.too_large(f"more than {SEEN_LIMIT:,} entries")

    def too_large(self, what: str) -> LongshelfError:
        return LongshelfError("too_large", f"{shown(self.root)} has {what}, more than is read as one document.", "Add a folder inside it.")


def parse_ignore(content: bytes) -> GitIgnoreSpec:
    """The patterns of a .gitignore file in any encoding. A pattern that is no pattern is left out, as are ones made to be slow."""
    patterns: list[str] = []
    for line in os.fsdecode(content.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")).split("\n"):
        if any(part.count("*") > 4 for part in line.split("/")):
            continue
        try:
            GitIgnoreSpec.from_lines([line])
        except ValueError:
            continue
        patterns.append(line)
    return GitIgnoreSpec.from_lines(patterns)


def is_ignored(relative: str, is_folder: bool, ignores: Iterable[Ignore]) -> bool:
    """Whether .gitignore files from the top down leave a path out: the innermost that says something decides."""
    for ignore in reversed(list(ignores)):
        below = relative[len(ignore.base) + 1 :] if ignore.base else relative
        said = ignore.patterns.check_file(below + "/" * is_folder).include
        if said is not None:
            return said
    return False


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _parent(relative: str) -> str:
    return relative.rstrip("/").rpartition("/")[0]


def _name(relative: str) -> str:
    return unicodedata.normalize("NFC", shown(relative))
