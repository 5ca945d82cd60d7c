"""A folder of JSON records, one file each, from which rows can be made again: written durably, with a checksum that tells a damaged one.

What is kept this way is written before its row, so that a lost catalog loses nothing that was said to be saved.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from blake3 import blake3

from engine.errors import LongshelfError
from engine.store import durable, space

VERSION = 1
_SURROGATES = "surrogatepass"  # a label may come from a file name that isn't UTF-8


class Records:
    """The files under `folder`, made when first needed. A kind of record says what it is called and which parts it has.

    kind: the first word of the errors ("text": "text_missing", "text_damaged"); name: for people; parts: the fields of a record,
    the first of which holds its "id"; lost: what to do about one that is damaged.
    """

    kind: ClassVar[str]
    name: ClassVar[str]
    parts: ClassVar[tuple[str, ...]]
    lost: ClassVar[str] = "Run `longshelf doctor --repair`."

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, record_id: str) -> Path:
        return self.folder / f"{record_id}.json"

    def remove(self, record_id: str) -> bool:
        """Remove a record's file for good; False if it was not there."""
        with space.named_disk_errors(self.folder):
            return durable.remove(self.path(record_id))

    def ids(self) -> Iterator[str]:
        """Ids of all files, sorted."""
        return (path.stem for path in self._files() if path.suffix == ".json" and not path.name.startswith("."))

    def temporaries(self) -> list[Path]:
        """What a killed process left behind. Only for the holder of the writer lock: they may be another's work otherwise."""
        return [path for path in self._files() if durable.is_abandoned(path)]

    def _write(self, content: dict[str, Any]) -> None:
        """Write or replace a record's file. Raises LongshelfError("disk_full" or "store_unavailable")."""
        whole = {f"longshelf_{self.kind}": VERSION, "checksum": _checksum(content), **content}
        with space.named_disk_errors(self.folder):
            durable.make_folder(self.folder)
            data = json.dumps(whole, ensure_ascii=False).encode("utf-8", _SURROGATES)
            durable.write_file(self.path(str(content[self.parts[0]]["id"])), data)

    def _read(self, record_id: str) -> dict[str, Any]:
        """The parts of a record. Raises LongshelfError(kind + "_missing" or "_damaged")."""
        path = self.path(record_id)
        try:
            whole = json.loads(path.read_bytes().decode("utf-8", _SURROGATES))
            content: dict[str, Any] = {part: whole[part] for part in self.parts}
            same = whole[f"longshelf_{self.kind}"] == VERSION and whole["checksum"] == _checksum(content)
            if not same or content[self.parts[0]]["id"] != record_id:
                raise ValueError("it fails its checksum")
        except FileNotFoundError:
            hint = "Run `longshelf doctor --repair`."
            raise LongshelfError(f"{self.kind}_missing", f"The {self.name} {path} is missing.", hint) from None
        except OSError as error:
            raise space.unavailable(path, error) from error
        except (ValueError, KeyError, TypeError) as error:
            raise LongshelfError(f"{self.kind}_damaged", f"The {self.name} {path} is damaged: {error}.", self.lost) from error
        return content

    def _files(self) -> list[Path]:
        return sorted(self.folder.iterdir()) if self.folder.is_dir() else []


def _checksum(content: dict[str, Any]) -> str:
    canonical = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return blake3(canonical.encode("utf-8", _SURROGATES)).hexdigest()
