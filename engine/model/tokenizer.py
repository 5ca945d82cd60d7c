"""Text to token ids and back, whatever kind of vocabulary the model has.

Two kinds of text are kept apart. Documents, questions and answers are *plain*: a special token's name inside them ("<|im_end|>")
is encoded as the characters it is written with, so that a document can't close its own turn. Only the model's own template
text is encoded with special tokens (`encode_template`), at install.

SentencePiece vocabularies write a space before the first word of a text. A text that `begins` (a document) gets it, one that goes on
(a question behind the rule) doesn't; `decode` takes it off again.

A byte for which the vocabulary has no token gives none (the default model lacks a few control characters).
"""

from __future__ import annotations

import bisect
import codecs
import re
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Protocol

import blake3

TOKENIZER_FILE = "tokenizer.json"
SENTENCEPIECE_FILE = "tokenizer.model"
ADDED_FILE = "added_tokens.json"

PIECE = 1 << 18
"""Characters given to the tokenizer at once: bounds its memory, and pieces run on all cores."""

# One line end between two characters of words or sentences. Every pre-tokenizer that we install ends a pre-token there, so
# the text can be cut behind it without changing an id. (Runs of white space can't be cut: they are split by what follows.)
_SAFE_CUT = re.compile(r"[\w.,;:!?)\]]\n(?=\w)")
_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Encoding:
    """Token ids of a text and where each came from.

    offsets[i] is the half-open range of code points that token i covers; tokens that split a character share its range.
    """

    ids: list[int]
    offsets: list[tuple[int, int]]

    def __len__(self) -> int:
        return len(self.ids)

    def token_at(self, offset: int) -> int:
        """Index of the first token that reaches beyond the code point `offset`; len(self) behind the last."""
        return bisect.bisect_right(self.offsets, offset, key=lambda span: span[1])


class Vocabulary(Protocol):
    """What a tokenizing library does for us. `encode` and `ids` read texts as they stand: plain, and with no space put before them.

    writes_space: it puts a space before a text that begins. guarded: names of special tokens that it could find in plain text.
    cuttable: no token reaches over a line end into the next line. bytewise: any text can be written, byte by byte where it must.
    """

    writes_space: bool
    guarded: tuple[str, ...]
    cuttable: bool
    bytewise: bool
    special_ids: frozenset[int]
    size: int

    def encode(self, texts: list[str]) -> list[tuple[list[int], list[tuple[int, int]]]]: ...

    def ids(self, texts: list[str]) -> list[list[int]]: ...

    def template(self, text: str, begins: bool) -> list[int]: ...

    def token_id(self, content: str) -> int | None: ...

    def name(self, token: int) -> str: ...

    def bytes_of(self, token: int) -> bytes: ...


