"""The catalog's tables, as numbered steps, each with its reason. A step that was ever released is never changed.

Times are Unix seconds (REAL). JSON columns hold text. Offsets are code points. Tables are STRICT, so that a wrong type is an
error when it is written and not a surprise when it is read.
"""

from __future__ import annotations

from blake3 import blake3
from sqlite_utils import Database, Migrations

migrations = Migrations("longshelf")


@migrations()
def m001_documents_parts_segments(db: Database) -> None:
    """What was added, how it is cut into parts, and which segments hold each part's KV.

    `parts.expected` lists the digests a part will have once read: they depend on token ids alone, so that segments found on disk
    can be given back to their part without a model. A segment may serve several parts (the same text added twice); a shared one
    stands before all parts of its namespace (the preamble) and belongs to none.
    """
    db.executescript(
        """
        CREATE TABLE documents (
            id TEXT PRIMARY KEY,
            title TEXT NOT NULL,
            path TEXT NOT NULL,
            format TEXT NOT NULL,
            encoding TEXT,
            encoding_confident INTEGER NOT NULL DEFAULT 1,
            source_digest TEXT NOT NULL,
            state TEXT NOT NULL CHECK (state IN ('queued', 'reading', 'remembering', 'ready', 'no_text', 'damaged', 'skipped',
                                                 'paused', 'failed')),
            reason TEXT NOT NULL DEFAULT '',
            text TEXT NOT NULL,
            spans TEXT NOT NULL,
            skipped TEXT NOT NULL,
            tokens INTEGER NOT NULL DEFAULT 0,
            added_at REAL NOT NULL,
            updated_at REAL NOT NULL
        ) STRICT;
        CREATE INDEX documents_path ON documents (path);

        CREATE TABLE parts (
            id INTEGER PRIMARY KEY,
            document_id TEXT NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
            namespace TEXT NOT NULL,
            model TEXT NOT NULL,
            ordinal INTEGER NOT NULL,
            start INTEGER NOT NULL,
            "end" INTEGER NOT NULL,
            tokens INTEGER NOT NULL,
            first_token INTEGER NOT NULL,
            ids_digest TEXT NOT NULL,
            expected TEXT NOT NULL,
            tip TEXT,
            tokens_done INTEGER NOT NULL DEFAULT 0,
            state TEXT NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'reading', 'ready', 'damaged')),
            UNIQUE (document_id, namespace, ordinal)
        ) STRICT;

        CREATE TABLE segments (
            digest TEXT PRIMARY KEY,
            parent TEXT NOT NULL,
            namespace TEXT NOT NULL,
            start INTEGER NOT NULL,
            tokens INTEGER NOT NULL,
            bytes INTEGER NOT NULL,
            shared INTEGER NOT NULL DEFAULT 0,
            created_at REAL NOT NULL,
            last_used REAL NOT NULL
        ) STRICT;

        CREATE TABLE part_segments (
            part_id INTEGER NOT NULL REFERENCES parts (id) ON DELETE CASCADE,
            ordinal INTEGER NOT NULL,
            digest TEXT NOT NULL REFERENCES segments (digest),
            PRIMARY KEY (part_id, ordinal)
        ) STRICT;
        CREATE INDEX part_segments_digest ON part_segments (digest);
        """
    )


@migrations()
def m002_jobs_counters_removals(db: Database) -> None:
    """Work that outlives a process: the queue, what was counted, and removals whose files may still lie there.

    A removal's row is written with the rows it removes and goes when its files are gone: after a crash in between, the text of a
    document that was removed on purpose is told from one whose row was lost.
    """
    db.executescript(
        """
        CREATE TABLE jobs (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            document_id TEXT NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
            model TEXT NOT NULL,
            state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'paused', 'failed', 'done', 'cancelled')),
            position REAL NOT NULL,
            reason TEXT NOT NULL DEFAULT '',
            created_at REAL NOT NULL,
            updated_at REAL NOT NULL,
            UNIQUE (document_id, model)
        ) STRICT;

        CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;

        CREATE TABLE removals (
            id INTEGER PRIMARY KEY,
            document_id TEXT,
            digests TEXT NOT NULL,
            created_at REAL NOT NULL
        ) STRICT;
        """
    )


