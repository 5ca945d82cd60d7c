"""Full-text search: which parts a question is about, which chats and documents hold a phrase.

Inside words of any script: the trigram indexes find three characters and more, shorter strings are found by looking at the text
itself (two syllables are most of Korean's nouns).
"""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from engine.library.catalog import Catalog
from engine.library.words import terms

# BM25 (Robertson & Zaragoza 2009) with the constants SQLite's FTS5 uses, so that both kinds of scores add up.
_K1 = 1.2
_B = 0.75
_FTS5_LEAST_RARITY = 1e-6
_TRIGRAM = 3
_PROPOSED_PARTS = 400
_AROUND = 60  # characters of a message shown on each side of what was found

_CHOSEN = "parts.document_id IN (SELECT value FROM json_each(:documents)) AND (:namespace IS NULL OR parts.namespace = :namespace)"


@dataclass(frozen=True)
class MessageHit:
    """A message that holds what was searched for. excerpt: the place, on one line; start, end: where it is found within excerpt."""

    chat_id: str
    chat_title: str
    message_id: int
    role: str
    excerpt: str
    start: int
    end: int


class Search:
    """Reads only; any thread."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def rank_parts(self, query: str, document_ids: Sequence[str], limit: int = 20, namespace: str | None = None) -> list[tuple[int, float]]:
        """(part id, score) of the parts of these documents that share most with a question, best first.

        Scores are BM25 sums, higher is better, comparable within one call only. Parts that share nothing are left out.
        """
        asked = terms(query)
        scope = {"documents": json.dumps(list(document_ids)), "namespace": namespace}
        lengths = {
            int(row["id"]): max(1, int(row["length"]))
            for row in self._catalog.rows(f'SELECT id, "end" - start AS length FROM parts WHERE {_CHOSEN}', scope)
        }
        scores: dict[int, float] = {}
        pieces = dict(asked.pieces)
        for word in asked.words:
            found = self._word_frequencies(word, scope)
            _add(scores, found, 1.0, len(lengths))
            if not found and len(word) > _TRIGRAM:
                pieces[word] = 1.0  # names in code (JSONDecoder) hide words from the word index: look inside words
        for piece, weight in pieces.items():
            _add(scores, self._piece_frequencies(piece, scope, lengths), weight, len(lengths))
        best = sorted(scores.items(), key=lambda scored: (-scored[1], scored[0]))
        return best[:limit]

    def propose(self, query: str, namespace: str, limit: int = 20) -> list[str]:
        """Ids of the documents of a whole library that share most with a question, best first; only those with a finished part.

        One look into each index, a stem of an unspaced script as the beginning of a word and inside text: ten thousand documents take
        a fraction of a second, where `rank_parts` looks at every part for every term.
        """
        asked = terms(query)
        stems = [f"{_quoted(piece)} *" for piece, weight in asked.pieces.items() if weight == 1.0]
        words = [*map(_quoted, asked.words), *stems]
        best: dict[str, float] = {}
        hidden = [word for word in asked.words if len(word) > _TRIGRAM and not self._is_a_word(word)]
        inside = [_quoted(piece) for piece in [*asked.pieces, *hidden] if len(piece) >= _TRIGRAM]
        for index, found in (("parts_words", words), ("parts_fts", inside)):
            if not found:
                continue
            rows = self._catalog.rows(
                f"SELECT document_id, -score AS score FROM (SELECT rowid AS id, bm25({index}) AS score FROM {index}"
                f" WHERE {index} MATCH ? ORDER BY score LIMIT ?) JOIN parts USING (id)"
                " WHERE namespace = ? AND state IN ('ready', 'damaged')",
                [" OR ".join(found), _PROPOSED_PARTS, namespace],
            )
            scores: dict[str, float] = {}
            for row in rows:
                scores[row["document_id"]] = max(scores.get(row["document_id"], 0.0), row["score"])
            for document_id, score in scores.items():
                best[document_id] = best.get(document_id, 0.0) + score
        if not best and asked.pieces:  # a script without spaces whose words are pairs: every text is looked at
            rows = self._catalog.rows(
                "SELECT id, document_id FROM parts WHERE namespace = ? AND state IN ('ready', 'damaged')", [namespace]
            )
            documents = {int(row["id"]): str(row["document_id"]) for row in rows}
            ranked = self.rank_parts(query, list(set(documents.values())), len(documents), namespace)
            best = {documents[part_id]: score for part_id, score in reversed(ranked) if part_id in documents}
        return sorted(best, key=lambda document_id: (-best[document_id], document_id))[:limit]

    def find_messages(self, query: str, limit: int = 100) -> list[MessageHit]:
        """Messages that hold every word of the query (inside longer words too), newest first."""
        condition, values = _holds_all("messages.text", "messages.id", "messages_fts", query)
        if not values:
            return []
        rows = self._catalog.rows(
            "SELECT messages.id, chat_id, role, text, chats.title FROM messages JOIN chats ON chats.id = chat_id"
            f" WHERE {condition} ORDER BY messages.id DESC LIMIT ?",
            [*values, limit],
        )
        return [MessageHit(row["chat_id"], row["title"], row["id"], row["role"], *_excerpt(row["text"], _split(query)[0])) for row in rows]

    def find_chats(self, query: str) -> list[str]:
        """Ids of chats whose title or messages hold every word of the query, most recently used first."""
        condition, values = _holds_all("messages.text", "messages.id", "messages_fts", query)
        if not values:
            return []
        titled = " AND ".join(["chats.title LIKE ? ESCAPE '\\'"] * len(_split(query)))
        held = f"id IN (SELECT chat_id FROM messages WHERE {condition})"
        sql = f"SELECT id FROM chats WHERE ({titled}) OR {held} ORDER BY updated_at DESC, id"
        return [str(row["id"]) for row in self._catalog.rows(sql, [*(_like(word) for word in _split(query)), *values])]

    def find_documents(self, query: str) -> list[str]:
        """Ids of documents whose title, path or text holds every word of the query: those named so first."""
        if not (words := _split(query)):
            return []
        named = "(title LIKE ? ESCAPE '\\' OR path LIKE ? ESCAPE '\\')"
        names = [_like(word) for word in words for _ in range(2)]
        conditions: list[str] = []
        values: list[str] = []
        for word in words:
            held = "text LIKE ? ESCAPE '\\'"
            values += [_like(word)] * 2
            if len(word) >= _TRIGRAM:
                indexed = "id IN (SELECT document_id FROM parts WHERE id IN (SELECT rowid FROM parts_fts WHERE parts_fts MATCH ?))"
                held = f"({indexed} OR id NOT IN (SELECT document_id FROM parts) AND {held})"
                values.append(_quoted(word))
            values.append(_like(word))
            conditions.append(f"({named} OR {held})")
        sql = (
            f"SELECT id, ({' AND '.join([named] * len(words))}) AS by_name FROM documents WHERE {' AND '.join(conditions)}"
            " ORDER BY by_name DESC, added_at, id"
        )
        return [str(row["id"]) for row in self._catalog.rows(sql, [*names, *values])]

    def _is_a_word(self, word: str) -> bool:
        """Whether any part has it as a word; names in code hide words from that index."""
        return self._catalog.row("SELECT 1 FROM parts_words WHERE parts_words MATCH ? LIMIT 1", [_quoted(word)]) is not None

    def _word_frequencies(self, word: str, scope: dict[str, str | None]) -> dict[int, float]:
        """Part id → saturated frequency of a word in the chosen parts.

        FTS5's bm25() of one word is that frequency times the word's rarity among all parts there are. The rarity is divided out:
        what counts is how rare it is among the chosen ones, and FTS5 takes a word of half the parts for worthless.
        """
        match = scope | {"match": _quoted(word)}
        total, hits = self._catalog.rows(
            "SELECT count(*) AS count FROM part_texts UNION ALL SELECT count(*) FROM parts_words WHERE parts_words MATCH :match", match
        )
        rarity = math.log((total["count"] - hits["count"] + 0.5) / (hits["count"] + 0.5))
        sql = (
            "SELECT parts_words.rowid AS id, -bm25(parts_words) AS score FROM parts_words JOIN parts ON parts.id = parts_words.rowid"
            f" WHERE parts_words MATCH :match AND {_CHOSEN}"
        )
        return {int(row["id"]): float(row["score"]) / max(rarity, _FTS5_LEAST_RARITY) for row in self._catalog.rows(sql, match)}

    def _piece_frequencies(self, piece: str, scope: dict[str, str | None], lengths: dict[int, int]) -> dict[int, float]:
        """Part id → saturated frequency of a string counted inside the text of the chosen parts."""
        narrowed = "part_id IN (SELECT rowid FROM parts_fts WHERE parts_fts MATCH :match) AND" if len(piece) >= _TRIGRAM else ""
        sql = (
            "SELECT part_id, (length(text) - length(replace(lower(text), :piece, ''))) / length(:piece) AS count"
            f" FROM part_texts JOIN parts ON parts.id = part_id WHERE {narrowed} instr(lower(text), :piece) AND {_CHOSEN}"
        )
        average = sum(lengths.values()) / max(1, len(lengths))

        def saturated(count: int, length: int) -> float:
            return count * (_K1 + 1) / (count + _K1 * (1 - _B + _B * length / average))

        rows = self._catalog.rows(sql, scope | {"piece": piece, "match": _quoted(piece)})
        return {int(row["part_id"]): saturated(row["count"], lengths[row["part_id"]]) for row in rows}


def _add(scores: dict[int, float], frequencies: dict[int, float], weight: float, parts: int) -> None:
    """Add one term's BM25: its frequency in each part times its rarity among the `parts` chosen ones."""
    rarity = math.log(1 + (parts - len(frequencies) + 0.5) / (len(frequencies) + 0.5))
    for part_id, frequency in frequencies.items():
        scores[part_id] = scores.get(part_id, 0.0) + weight * rarity * frequency


