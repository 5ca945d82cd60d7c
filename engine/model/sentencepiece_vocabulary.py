"""Vocabularies in a tokenizer.model, through the `sentencepiece` library; and the tokenizer.model that a GGUF's token list stands for.

The file is a protocol buffer (https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto). The few fields that we
write are written here: the package that could do it is needed for nothing else.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sentencepiece

from engine.model.config import damaged

SPACE = "▁"
NO_SPACE_BEFORE = bytes([0x1A, 2, 0x18, 0])
"""normalizer_spec.add_dummy_prefix = false; behind a whole model it overrides what that says."""


_BPE, _BYTE = 2, 6
"""trainer_spec.model_type of BPE; the type of a piece that stands for a byte."""


class SentencePieceVocabulary:
    """A `Vocabulary` of `engine.model.tokenizer`.

    `added` is a JSON file beside the model: {"tokens": {text: {"id", "special"}}, "spaced": whether the template's text behind a special
    token begins anew, with a space before it}. Tokens in it may stand behind the model's own.
    """

    def __init__(self, file: Path, added: Path) -> None:
        """Raises LongshelfError("model_damaged") if one of the files is missing or unreadable."""
        try:
            stored = json.loads(added.read_text(encoding="utf-8"))
            self._added = {str(text): int(token["id"]) for text, token in stored["tokens"].items()}
            marked = {int(token["id"]) for token in stored["tokens"].values() if token["special"]}
            self._spaced = bool(stored["spaced"])
            proto = file.read_bytes()
            self.writes_space = sentencepiece.SentencePieceProcessor(model_proto=proto).normalize("a") == f"{SPACE}a"
            self._model = sentencepiece.SentencePieceProcessor(model_proto=proto + NO_SPACE_BEFORE)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError) as error:
            raise damaged(f"{file} can't be read: {error}.") from error
        self._own = self._model.piece_size()
        self.bytewise = any(self._model.is_byte(index) for index in range(self._own))
        self._text = {index: text for text, index in self._added.items()}
        control = {index for index in range(self._own) if self._model.is_control(index)}
        self.special_ids: frozenset[int] = frozenset(control | marked)
        self.guarded = tuple(self._model.id_to_piece(index) for index in sorted(marked - control) if index < self._own)
        self.size = max([self._own, *(index + 1 for index in self._text)])
        line_ends = any("\n" in self._model.id_to_piece(index)[:-1] for index in range(self._own))
        self.cuttable = not line_ends and self._model.normalize("a.\nb") == "a.\nb"
        names = {self._model.id_to_piece(index) for index in control} | {text for text, index in self._added.items() if index in marked}
        self._names = re.compile("|".join(map(re.escape, sorted(names, key=len, reverse=True))) or "(?!)")

    def encode(self, texts: list[str]) -> list[tuple[list[int], list[tuple[int, int]]]]:
        """Ids of each text, and the range of its characters that each covers."""
        return [
            (found["ids"], self._shared(found["ids"], found["offsets"]))
            for found in self._model.encode(texts, return_type="offset_mapping")
        ]

    def _shared(self, ids: list[int], offsets: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """The library gives a character's last byte its range and the others none; here all have it."""
        exact = list(offsets)
        for at in range(len(ids) - 2, -1, -1):
            if exact[at][0] == exact[at][1] and self._model.is_byte(ids[at]):
                exact[at] = exact[at + 1]
        return exact

    def ids(self, texts: list[str]) -> list[list[int]]:
        """The ids of `encode`, faster."""
        found: list[list[int]] = self._model.encode(texts, return_type=int)
        return found

    def template(self, text: str, begins: bool) -> list[int]:
        """Ids with special tokens recognised; plain text before the first of them follows something unless it `begins`."""
        ids: list[int] = []
        at = 0
        for name in [*self._names.finditer(text), None]:
            plain = text[at : name.start() if name else len(text)]
            if plain:
                spaced = self.writes_space and (begins if at == 0 else self._spaced)
                ids += self.ids([" " * spaced + plain])[0]
            if name:
                ids.append(self._id(name[0]))
                at = name.end()
        return ids

    def _id(self, content: str) -> int:
        added = self._added.get(content)
        return int(self._model.piece_to_id(content)) if added is None else added

    def token_id(self, content: str) -> int | None:
        index = self._id(content)
        return None if index == self._model.unk_id() and content != self._model.id_to_piece(index) else index

    def name(self, token: int) -> str:
        return self._text.get(token) or (str(self._model.id_to_piece(token)) if 0 <= token < self._own else "")

    def bytes_of(self, token: int) -> bytes:
        if (content := self._text.get(token)) is not None:
            return content.encode()
        if not 0 <= token < self._own or self._model.is_unknown(token):
            return b""
        piece: str = self._model.id_to_piece(token)
        return bytes([int(piece[3:5], 16)]) if self._model.is_byte(token) else piece.replace(SPACE, " ").encode()


def piece_count(file: Path) -> int:
    """Pieces of a tokenizer.model. Raises OSError or RuntimeError if it can't be read."""
    return int(sentencepiece.SentencePieceProcessor(model_proto=file.read_bytes()).piece_size())


def added_json(tokens: dict[str, tuple[int, bool]], spaced: bool) -> dict[str, Any]:
    """The content of the file beside a tokenizer.model; tokens: (id, whether it is special) by text."""
    return {"tokens": {text: {"id": index, "special": special} for text, (index, special) in tokens.items()}, "spaced": spaced}


def model_proto(tokens: Sequence[str], scores: Sequence[float], kinds: Sequence[int], writes_space: bool) -> bytes:
    """A BPE tokenizer.model whose pieces are merged by score. kinds are the numbers that GGUF files share with SentencePiece."""
    pieces = b"".join(
        _field(1, _field(1, token.encode()) + b"\x15" + struct.pack("<f", score) + _number(3, kind))
        for token, score, kind in zip(tokens, scores, kinds, strict=True)
    )
    trainer = _number(3, _BPE) + _number(35, _BYTE in kinds)
    normalizer = _field(1, b"identity") + _number(3, writes_space) + _number(4, 0) + _number(5, 1)
    return pieces + _field(2, trainer) + _field(3, normalizer)


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _number(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(int(value))


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])