@migrations()
def m003_joins(db: Database) -> None:
    """Stored combinations: parts read one behind the other. The first part's own segments serve; the rest have their own.

    A join is nothing without any one of its parts, so it goes with the first that goes.
    """
    db.executescript(
        """
        CREATE TABLE joins (
            id INTEGER PRIMARY KEY,
            namespace TEXT NOT NULL,
            model TEXT NOT NULL,
            chain TEXT NOT NULL UNIQUE,
            tip TEXT,
            tokens INTEGER NOT NULL,
            tokens_done INTEGER NOT NULL DEFAULT 0,
            created_at REAL NOT NULL,
            last_used REAL NOT NULL
        ) STRICT;
        CREATE TABLE join_parts (
            join_id INTEGER NOT NULL REFERENCES joins (id) ON DELETE CASCADE,
            ordinal INTEGER NOT NULL,
            part_id INTEGER NOT NULL REFERENCES parts (id) ON DELETE CASCADE,
            PRIMARY KEY (join_id, ordinal)
        ) STRICT;
        CREATE INDEX join_parts_part ON join_parts (part_id);
        CREATE TABLE join_segments (
            join_id INTEGER NOT NULL REFERENCES joins (id) ON DELETE CASCADE,
            ordinal INTEGER NOT NULL,
            digest TEXT NOT NULL REFERENCES segments (digest),
            PRIMARY KEY (join_id, ordinal)
        ) STRICT;
        CREATE INDEX join_segments_digest ON join_segments (digest);
        CREATE TRIGGER join_parts_gone AFTER DELETE ON join_parts BEGIN
            DELETE FROM joins WHERE id = old.join_id;
        END;
        """
    )


@migrations()
def m004_chats(db: Database) -> None:
    """Conversations as trees: an edited question is another child of the same parent, nothing is overwritten.

    Citations and a chat's documents keep id and title without a foreign key: an answer outlives the document it came from.
    """
    db.executescript(
        """
        CREATE TABLE chats (
            id TEXT PRIMARY KEY,
            title TEXT NOT NULL,
            model TEXT NOT NULL,
            created_at REAL NOT NULL,
            updated_at REAL NOT NULL
        ) STRICT;
        CREATE TABLE chat_documents (
            chat_id TEXT NOT NULL REFERENCES chats (id) ON DELETE CASCADE,
            ordinal INTEGER NOT NULL,
            document_id TEXT NOT NULL,
            title TEXT NOT NULL,
            PRIMARY KEY (chat_id, ordinal)
        ) STRICT;
        CREATE TABLE messages (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            chat_id TEXT NOT NULL REFERENCES chats (id) ON DELETE CASCADE,
            parent_id INTEGER REFERENCES messages (id) ON DELETE CASCADE,
            role TEXT NOT NULL CHECK (role IN ('user', 'assistant')),
            text TEXT NOT NULL,
            status TEXT NOT NULL CHECK (status IN ('pending', 'complete', 'stopped', 'failed')),
            meta TEXT NOT NULL,
            created_at REAL NOT NULL
        ) STRICT;
        CREATE INDEX messages_chat ON messages (chat_id);
        CREATE INDEX messages_parent ON messages (parent_id);
        CREATE TABLE citations (
            message_id INTEGER NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
            number INTEGER NOT NULL,
            document_id TEXT NOT NULL,
            title TEXT NOT NULL,
            part INTEGER,
            start INTEGER NOT NULL,
            "end" INTEGER NOT NULL,
            page INTEGER,
            section TEXT,
            line INTEGER,
            quote TEXT NOT NULL,
            score REAL NOT NULL,
            PRIMARY KEY (message_id, number)
        ) STRICT;
        """
    )


