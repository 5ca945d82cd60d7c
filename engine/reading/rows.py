"""Documents as clients see them: one flat row each, every number true at the moment it is made."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Any

from engine.documents.document import Document, skipped_from_json, spans_from_json
from engine.errors import LongshelfError
from engine.library.documents import DocumentRow
from engine.model.installed import InstalledModel
from engine.reading.poorly import reads_poorly
from engine.retrieval.layout import index_bytes_per_token
from engine.store import space

if TYPE_CHECKING:
    from engine.shelf import Shelf

log = logging.getLogger("longshelf")


def document_row(shelf: Shelf, row: DocumentRow) -> dict[str, Any]:
    """A document's row of `list`: what it is, how far it is remembered by the current model, what it takes or will take."""
    from engine.model.identity import namespace

    installed = current_model(shelf)
    # Where no model can be used, what any of them remembers is still there and takes room.
    progress = shelf.library.parts.progress(row.id, namespace(installed) if installed else None)
    entry = progress[0] if progress else None
    tokens, done = (entry.tokens, entry.tokens_done) if entry else (row.tokens, 0)
    live = shelf.queue.live(row.id)
    speed = live.tokens_per_s if live else None
    return {
        "id": row.id,
        "title": row.title,
        "path": row.path,
        "format": row.format,
        "encoding": row.encoding,
        "encoding_confident": row.encoding_confident,
        "state": row.state,
        "reason": row.reason,
        "tokens": tokens,
        "tokens_done": done + (live.tokens_ahead if live else 0),
        "percent": round(100 * (done + (live.tokens_ahead if live else 0)) / tokens, 1) if tokens else 0.0,
        "parts": entry.parts if entry else 0,
        "parts_ready": entry.parts_ready if entry else 0,
        "bytes": entry.bytes if entry else 0,
        "sidecar_bytes": entry.sidecar_bytes if entry else 0,
        "estimate_bytes": estimate_bytes(installed, tokens),
        "estimate_seconds": round(tokens / (speed or shelf.queue.usual_speed)),
        "seconds_left": round((tokens - done - live.tokens_ahead) / speed) if live and speed else None,
        "tokens_per_s": round(speed, 1) if speed else None,
        "place": live.place if live else None,
        "skipped_count": len(row.skipped),
        "added_at": row.added_at,
        "model": installed.name if installed else None,
        "reads_poorly": reads_poorly(shelf, row.id, installed) if installed and done else None,
        "source_missing": not os.path.exists(row.path),
    }


def current_model(shelf: Shelf) -> InstalledModel | None:
    """The model in use, None if none is installed or it can't be used: documents are listed all the same."""
    try:
        return shelf.models.open()
    except LongshelfError as error:
        log.debug("no model: %s", error.message)
        return None


def estimate_bytes(installed: InstalledModel | None, tokens: int) -> int:
    """Bytes on disk that so many tokens will take with this model: KV and index."""
    return kv_bytes(installed, tokens) + index_bytes(installed, tokens) if installed else 0


def kv_bytes(installed: InstalledModel, tokens: int) -> int:
    """Bytes on disk of the segments of so many tokens."""
    return space.estimate(tokens, installed.config.kv_bytes_per_token)


def index_bytes(installed: InstalledModel, tokens: int) -> int:
    """Bytes on disk of their sketches."""
    return space.estimate(tokens, index_bytes_per_token(installed.config))


def stored_document(shelf: Shelf, row: DocumentRow) -> Document:
    """The document as it was read, from the kept text."""
    return Document(
        path=row.path,
        title=row.title,
        format=row.format,
        encoding=row.encoding,
        encoding_confident=row.encoding_confident,
        text=shelf.library.documents.text(row.id),
        spans=spans_from_json(row.spans),
        skipped=skipped_from_json(row.skipped),
        source_digest=row.source_digest,
    )