class Tokenizer:
    """The tokenizer in a model's folder. Safe to share between threads."""

    def __init__(self, folder: Path) -> None:
        """Raises LongshelfError("model_damaged") if its files are missing or unreadable, ("model_unsupported") for another kind."""
        if not (folder / TOKENIZER_FILE).exists() and (folder / SENTENCEPIECE_FILE).exists():
            from engine.model.sentencepiece_vocabulary import SentencePieceVocabulary

            self._files = [folder / SENTENCEPIECE_FILE, folder / ADDED_FILE]
            self._vocabulary: Vocabulary = SentencePieceVocabulary(self._files[0], self._files[1])
        else:
            from engine.model.json_vocabulary import JsonVocabulary

            self._files = [folder / TOKENIZER_FILE]
            self._vocabulary = JsonVocabulary(self._files[0])
        self._guard = _inside(self._vocabulary.guarded)
        self.special_ids = self._vocabulary.special_ids
        self.writes_space = self._vocabulary.writes_space
        """Whether a text that begins gets a space before its first word."""
        self.bytewise = self._vocabulary.bytewise
        """Whether any text comes back from its ids."""

    @property
    def vocab_size(self) -> int:
        return self._vocabulary.size

    @cached_property
    def digest(self) -> str:
        """blake3 of the tokenizer's files."""
        return blake3.blake3(b"".join(file.read_bytes() for file in self._files)).hexdigest()

    def encode(self, text: str, begins: bool = True) -> Encoding:
        """Plain text to ids with their offsets; no special token is added or recognised."""
        ids: list[int] = []
        offsets: list[tuple[int, int]] = []
        pieces = self._pieces(text, begins)
        base = -1 if self._spaced(text, begins) else 0
        for piece, (piece_ids, piece_offsets) in zip(pieces, self._vocabulary.encode(pieces), strict=True):
            ids += piece_ids
            offsets += [(max(base + start, 0), max(base + end, 0)) for start, end in piece_offsets] if base else piece_offsets
            base += len(piece)
        return Encoding(ids, offsets)

    def encode_ids(self, text: str, begins: bool = True) -> list[int]:
        """The ids of `encode`, faster."""
        return [i for ids in self._vocabulary.ids(self._pieces(text, begins)) for i in ids]

    def encode_template(self, text: str, begins: bool = True) -> list[int]:
        """Ids of text written by the model's own template: special tokens in it are recognised."""
        return self._vocabulary.template(text, begins)

    def _spaced(self, text: str, begins: bool) -> bool:
        return begins and self.writes_space and text != ""

    def _pieces(self, text: str, begins: bool) -> list[str]:
        """The text as the vocabulary reads it, cut where no id changes, and inside the names of special tokens."""
        whole = " " * self._spaced(text, begins) + _encodable(text)
        pieces = _runs(whole) if self._vocabulary.cuttable else [whole]
        if self._guard is None:
            return pieces
        return [part for piece in pieces for part in _cut_inside(self._guard, piece)]

    def token_id(self, content: str) -> int | None:
        """Id of the token that the vocabulary writes as `content` ("<|im_end|>"), None if it has none."""
        return self._vocabulary.token_id(content)

    def name(self, token: int) -> str:
        """How the vocabulary writes a token that it has."""
        return self._vocabulary.name(token)

    def token_bytes(self, token: int) -> bytes:
        """The bytes that a token stands for; none for special and unknown ids."""
        return b"" if token in self.special_ids else self._vocabulary.bytes_of(token)

    def decode(self, ids: list[int]) -> str:
        """The text of `ids` without special tokens; a character cut off at the end is left out."""
        stream = TokenStream(self)
        return "".join([*map(stream.feed, ids), stream.flush()])


class TokenStream:
    """Token ids to text as they come: a character is given out once all of its bytes are there.

    Joined outputs equal `Tokenizer.decode` of the same ids. U+FFFD appears only where the model wrote bytes that are no UTF-8.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._utf8 = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._begun = False

    def feed(self, token: int) -> str:
        """The text that became complete with this token; often "" inside Korean words or emoji."""
        text = self._utf8.decode(self._tokenizer.token_bytes(token))
        if text and not self._begun:
            self._begun = True
            return text.removeprefix(" ") if self._tokenizer.writes_space else text
        return text

    def flush(self) -> str:
        """End of the text: bytes of an unfinished character are dropped. The stream can be used again."""
        self._utf8.reset()
        self._begun = False
        return ""


def _runs(text: str) -> list[str]:
    """`text` cut where no id changes, into runs of about PIECE characters (longer where it has no such place)."""
    pieces = []
    start = 0
    while len(text) - start > PIECE and (cut := _SAFE_CUT.search(text, start + PIECE)):
        pieces.append(text[start : cut.end()])
        start = cut.end()
    return [*pieces, text[start:]]


def _inside(names: tuple[str, ...]) -> re.Pattern[str] | None:
    """Finds the first character of every occurrence of a name; None for no names. (A name of one character can't be cut.)"""
    long = [name for name in names if len(name) > 1]
    if not long:
        return None
    firsts = "".join(sorted({name[0] for name in long}))
    rest = "|".join(re.escape(name[1:]) for name in sorted(long, key=len, reverse=True))
    return re.compile(f"[{re.escape(firsts)}](?={rest})")


def _cut_inside(guard: re.Pattern[str], text: str) -> list[str]:
    """`text` cut behind the first character of every name: no token reaches over a cut, so none can be the name's."""
    cuts = [0, *(found.end() for found in guard.finditer(text)), len(text)]
    return [text[start:end] for start, end in pairwise(cuts)] if len(cuts) > 2 else [text]


def _encodable(text: str) -> str:
    """Lone surrogates (undecodable bytes of a command line) become U+FFFD, one for one, so that offsets hold."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)
