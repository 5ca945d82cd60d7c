"""Vocabularies in a tokenizer.json, through the `tokenizers` library: byte-level BPE, and BPE or Unigram that write a space as "▁".

The file is one that `write_tokenizer_json` (or the GGUF import) has put in order: nothing in it trims offsets or shortens a text.
"""

from __future__ import annotations

import json
import re
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import normalizers, pre_tokenizers

from engine.errors import LongshelfError
from engine.model.config import damaged

SPACE = "▁"
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")


class JsonVocabulary:
    """A `Vocabulary` of `engine.model.tokenizer`."""

    def __init__(self, file: Path) -> None:
        """Raises LongshelfError("model_damaged") if the file is missing or unreadable, ("model_unsupported") for another kind."""
        self._file = file
        self._plain = _load(file)
        self._plain.encode_special_tokens = True  # the library's name for: special tokens are encoded like any text
        self._byte_level = _is_byte_level(_state(self._plain.decoder))
        self.writes_space = _without_space(self._plain)
        self.size = self._plain.get_vocab_size(with_added_tokens=True)
        added = self._plain.get_added_tokens_decoder()
        self.special_ids: frozenset[int] = frozenset(index for index, token in added.items() if token.special)
        self._verbatim = {index: token.content for index, token in added.items()}
        # Merging bytes never ends in a special token's name, and install checks that; the other kinds may know it as a word.
        self.guarded = () if self._byte_level else tuple(self._verbatim[index] for index in self.special_ids)
        self.bytewise = self._byte_level or self._plain.token_to_id("<0x0A>") is not None
        self.cuttable = self._cuttable()

    def _cuttable(self) -> bool:
        if not self._byte_level:
            return not any("\n" in token[:-1] for token in self._plain.get_vocab())
        cut = self._plain.pre_tokenizer.pre_tokenize_str
        return all(any(span[0] == len(before) for _, span in cut(f"{before}b 가")) for before in ("a\n", "a.\n", "1)\n", "가,\n"))

    def encode(self, texts: list[str]) -> list[tuple[list[int], list[tuple[int, int]]]]:
        """Ids of each text, and the range of its characters that each covers."""
        return [
            (encoded.ids, encoded.offsets if self._byte_level else _exact(encoded.tokens, encoded.offsets, text))
            for text, encoded in zip(texts, self._plain.encode_batch(texts, add_special_tokens=False), strict=True)
        ]

    def ids(self, texts: list[str]) -> list[list[int]]:
        """The ids of `encode`, faster."""
        return [encoded.ids for encoded in self._plain.encode_batch_fast(texts, add_special_tokens=False)]

    def template(self, text: str, begins: bool) -> list[int]:
        """Ids with special tokens recognised; plain text before the first of them follows something unless it `begins`."""
        head = ""
        if not begins and self.writes_space:
            specials = [at for index in self.special_ids if (at := text.find(self._verbatim[index])) >= 0]
            head = text[: min(specials, default=len(text))]
        ids = [i for piece in self.ids([head]) for i in piece] if head else []
        return ids + self._as_stored.encode(text[len(head) :], add_special_tokens=False).ids

    @cached_property
    def _as_stored(self) -> tokenizers.Tokenizer:
        return _load(self._file)

    def token_id(self, content: str) -> int | None:
        return self._plain.token_to_id(content)

    def name(self, token: int) -> str:
        return self._verbatim.get(token) or self._plain.id_to_token(token) or ""

    def bytes_of(self, token: int) -> bytes:
        if (content := self._verbatim.get(token)) is not None:
            return content.encode()
        symbols = self._plain.id_to_token(token) or ""
        if self._byte_level:
            return b"".join(_BYTE_OF.get(symbol) or symbol.encode() for symbol in symbols)
        byte = _BYTE.fullmatch(symbols)
        return bytes([int(byte[1], 16)]) if byte else symbols.replace(SPACE, " ").encode()


def in_order(stored: dict[str, Any], specials: set[str]) -> dict[str, Any]:
    """The content of someone's tokenizer.json as we keep it.

    What would cut offsets or texts short is left out, and the tokens `specials`, which end an answer or begin a text, are special: plain
    text can't become one.
    """
    added = [{**token, "special": token.get("special", False) or token["content"] in specials} for token in stored.get("added_tokens", [])]
    return {**stored, "added_tokens": added, "truncation": None, "padding": None, "post_processor": None}


def _load(file: Path) -> tokenizers.Tokenizer:
    try:
        return tokenizers.Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises bare Exception for a missing and for a damaged file
        raise damaged(f"{file} can't be read: {error}.") from error


def _state(component: Any) -> Any:
    """The JSON of a part of a tokenizer, as it stands in tokenizer.json."""
    return None if component is None else json.loads(component.__getstate__())


def _is_byte_level(decoder: Any) -> bool:
    """Raises LongshelfError("model_unsupported") for a vocabulary whose tokens we couldn't turn into text."""
    steps = {step["type"]: step for step in _steps(decoder)}
    if "ByteLevel" in steps:
        return True
    replaced = steps.get("Replace", {}).get("pattern") == {"String": SPACE}
    if not replaced and steps.get("Metaspace", {}).get("replacement") != SPACE:
        what = ", ".join(steps) or "none"
        raise LongshelfError(
            "model_unsupported",
            f"The model's tokenizer turns tokens into text in a way that isn't known here ({what}).",
            "This version reads byte-level BPE, and BPE and Unigram vocabularies that write a space as ▁.",
        )
    return False


def _steps(component: Any) -> list[dict[str, Any]]:
    """A component, or those of a Sequence, flat."""
    if component is None:
        return []
    inner = next((component[name] for name in ("decoders", "normalizers", "pretokenizers") if name in component), None)
    return [component] if inner is None else [step for one in inner for step in _steps(one)]


def _without_space(tokenizer: tokenizers.Tokenizer) -> bool:
    """Have `tokenizer` put no space before a text; whether it did."""
    before, cutting = _steps(_state(tokenizer.normalizer)), _steps(_state(tokenizer.pre_tokenizer))
    kept = [step for step in before if step["type"] != "Prepend"]
    never = {"Metaspace": ("prepend_scheme", "never"), "ByteLevel": ("add_prefix_space", False)}
    cut = [{**step, **dict([never[step["type"]]])} if step["type"] in never else step for step in cutting]
    if kept != before:
        tokenizer.normalizer = _restored(normalizers.Sequence([]), "normalizers", kept)
    if cut != cutting:
        tokenizer.pre_tokenizer = _restored(pre_tokenizers.Sequence([]), "pretokenizers", cut)
    return kept != before or cut != cutting


def _restored(sequence: Any, name: str, steps: list[dict[str, Any]]) -> Any:
    sequence.__setstate__(json.dumps({"type": "Sequence", name: steps}).encode())
    return sequence


def _exact(tokens: list[str], offsets: list[tuple[int, int]], text: str) -> list[tuple[int, int]]:
    """Unigram gives a run of unknown characters one range for all of its bytes; here each byte gets that of its character."""
    found: list[tuple[int, int]] = []
    for (start, end), run in groupby(zip(offsets, tokens, strict=True), key=lambda pair: pair[0]):
        count = sum(1 for _ in run)
        exact = [(at, at + 1) for at in range(start, end) for _ in text[at].encode()] if count > 1 and end - start > 1 else []
        found += exact if len(exact) == count else [(start, end)] * count
    return found


def byte_symbols() -> list[str]:
    """The printable character that byte-level vocabularies write for each byte (GPT-2's table): index = byte."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]


_BYTE_OF = {symbol: bytes([byte]) for byte, symbol in enumerate(byte_symbols())}
