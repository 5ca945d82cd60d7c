"""Every document once more as a file of its own, texts/ID.json, from which the catalog can be made again.

Written durably before the document's row, and before rows for its parts. It holds what can't be had from elsewhere when the
source is gone: text, spans, where it came from, and how it is cut into parts, with the digests of the segments each part expects.
A checksum in the file tells a damaged one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from blake3 import blake3

from engine.errors import LongshelfError
from engine.store import durable, space

VERSION = 1
_SURROGATES = "surrogatepass"  # a label may come from a file name that isn't UTF-8


@dataclass(frozen=True)
class TextRecord:
    """document: columns of the documents table, JSON columns as values; assignments: namespace → {"model", "parts": [...]}."""

    document: dict[str, Any]
    assignments: dict[str, Any] = field(default_factory=dict)


class Texts:
    """The files under `folder`, made when first needed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, document_id: str) -> Path:
        return self.folder / f"{document_id}.json"

    def save(self, record: TextRecord) -> None:
        """Write or replace a document's file. Raises LongshelfError("disk_full" or "store_unavailable")."""
        content = {"document": record.document, "assignments": record.assignments}
        whole = {"longshelf_text": VERSION, "checksum": _checksum(content), **content}
        with space.named_disk_errors(self.folder):
            durable.make_folder(self.folder)
            data = json.dumps(whole, ensure_ascii=False).encode("utf-8", _SURROGATES)
            durable.write_file(self.path(str(record.document["id"])), data)

    def load(self, document_id: str) -> TextRecord:
        """Raises LongshelfError("text_missing" or "text_damaged")."""
        path = self.path(document_id)
        try:
            whole = json.loads(path.read_bytes().decode("utf-8", _SURROGATES))
            content = {"document": whole["document"], "assignments": whole["assignments"]}
            if whole["longshelf_text"] != VERSION or whole["checksum"] != _checksum(content) or content["document"]["id"] != document_id:
                raise ValueError("it fails its checksum")
        except FileNotFoundError:
            raise LongshelfError("text_missing", f"The kept text {path} is missing.", "Run `longshelf doctor --repair`.") from None
        except OSError as error:
            raise space.unavailable(path, error) from error
        except (ValueError, KeyError, TypeError) as error:
            raise LongshelfError(
                "text_damaged", f"The kept text {path} is damaged: {error}.", "Run `longshelf doctor --repair`; add the document again."
            ) from error
        return TextRecord(content["document"], content["assignments"])

    def remove(self, document_id: str) -> bool:
        """Remove a document's file for good; False if it was not there."""
        with space.named_disk_errors(self.folder):
            return durable.remove(self.path(document_id))

    def ids(self) -> Iterator[str]:
        """Ids of all files, sorted."""
        return (path.stem for path in self._files() if path.suffix == ".json" and not path.name.startswith("."))

    def temporaries(self) -> list[Path]:
        """What a killed process left behind. Only for the holder of the writer lock: they may be another's work otherwise."""
        return [path for path in self._files() if durable.is_abandoned(path)]

    def _files(self) -> list[Path]:
        return sorted(self.folder.iterdir()) if self.folder.is_dir() else []


def _checksum(content: dict[str, Any]) -> str:
    canonical = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return blake3(canonical.encode("utf-8", _SURROGATES)).hexdigest()
