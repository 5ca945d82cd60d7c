"""The tokenizer files that a GGUF's vocabulary stands for: a tokenizer.json for byte-level BPE, a tokenizer.model for SentencePiece.

Of byte-level BPE a GGUF keeps tokens, merges and the *name* of the rule that cuts text before merging; the rule itself is known to
whoever reads the file. Only rules in `_RULES` are built: a wrong rule gives plausible ids and a confused model, so an unknown name is an
error. Of SentencePiece it keeps pieces and their scores, which is all there is.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import gguf
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

from engine.errors import LongshelfError
from engine.model.gguf_file import GgufFile
from engine.model.tokenizer import ADDED_FILE, SENTENCEPIECE_FILE, TOKENIZER_FILE
from engine.model.tokenizer import Tokenizer as OurTokenizer
from engine.model.tokenizer_check import check

_LLAMA_3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
# Qwen 2: as Llama 3, but every digit is a token of its own.
_QWEN_2 = _LLAMA_3.replace(r"\p{N}{1,3}", r"\p{N}")


def _split(pattern: str) -> list[pre_tokenizers.PreTokenizer]:
    return [pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]


_RULES: dict[str, Callable[[], list[pre_tokenizers.PreTokenizer]]] = {
    "gpt-2": lambda: [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)],
    # SmolLM: every digit is a token of its own, then GPT-2's rule.
    "smollm": lambda: [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)],
    "llama-bpe": lambda: _split(_LLAMA_3),
    "dbrx": lambda: _split(_LLAMA_3),
    "qwen2": lambda: _split(_QWEN_2),
}
_ALIASES = {"llama3": "llama-bpe", "llama-v3": "llama-bpe", "smaug-bpe": "dbrx", "deepseek-r1-qwen": "qwen2"}


def write_tokenizer(file: GgufFile, folder: Path) -> OurTokenizer:
    """Write the tokenizer's files into `folder` and check them: ids of tokens, special tokens kept out of plain text, text that comes back.

    Raises LongshelfError("model_unsupported") for another kind of vocabulary, ("model_damaged") if a check fails.
    """
    tokens = file.tokens()
    kinds: list[int] = file.get("tokenizer.ggml.token_type", [])
    if not tokens or len(set(tokens)) != len(tokens) or len(kinds) != len(tokens):
        raise file.damaged("its vocabulary is empty, has a token twice, or lacks their kinds")
    kind = file.get("tokenizer.ggml.model")
    if kind == "gpt2":
        _write_byte_level(file, folder, tokens, kinds)
    elif kind == "llama":
        _write_sentencepiece(file, folder, tokens, kinds)
    else:
        raise LongshelfError(
            "model_unsupported",
            f"{file.path.name} has a tokenizer of a kind that isn't here yet ({kind}).",
            "This version reads the kinds gpt2 (byte-level BPE) and llama (SentencePiece).",
        )
    ours = OurTokenizer(folder)
    if ours.vocab_size != len(tokens):
        raise file.damaged("its tokenizer doesn't give the ids that it lists")
    check(ours, file.damaged)
    return ours


def _write_byte_level(file: GgufFile, folder: Path, tokens: list[str], kinds: list[int]) -> None:
    rule = file.get("tokenizer.ggml.pre", "")
    rule = _ALIASES.get(rule, rule)
    if rule not in _RULES:
        raise LongshelfError(
            "model_unsupported",
            f"{file.path.name} cuts text before tokenizing by a rule that isn't here yet ({rule or 'none is named'}).",
            f"This version knows the rules {', '.join(_RULES)}.",
        )
    merges: list[str] = file.get("tokenizer.ggml.merges", [])
    try:
        # A merge is "left right"; a token holds no space, but the left one may be a single character that looks like one.
        pairs = [(merge[: (at := merge.index(" ", 1))], merge[at + 1 :]) for merge in merges]
        model = models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=pairs, ignore_merges=rule == "llama-bpe")
    except Exception as error:  # ValueError of ours, bare Exception of the library for a merge of unknown tokens
        raise file.damaged(f"its merges don't fit its vocabulary ({error})") from error
    built = Tokenizer(model)
    built.pre_tokenizer = pre_tokenizers.Sequence(_RULES[rule]())
    built.decoder = decoders.ByteLevel()
    built.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in _of_kind(tokens, kinds, gguf.TokenType.CONTROL)])
    built.add_tokens([AddedToken(t, special=False, normalized=False) for t in _of_kind(tokens, kinds, gguf.TokenType.USER_DEFINED)])
    # Written here, not by the library: its error for a full disk is a bare Exception.
    (folder / TOKENIZER_FILE).write_text(built.to_str(), encoding="utf-8", newline="")


def _write_sentencepiece(file: GgufFile, folder: Path, tokens: list[str], kinds: list[int]) -> None:
    from engine.model.sentencepiece_vocabulary import added_json, model_proto

    scores = file.get("tokenizer.ggml.scores", [])
    numbers = isinstance(scores, list) and all(isinstance(score, float) and math.isfinite(score) for score in scores)
    if not numbers or len(scores) != len(tokens):
        raise file.damaged("the scores of its vocabulary are missing or no numbers")
    writes_space = bool(file.get("tokenizer.ggml.add_space_prefix", True))
    (folder / SENTENCEPIECE_FILE).write_bytes(model_proto(tokens, scores, kinds, writes_space))
    (folder / ADDED_FILE).write_text(json.dumps(added_json({}, spaced=True)), encoding="utf-8")


def _of_kind(tokens: list[str], kinds: list[int], kind: gguf.TokenType) -> list[str]:
    return [token for token, its_kind in zip(tokens, kinds, strict=True) if its_kind == kind]