def _split(query: str) -> list[str]:
    return unicodedata.normalize("NFC", query).split()


def _quoted(word: str) -> str:
    """A phrase of FTS5's query language, whatever characters it holds."""
    return '"' + word.replace('"', '""') + '"'


def _like(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


def _holds_all(column: str, rowid: str, index: str, query: str) -> tuple[str, list[str]]:
    """A condition that a row holds every word of the query, and its values."""
    conditions: list[str] = []
    values: list[str] = []
    for word in _split(query):
        if len(word) >= _TRIGRAM:
            conditions.append(f"{rowid} IN (SELECT rowid FROM {index} WHERE {index} MATCH ?)")
            values.append(_quoted(word))
        else:
            conditions.append(f"{column} LIKE ? ESCAPE '\\'")
            values.append(_like(word))
    return " AND ".join(conditions), values


def _excerpt(text: str, word: str) -> tuple[str, int, int]:
    """The words around the first place of `word`, on one line, and where it stands in them."""
    at = max(0, text.lower().find(word.lower()))
    before = " ".join(text[max(0, at - _AROUND) : at].split())
    if before and text[at - 1].isspace():
        before += " "
    found = text[at : at + len(word)]
    after = " ".join((found + text[at + len(word) : at + len(word) + _AROUND]).split())
    return before + after, len(before), len(before) + len(found)
