"""Text to token ids and back, for byte-level BPE vocabularies.

Two kinds of text are kept apart. Documents, questions and answers are *plain*: a special token's name inside them ("<|im_end|>")
is encoded as the characters it is written with, so that a document can't close its own turn. Only the model's own template
text is encoded with special tokens (`encode_template`), at install.

A byte for which the vocabulary has no token gives none (the default model lacks a few control characters).
"""

from __future__ import annotations

import bisect
import codecs
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import blake3
import tokenizers
from tokenizers import decoders

from engine.errors import LongshelfError
from engine.model.config import damaged

TOKENIZER_FILE = "tokenizer.json"

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


class Tokenizer:
    """The tokenizer in a model's folder. Safe to share between threads."""

    def __init__(self, folder: Path) -> None:
        """Raises LongshelfError("model_damaged") if tokenizer.json is missing or unreadable, ("unsupported_model") if it isn't
        byte-level BPE."""
        self._file = folder / TOKENIZER_FILE
        self._plain = self._load()
        self._plain.encode_special_tokens = True  # the library's name for: special tokens are encoded like any text
        if not isinstance(self._plain.decoder, decoders.ByteLevel):
            raise LongshelfError(
                "model_unsupported", "The model's tokenizer isn't byte-level BPE.", "This version reads no other vocabularies."
            )
        added = self._plain.get_added_tokens_decoder()
        self.special_ids: frozenset[int] = frozenset(index for index, token in added.items() if token.special)
        self._verbatim = {index: token.content for index, token in added.items()}

    def _load(self) -> tokenizers.Tokenizer:
        try:
            return tokenizers.Tokenizer.from_file(str(self._file))
        except Exception as error:  # the library raises bare Exception for a missing and for a damaged file
            raise damaged(f"{self._file} can't be read: {error}.") from error

    @property
    def vocab_size(self) -> int:
        return self._plain.get_vocab_size(with_added_tokens=True)

    @cached_property
    def digest(self) -> str:
        """blake3 of tokenizer.json."""
        return blake3.blake3(self._file.read_bytes()).hexdigest()

    def encode(self, text: str) -> Encoding:
        """Plain text to ids with their offsets; no special token is added or recognised."""
        ids: list[int] = []
        offsets: list[tuple[int, int]] = []
        pieces = _pieces(_encodable(text))
        base = 0
        for piece, encoded in zip(pieces, self._plain.encode_batch(pieces, add_special_tokens=False), strict=True):
            ids += encoded.ids
            offsets += [(base + start, base + end) for start, end in encoded.offsets] if base else encoded.offsets
            base += len(piece)
        return Encoding(ids, offsets)

    def encode_ids(self, text: str) -> list[int]:
        """The ids of `encode`, faster."""
        pieces = _pieces(_encodable(text))
        return [i for encoded in self._plain.encode_batch_fast(pieces, add_special_tokens=False) for i in encoded.ids]

    def encode_template(self, text: str) -> list[int]:
        """Ids of text written by the model's own template: special tokens in it are recognised."""
        return self._with_specials.encode(text, add_special_tokens=False).ids

    @cached_property
    def _with_specials(self) -> tokenizers.Tokenizer:
        return self._load()

    def token_id(self, content: str) -> int | None:
        """Id of the token that the vocabulary writes as `content` ("<|im_end|>"), None if it has none."""
        return self._plain.token_to_id(content)

    def token_bytes(self, token: int) -> bytes:
        """The bytes that a token stands for; none for special and unknown ids."""
        if token in self.special_ids:
            return b""
        if (content := self._verbatim.get(token)) is not None:
            return content.encode()
        return b"".join(_BYTE_OF.get(symbol) or symbol.encode() for symbol in self._plain.id_to_token(token) or "")

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

    def feed(self, token: int) -> str:
        """The text that became complete with this token; often "" inside Korean words or emoji."""
        return self._utf8.decode(self._tokenizer.token_bytes(token))

    def flush(self) -> str:
        """End of the text: bytes of an unfinished character are dropped. The stream can be used again."""
        self._utf8.reset()
        return ""


def _pieces(text: str) -> list[str]:
    """`text` cut where no id changes, into runs of about PIECE characters (longer where it has no such place)."""
    pieces = []
    start = 0
    while len(text) - start > PIECE and (cut := _SAFE_CUT.search(text, start + PIECE)):
        pieces.append(text[start : cut.end()])
        start = cut.end()
    return [*pieces, text[start:]]


def _encodable(text: str) -> str:
    """Lone surrogates (undecodable bytes of a command line) become U+FFFD, one for one, so that offsets hold."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", text)


def byte_symbols() -> list[str]:
    """The printable character that byte-level vocabularies write for each byte (GPT-2's table): index = byte."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]


_BYTE_OF = {symbol: bytes([byte]) for byte, symbol in enumerate(byte_symbols())}