@migrations()
def m005_full_text(db: Database) -> None:
    """Search inside words of any script (trigrams), and by word stem for languages that put spaces between words.

    Both indexes of the parts read their text from part_texts and hold none themselves.
    """
    db.executescript(
        """
        CREATE TABLE part_texts (
            part_id INTEGER PRIMARY KEY REFERENCES parts (id) ON DELETE CASCADE,
            text TEXT NOT NULL
        ) STRICT;
        CREATE VIRTUAL TABLE parts_fts USING fts5 (text, content='part_texts', content_rowid='part_id', tokenize='trigram');
        CREATE VIRTUAL TABLE parts_words USING fts5 (
            text, content='part_texts', content_rowid='part_id', tokenize='porter unicode61 remove_diacritics 2'
        );
        CREATE TRIGGER part_texts_added AFTER INSERT ON part_texts BEGIN
            INSERT INTO parts_fts (rowid, text) VALUES (new.part_id, new.text);
            INSERT INTO parts_words (rowid, text) VALUES (new.part_id, new.text);
        END;
        CREATE TRIGGER part_texts_gone AFTER DELETE ON part_texts BEGIN
            INSERT INTO parts_fts (parts_fts, rowid, text) VALUES ('delete', old.part_id, old.text);
            INSERT INTO parts_words (parts_words, rowid, text) VALUES ('delete', old.part_id, old.text);
        END;

        CREATE VIRTUAL TABLE messages_fts USING fts5 (text, content='messages', content_rowid='id', tokenize='trigram');
        CREATE TRIGGER messages_added AFTER INSERT ON messages BEGIN
            INSERT INTO messages_fts (rowid, text) VALUES (new.id, new.text);
        END;
        CREATE TRIGGER messages_gone AFTER DELETE ON messages BEGIN
            INSERT INTO messages_fts (messages_fts, rowid, text) VALUES ('delete', old.id, old.text);
        END;
        CREATE TRIGGER messages_changed AFTER UPDATE OF text ON messages BEGIN
            INSERT INTO messages_fts (messages_fts, rowid, text) VALUES ('delete', old.id, old.text);
            INSERT INTO messages_fts (rowid, text) VALUES (new.id, new.text);
        END;
        """
    )


@migrations()
def m006_encoding_named(db: Database) -> None:
    """The encoding a person named for a document, which holds until they name another; NULL where it was told from the bytes."""
    db.execute("ALTER TABLE documents ADD COLUMN encoding_named TEXT")


@migrations()
def m007_text_digest(db: Database) -> None:
    """blake3 of each document's text: SQLite notices when its pages are out of order, not when a byte of a text has changed."""
    db.execute("ALTER TABLE documents ADD COLUMN text_digest TEXT")
    for document_id, text in db.execute("SELECT id, text FROM documents").fetchall():
        db.execute("UPDATE documents SET text_digest = ? WHERE id = ?", [blake3(text.encode()).hexdigest(), document_id])


@migrations()
def m008_losses(db: Database) -> None:
    """How hard each segment was to read for its model, so that a document it reads poorly can be told from one it reads well."""
    db.execute(
        "CREATE TABLE losses (digest TEXT PRIMARY KEY REFERENCES segments (digest) ON DELETE CASCADE,"
        " nats REAL NOT NULL, count INTEGER NOT NULL, letters INTEGER NOT NULL) STRICT"
    )


@migrations()
def m009_sidecars(db: Database) -> None:
    """What was made of segments and can be made of them again, such as parts quickly joined: found by what it derives from and how.

    It is nothing without any one of its segments, so it goes with the first that goes. It keeps none of them: they may go.
    """
    db.executescript(
        """
        CREATE TABLE sidecars (
            digest TEXT PRIMARY KEY,
            kind TEXT NOT NULL,
            builder INTEGER NOT NULL,
            namespace TEXT NOT NULL,
            bytes INTEGER NOT NULL,
            created_at REAL NOT NULL,
            last_used REAL NOT NULL
        ) STRICT;
        CREATE TABLE sidecar_sources (
            sidecar TEXT NOT NULL REFERENCES sidecars (digest) ON DELETE CASCADE,
            ordinal INTEGER NOT NULL,
            segment TEXT NOT NULL REFERENCES segments (digest) ON DELETE CASCADE,
            PRIMARY KEY (sidecar, ordinal)
        ) STRICT;
        CREATE INDEX sidecar_sources_segment ON sidecar_sources (segment);
        CREATE TRIGGER sidecar_sources_gone AFTER DELETE ON sidecar_sources BEGIN
            DELETE FROM sidecars WHERE digest = old.sidecar;
        END;
        """
    )
