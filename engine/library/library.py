"""The library: everything that has rows, opened as one, and what is put in order when an engine starts."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from engine.errors import LongshelfError
from engine.home import Home
from engine.library import backup
from engine.library.catalog import Catalog, damaged
from engine.library.chats import Chats
from engine.library.conversation import Chat, Message
from engine.library.counters import Counters
from engine.library.documents import DocumentRow, Documents
from engine.library.jobs import Job, Jobs
from engine.library.joins import Joins
from engine.library.losses import Losses
from engine.library.memory import Memory
from engine.library.parts import Parts
from engine.library.search import Search
from engine.library.sidecars import Sidecars
from engine.library.texts import TextRecord, Texts
from engine.library.transcripts import Transcripts
from engine.store import durable
from engine.store.sidecars import SidecarStore
from engine.store.store import Store

# What a reader decided about a file stands whatever is remembered.
_SETTLED_STATES = ("no_text", "skipped", "damaged", "failed")
_UNFINISHED_STATES = ("queued", "reading", "remembering")


@dataclass(frozen=True)
class Settled:
    """What the last engine had left undone. unqueued: documents that are to be read but have no job, such as one whose row came
    back from its text: the caller chooses the model and queues them."""

    messages: list[Message]
    jobs: list[Job]
    restored: list[DocumentRow]
    unqueued: list[DocumentRow]
    unreadable_texts: list[str]
    chats: list[Chat]
    unreadable_chats: list[str]
    removals: int
    temporaries: int


class Library:
    """Rows (documents, parts, joins, jobs, chats, counters), search, and memory: segments and sidecars with their rows.

    Any number of processes may open a home's library and read; only the holder of the home's writer lock may change it.
    """

    def __init__(self, home: Home, catalog: Catalog, floor: int | None = None) -> None:
        self.home = home
        self.catalog = catalog
        self.store = Store(home.segments, floor)
        self.texts = Texts(home.texts)
        self.transcripts = Transcripts(home.chats)
        self.counters = Counters(catalog)
        self.documents = Documents(catalog, self.texts)
        self.parts = Parts(catalog, self.texts, self.documents)
        self.joins = Joins(catalog, self.parts)
        self.losses = Losses(catalog)
        self.jobs = Jobs(catalog)
        self.chats = Chats(catalog, self.transcripts)
        self.search = Search(catalog)
        self.sidecars = Sidecars(catalog, SidecarStore(home.sidecars, floor))
        self.memory = Memory(catalog, self.store, self.texts, self.parts, self.joins, self.counters, self.sidecars)

    @staticmethod
    def open(home: Home, floor: int | None = None) -> Library:
        """Open or create. floor: bytes to keep free on the disk; None is the default rule of `space`.

        Raises what Catalog.open raises; also "catalog_damaged" if the catalog is gone but what it was about is there: a fresh one
        would look like an empty shelf.
        """
        if _is_lost(home):
            raise damaged(home.catalog, "it is missing, though texts, chats or a backup of it are there")
        return Library(home, Catalog.open(home.catalog), floor)

    def close(self) -> None:
        """Close the calling thread's connection."""
        self.catalog.close()

    def settle(self) -> Settled:
        """Put in order what a killed engine left. For the holder of the writer lock, before anything else is changed."""
        removals = 0
        with suppress(LongshelfError):  # a file that can't be removed keeps nobody from the rest; the doctor tells of it
            removals = self.memory.finish_removals()
        restored, unreadable = self.restore_lost()
        chats, unreadable_chats = self.restore_lost_chats()
        with suppress(LongshelfError):  # a full disk, say: the doctor tells which chats have no file
            for chat in self.chats_without_file():
                self.chats.keep(chat.id)
        messages = self.chats.fail_interrupted()
        jobs = self.jobs.requeue_interrupted()
        for job in jobs:
            self.documents.set_state(job.document_id, "queued")
        temporaries = self.sweep_temporaries()
        alive = {job.document_id for job in self.jobs.all()}
        unqueued = [row for row in self.documents.all() if row.state in _UNFINISHED_STATES and row.id not in alive]
        return Settled(messages, jobs, restored, unqueued, unreadable, chats, unreadable_chats, removals, temporaries)

    def temporaries(self) -> list[Path]:
        """Files a killed process was still writing. Only for the holder of the writer lock: they may be another's work otherwise."""
        beside_catalog = [path for path in self.home.root.iterdir() if durable.is_abandoned(path)]
        kept = (self.texts, self.transcripts, self.store, self.sidecars.store)
        return [*beside_catalog, *(path for files in kept for path in files.temporaries())]

    def sweep_temporaries(self) -> int:
        """Remove them; returns how many."""
        return sum(durable.remove(path) for path in self.temporaries())

    def lost(self) -> list[str]:
        """Ids of documents whose text is kept but whose row is gone, those removed on purpose left out."""
        rows = {row["id"] for row in self.catalog.rows("SELECT id FROM documents UNION SELECT document_id FROM removals")}
        return [document_id for document_id in self.texts.ids() if document_id not in rows]

    def restore_lost(self) -> tuple[list[DocumentRow], list[str]]:
        """Bring back the rows of lost documents, with their parts and the segments that are there.

        Returns the documents, and the ids of those whose kept text is damaged.
        """
        restored: list[DocumentRow] = []
        unreadable: list[str] = []
        for document_id in self.lost():
            try:
                record = self.texts.load(document_id)
            except LongshelfError as error:
                if error.kind != "text_damaged":
                    raise
                unreadable.append(document_id)
                continue
            with self.memory.lock, self.catalog.transaction():
                self.documents.restore(record.document)
                restored.append(self.restore_parts(record))
        return restored, unreadable

    def restore_over(self, record: TextRecord) -> DocumentRow:
        """Put what a kept text says in the place of its document's rows."""
        with self.memory.lock, self.catalog.transaction() as db:
            db.execute("DELETE FROM documents WHERE id = ?", [record.document["id"]])
            self.documents.restore(record.document)
            return self.restore_parts(record)

    def restore_parts(self, record: TextRecord) -> DocumentRow:
        """Rows for the parts of a document from its kept text; queues it if some of them are still to be read."""
        document_id = str(record.document["id"])
        with self.memory.lock, self.catalog.transaction():
            for namespace, assignment in record.assignments.items():
                for part in self.parts.restore(document_id, namespace, assignment):
                    self.memory.adopt(part.id, deep=False)
            if record.document["state"] in _SETTLED_STATES:
                return self.documents.get(document_id)
            progress = self.parts.progress(document_id)
            if progress:
                self.documents.set_tokens(document_id, max(entry.tokens for entry in progress))
            unread = not progress or all(entry.parts_ready < entry.parts for entry in progress)
            if unread and record.document["state"] == "paused":  # kept without reading, or forgotten, on purpose
                return self.documents.get(document_id)
            unfinished = [entry for entry in progress if entry.parts_ready < entry.parts]
            if progress and len(unfinished) < len(progress):
                return self.documents.set_state(document_id, "ready")
            for entry in unfinished:
                self.jobs.add(document_id, entry.model)
            return self.documents.set_state(document_id, "queued")

    def lost_chats(self) -> list[str]:
        """Ids of chats that have a file but no row. Those that were removed have neither."""
        rows = {row["id"] for row in self.catalog.rows("SELECT id FROM chats")}
        return [chat_id for chat_id in self.transcripts.ids() if chat_id not in rows]

    def restore_lost_chats(self) -> tuple[list[Chat], list[str]]:
        """Bring back the rows of lost chats. Returns the chats, and the ids of those whose file is damaged."""
        restored: list[Chat] = []
        unreadable: list[str] = []
        for chat_id in self.lost_chats():
            try:
                with self.catalog.transaction():
                    if self.catalog.row("SELECT 1 FROM chats WHERE id = ?", [chat_id]) is None:  # it was not just begun
                        restored.append(self.chats.restore(self.transcripts.load(chat_id)))
            except LongshelfError as error:
                if error.kind == "chat_damaged":
                    unreadable.append(chat_id)
                elif error.kind != "chat_missing":  # removed just now
                    raise
        return restored, unreadable

    def chats_without_file(self) -> list[Chat]:
        """Chats whose file is missing, such as those that an earlier version began."""
        return [chat for chat in self.chats.all() if not self.transcripts.path(chat.id).exists()]

    def text_record(self, document_id: str) -> TextRecord:
        """What a document's file in texts/ should hold, from its rows."""
        assignments: dict[str, Any] = {}
        for part in self.parts.of(document_id):
            assignment = assignments.setdefault(part.namespace, {"model": part.model, "parts": []})
            assignment["parts"].append(asdict(part.plan) | {"segments": list(part.expected)})
        return TextRecord(self.documents.record(document_id).document, assignments)


def _is_lost(home: Home) -> bool:
    if home.catalog.exists() and home.catalog.stat().st_size > 0:
        return False
    kept = (next(records.ids(), None) for records in (Texts(home.texts), Transcripts(home.chats)))
    return backup.backup_path(home.catalog).exists() or any(kept)
