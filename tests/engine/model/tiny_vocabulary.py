"""Tiny vocabularies of English and Korean, made as models make theirs: with SentencePiece, and with the `tokenizers` library."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import sentencepiece
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

import resources
from tests.engine.model import tiny_gguf

BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))
SPECIALS = ("<unk>", "<s>", "</s>")


def lines() -> Iterator[str]:
    """The text that the vocabularies are made from."""
    for language in ("en", "ko"):
        yield from resources.handbook(language).read_text(encoding="utf-8").splitlines()


@cache
def sentencepiece_model(kind: str = "bpe") -> bytes:
    """A tokenizer.model of 700 pieces; "[INST]" is a piece of its own, and not every character is known."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=lines(),
        model_writer=written,
        model_type=kind,
        vocab_size=700,
        byte_fallback=True,
        character_coverage=0.98,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        split_digits=True,
        user_defined_symbols=["[INST]"],
        minloglevel=2,
    )
    return written.getvalue()


@cache
def tokenizer_json(kind: str) -> str:
    """A tokenizer.json with byte fallback that writes a space as "▁": "prepend" and "metaspace" (BPE), or "unigram"."""
    if kind == "unigram":
        built = tokenizers.Tokenizer(models.Unigram())
        trainer: Any = trainers.UnigramTrainer(
            vocab_size=600, special_tokens=[*SPECIALS, *BYTES], unk_token=SPECIALS[0], show_progress=False
        )
    else:
        built = tokenizers.Tokenizer(models.BPE(unk_token=SPECIALS[0], byte_fallback=True, fuse_unk=True))
        trainer = trainers.BpeTrainer(vocab_size=600, special_tokens=[*SPECIALS, *BYTES], limit_alphabet=200, show_progress=False)
    if kind == "prepend":
        built.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    else:
        built.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=kind == "unigram")
    built.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    built.train_from_iterator(lines(), trainer)
    stored = json.loads(built.to_str())
    stored["added_tokens"] = [token for token in stored["added_tokens"] if token["content"] in SPECIALS]  # bytes are no words
    stored["model"]["byte_fallback"] = True
    return json.dumps(stored, ensure_ascii=False)


def byte_level_json() -> str:
    """A tokenizer.json of bytes and a few merges, as byte-level models have it; the tokens of `tiny_gguf`."""
    merges = [tuple(merge.split(" ")) for merge in tiny_gguf.MERGES]
    built = tokenizers.Tokenizer(models.BPE(vocab={token: n for n, token in enumerate(tiny_gguf.TOKENS)}, merges=merges))
    built.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    built.post_processor = processors.ByteLevel(trim_offsets=True)
    built.decoder = decoders.ByteLevel()
    built.add_special_tokens(list(tiny_gguf.SPECIALS))
    text: str = built.to_str()
    return text
